package mcps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// A toolset is what the three tools of one scope work with.
type toolset struct {
	source  *Source
	servers []*Server         // that the scope may use
	broken  map[string]string // see offer
	tools   map[string]bool   // by name: the scope may use it
}

type loadArgs struct {
	Server   string `json:"server"`
	Manifest bool   `json:"include_manifest"`
	Tool     string `json:"tool"`
}

type callArgs struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

type readArgs struct {
	Server string `json:"server"`
	URI    string `json:"uri"`
}

// definition makes one of the three tools.
func (t *toolset) definition(name string) core.Definition {
	switch name {
	case loadName:
		d := core.Define(core.Tool{
			Name:        loadName,
			Title:       "Load an MCP server",
			Description: "Connect to an MCP server and list its tools and resources. Then use call_mcp_tool and read_mcp_resource.",
			Input:       loadInput(text("")),
			Hints:       core.Hints{Idempotent: true, OpenWorld: true},
			Output:      core.OutputLong,
		}, t.load)
		// The choices are shown, but checked by ourselves: there is more to say
		// about a server that is declared and cannot be used.
		d.Input = loadInput(t.choice())
		return d
	case callName:
		return core.Define(core.Tool{
			Name:        callName,
			Title:       "Call a tool of an MCP server",
			Description: "Call a tool of an MCP server loaded with load_mcp. The server's result comes back unchanged.",
			Input: object([]string{"server", "tool", "arguments"}, map[string]*jsonschema.Schema{
				"server":    text(""),
				"tool":      text("Name as load_mcp lists it"),
				"arguments": {Type: "object", Description: "As the tool's inputSchema wants them"},
			}, "server", "tool"),
			Hints:  core.Hints{Destructive: true, OpenWorld: true},
			Output: core.OutputLong,
			Pace:   core.PaceParks,
		}, t.call)
	default:
		return core.Define(core.Tool{
			Name:        readName,
			Title:       "Read a resource of an MCP server",
			Description: "Read a resource of an MCP server loaded with load_mcp.",
			Input: object([]string{"server", "uri"}, map[string]*jsonschema.Schema{
				"server": text(""),
				"uri":    text("Listed by load_mcp, or made from a listed uriTemplate"),
			}, "server", "uri"),
			Hints:  core.Hints{ReadOnly: true, Idempotent: true, OpenWorld: true},
			Output: core.OutputLong,
			Pace:   core.PaceParks,
		}, t.read)
	}
}

func loadInput(server *jsonschema.Schema) *jsonschema.Schema {
	return object([]string{"server", "include_manifest", "tool"}, map[string]*jsonschema.Schema{
		"server":           server,
		"include_manifest": {Type: "boolean", Default: json.RawMessage("true"), Description: "false only connects and counts"},
		"tool":             text("Show this tool only, whole"),
	}, "server")
}

func object(order []string, properties map[string]*jsonschema.Schema, required ...string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: properties, PropertyOrder: order, Required: required,
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
}

func text(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: description}
}

// choice is the schema of a server's name, with one line for each server that
// may be used (contract §3, disclosure).
func (t *toolset) choice() *jsonschema.Schema {
	var lines strings.Builder
	lines.WriteString("One of:")
	var names []any
	for _, s := range t.servers {
		names = append(names, s.Name)
		description := s.Description
		if description == "" {
			description = "(no description)"
		}
		fmt.Fprintf(&lines, "\n  - %s: %s", s.Name, description)
	}
	return &jsonschema.Schema{Type: "string", Enum: names, Description: lines.String()}
}

// server finds a server that the scope may use. One that is denied gets the same
// words as one that does not exist (decision 22).
func (t *toolset) server(call *core.Call, name string) (*Server, error) {
	permits := func(name string) bool {
		return call.Scope.Agent().Permissions.Permits(core.Capability{Kind: core.KindMCP, Name: name})
	}
	for _, s := range t.servers {
		if s.Name == name && permits(name) {
			return s, nil
		}
	}
	if reason := t.broken[name]; reason != "" && permits(name) {
		return nil, fmt.Errorf("the MCP server %q is not configured rightly: %s", name, reason)
	}
	names := make([]string, len(t.servers))
	for i, s := range t.servers {
		names[i] = s.Name
	}
	hint := core.DidYouMean(name, names)
	if hint == "" {
		hint = "; there are " + quoteSome(names)
	}
	return nil, fmt.Errorf("unknown MCP server %q%s", core.Clip(name, 80), hint)
}

// quoteSome lists names for a message, not more than a reader wants to see.
func quoteSome(names []string) string {
	const most = 20
	var b strings.Builder
	for i, n := range names[:min(len(names), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", n)
	}
	if len(names) > most {
		fmt.Fprintf(&b, " and %d more", len(names)-most)
	}
	return b.String()
}

func (t *toolset) load(ctx context.Context, call *core.Call, in loadArgs) (*core.Result, error) {
	server, err := t.server(call, in.Server)
	if err != nil {
		return nil, err
	}
	conns := t.source.connections(call.Scope)
	var m *manifest
	err = conns.use(ctx, server, call, func(s *session) (repeatable bool, err error) {
		s.lists.retryPartial()
		m, err = s.manifest(ctx)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	conns.markLoaded(server.Name)
	switch {
	case in.Tool != "":
		found := m.tool(in.Tool)
		if found == nil {
			return nil, fmt.Errorf("MCP server %q: %w", server.Name, m.unknownTool(in.Tool))
		}
		return core.TextResult(string(found.raw)), nil
	case !in.Manifest:
		return m.brief(server.Name)
	}
	return m.reply(server.Name, call.Scope.Config().OutputBudget())
}

func (t *toolset) call(ctx context.Context, call *core.Call, in callArgs) (*core.Result, error) {
	conns := t.source.connections(call.Scope)
	server, err := t.loaded(call, conns, in.Server)
	if err != nil {
		return nil, err
	}
	var result json.RawMessage
	err = conns.use(ctx, server, call, func(s *session) (repeatable bool, err error) {
		tool, err := s.tool(ctx, in.Tool)
		if err != nil {
			return true, err
		}
		result, err = s.callTool(ctx, call, tool, in.Arguments)
		return tool.repeatable(), err
	})
	if err != nil {
		return nil, err
	}
	return &core.Result{Whole: result}, nil
}

func (t *toolset) read(ctx context.Context, call *core.Call, in readArgs) (*core.Result, error) {
	conns := t.source.connections(call.Scope)
	server, err := t.loaded(call, conns, in.Server)
	if err != nil {
		return nil, err
	}
	var result json.RawMessage
	err = conns.use(ctx, server, call, func(s *session) (repeatable bool, err error) {
		result, err = s.readResource(ctx, call, in.URI)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	return contentsResult(result)
}

// loaded is server for the tools that want a load_mcp first. Who cannot have
// done that need not: agents without load_mcp, and clients without a session.
func (t *toolset) loaded(call *core.Call, conns *connections, name string) (*Server, error) {
	server, err := t.server(call, name)
	if err != nil {
		return nil, err
	}
	if t.tools[loadName] && !call.Sessionless && !conns.isLoaded(name) {
		args, err := rawjson.Marshal(map[string]string{"server": name})
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the MCP server %q is not loaded; call load_mcp %s first", name, args)
	}
	return server, nil
}

// contentsResult makes a tool's result of that of resources/read: texts as text,
// blobs as embedded resources, whole. A result in which there is nothing to read
// is shown as it is (contract §3).
func contentsResult(result json.RawMessage) (*core.Result, error) {
	members, err := rawjson.Members(result)
	if err != nil {
		return nil, errors.New("the server's answer is not an object")
	}
	i := slices.IndexFunc(members, func(m rawjson.Member) bool { return m.Name == "contents" })
	if i < 0 {
		return core.TextResult(string(result)), nil
	}
	contents, err := rawjson.Elements(members[i].Value)
	if err != nil {
		return nil, errors.New("the server's answer has contents that are not a list")
	}
	out := &core.Result{}
	for _, raw := range contents {
		var c struct{ Text *string }
		switch err := json.Unmarshal(raw, &c); {
		case err == nil && c.Text != nil && *c.Text != "":
			out.Blocks = append(out.Blocks, core.Text(*c.Text))
		case err == nil && c.Text != nil: // empty: nothing to show
		default:
			block := slices.Concat([]byte(`{"type":"resource","resource":`), raw, []byte{'}'})
			out.Blocks = append(out.Blocks, core.Raw(block))
		}
	}
	if len(out.Blocks) == 0 {
		return core.TextResult(string(result)), nil
	}
	return out, nil
}
