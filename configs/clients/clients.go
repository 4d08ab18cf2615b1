// Package clients knows the programs that use zen-mcp as an MCP server: which
// file of theirs lists the servers, how an entry looks there, and what they
// limit. It adds and removes an entry without touching anything else in the file.
//
// [All] is the one list of clients. [Client.Read] looks; an [Installer] plans a
// [Change], which can be shown as a diff, and carries it out.
package clients

import (
	"fmt"
	"strings"

	"zenmcp/core"
)

// A Client is a program that starts MCP servers which a file of its own lists.
type Client struct {
	Name    string // as `zen-mcp install` takes it
	Title   string
	Restart string // what makes the client see a change
	Limits  Limits
	// NoFolder is set when the client starts servers in no folder of the user's,
	// but in / or where Windows is.
	NoFolder bool

	format  format
	section string // the part of the file that holds the servers, by name
	command string // the key of the program in an entry
	env     string // the key of its variables; "" means env
	entry   func(Server) object
	files   func(System) []location
}

// A Server is what a client is told to start.
type Server struct {
	Name    string // of the entry
	Command string // an absolute path
	Args    []string
}

// Limits are what a client takes of a server. Each comes from the client's
// documentation or from reports of its users; 0 is none that is known.
type Limits struct {
	Prefix     string // stands before a tool's name when a model sees it; NAME is the server's
	NameLength int    // characters of prefix and name together
	Tools      int    // of all servers together
}

// Shown is the name under which a model sees a tool of a server.
func (l Limits) Shown(server, tool string) string {
	return strings.ReplaceAll(l.Prefix, "NAME", server) + tool
}

// All lists the clients in the order in which they are shown.
func All() []Client {
	return []Client{
		{
			Name: "claude-desktop", Title: "Claude Desktop", Restart: "quit Claude Desktop, also in the menu bar or tray, and start it again",
			// "String should have at most 64 characters": anthropics/claude-code#19882.
			// Its folder is /: andycufari/ClaudePoint#1.
			Limits: Limits{NameLength: 64}, NoFolder: true,
			format: jsonFormat{}, section: "mcpServers", command: "command", entry: plainEntry, files: claudeDesktop,
		},
		{
			Name: "claude-code", Title: "Claude Code", Restart: "start a new session; `claude mcp list` shows the connection",
			// mcp__SERVER__TOOL: code.claude.com/docs/en/mcp; 64 as above.
			Limits: Limits{Prefix: "mcp__NAME__", NameLength: 64},
			format: jsonFormat{}, section: "mcpServers", command: "command", entry: typedEntry, files: claudeCode,
		},
		{
			Name: "vscode", Title: "VS Code", Restart: "run \"MCP: List Servers\" from the command palette and start the server",
			// "Cannot have more than 128 tools per request": microsoft/vscode-copilot-release#11653.
			Limits: Limits{Prefix: "mcp_NAME_", NameLength: 64, Tools: 128},
			format: jsonFormat{}, section: "servers", command: "command", entry: typedEntry, files: vsCode,
		},
		{
			Name: "cursor", Title: "Cursor", Restart: "restart Cursor; Settings → MCP shows the server",
			// "Combined server and tool name length (60) exceeds 60", where the two had 60 without
			// the colon: ComposioHQ/composio#2788. 40 tools: keanemind/jj-mcp-server#1.
			Limits: Limits{Prefix: "NAME:", NameLength: 60, Tools: 40},
			format: jsonFormat{}, section: "mcpServers", command: "command", entry: typedEntry, files: cursor,
		},
		{
			Name: "windsurf", Title: "Windsurf", Restart: "press refresh in Cascade's MCP panel, or restart Windsurf",
			// 100 tools: docs.windsurf.com/windsurf/cascade/mcp.
			Limits: Limits{Prefix: "mcp0_", NameLength: 64, Tools: 100},
			format: jsonFormat{}, section: "mcpServers", command: "command", entry: plainEntry, files: windsurf,
		},
		{
			Name: "codex", Title: "Codex", Restart: "start a new session; /mcp shows the server",
			// mcp__SERVER__TOOL of at most 64: codex-rs/core/src/mcp_connection_manager.rs.
			Limits: Limits{Prefix: "mcp__NAME__", NameLength: 64},
			format: tomlFormat{}, section: "mcp_servers", command: "command", entry: plainEntry, files: codex,
		},
		{
			Name: "gemini", Title: "Gemini CLI", Restart: "start a new session in a folder that it trusts; /mcp shows the server",
			// Names over 63 characters are cut: docs/tools/mcp-server.md of google-gemini/gemini-cli.
			Limits: Limits{Prefix: "mcp_NAME_", NameLength: 63},
			format: jsonFormat{}, section: "mcpServers", command: "command", entry: plainEntry, files: gemini,
		},
		{
			Name: "zed", Title: "Zed", Restart: "look at the agent panel's settings, which show the server; Zed reads the file when it changes",
			// No "source" any more: zed-industries/zed#43417. 128 tools: akbxr/gitlab-mcp-zed#8.
			Limits: Limits{NameLength: 64, Tools: 128},
			format: jsonFormat{}, section: "context_servers", command: "command", entry: plainEntry, files: zed,
		},
		{
			Name: "goose", Title: "goose", Restart: "start a new session; /extensions or Settings → Extensions shows the server",
			// EXTENSION__TOOL: crates/goose/src/agents/extension_manager.rs of block/goose.
			Limits: Limits{Prefix: "NAME__", NameLength: 64},
			format: yamlFormat{}, section: "extensions", command: "cmd", env: "envs", entry: gooseEntry, files: goose,
		},
	}
}

// Lookup finds a client by its name.
func Lookup(name string) (Client, error) {
	var names []string
	for _, c := range All() {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Client{}, fmt.Errorf("unknown client %q%s; there are %s", name, core.DidYouMean(name, names), strings.Join(names, ", "))
}

// plainEntry is the entry of most clients.
func plainEntry(s Server) object {
	return object{{"command", s.Command}, {"args", s.Args}}
}

// typedEntry is for clients that want the transport named:
// code.visualstudio.com/docs/agents/reference/mcp-configuration and
// cursor.com/docs/mcp; `claude mcp add` writes it as well.
func typedEntry(s Server) object {
	return append(object{{"type", "stdio"}}, plainEntry(s)...)
}

// gooseEntry has what goose's own settings write. The timeout is in seconds, and
// of one call: ExtensionConfig in crates/goose/src/agents/extension.rs.
func gooseEntry(s Server) object {
	return object{
		{"enabled", true}, {"type", "stdio"}, {"name", s.Name}, {"description", "Files, commands, skills and agents of zen-mcp"},
		{"cmd", s.Command}, {"args", s.Args}, {"envs", object{}}, {"timeout", 300},
	}
}
