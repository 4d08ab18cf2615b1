package doctor

// A Level says how much a finding matters.
type Level string

// The levels, in their order.
const (
	OK      Level = "ok"
	Info    Level = "info"    // somebody's choice, worth knowing
	Warning Level = "warning" // it works, though hardly as it was meant
	Error   Level = "error"   // something that was set up does not work
)

func (l Level) rank() int {
	for i, other := range []Level{OK, Info, Warning, Error} {
		if l == other {
			return i
		}
	}
	return 0
}

// A Code is one thing that can be wrong. ID is stable: scripts may rely on it.
type Code struct {
	ID     string
	Level  Level
	Title  string // what is wrong, in half a line
	Advice string // what to do about it
}

// Codes lists all of them, in the order of the checks. This is the only place that
// says what a code means; README's troubleshooting is made of it.
func Codes() []Code {
	return []Code{
		{"place-missing", Error, "a folder or file that a flag or variable names is not there", "Correct the flag or the variable, or make the folder."},
		{"home-missing", Warning, "the home of $AI_ZEN_DIR or --home does not exist", "Correct the name, or run `zen-mcp init`, which fills it."},
		{"project-guess", Warning, "the program was started in no project", "Name the project with --project, or start the program in it."},

		{"config-syntax", Error, "a file cannot be read, or is no JSON or YAML", "Correct the file at that place; comments and trailing commas are allowed."},
		{"config-value", Error, "a value has the wrong type, or is out of range", "Correct the value at that place."},
		{"config-key", Warning, "a key is misspelt, and without effect", "Write the key as suggested."},
		{"config-twice", Warning, "a key or an id is there twice", "Keep one of them."},
		{"config-reference", Warning, "the id of an endpoint or model that is not there", "Correct the id, or add the entry that it means."},
		{"config-warning", Warning, "an entry is of no use as it is", "Correct the entry at that place."},
		{"secret-readable", Warning, "a key lies in a file that others can read", "Run chmod 600 on the file, or write ${NAME} and set the variable."},

		{"agent-unknown", Error, "the agent does not exist", "Correct the id, or write the agent's file."},
		{"agent-limited", Warning, "a project's agent may do less than its file says", "Look at the file; `zen-mcp trust` or --trust-project lifts that."},
		{"permission-unknown", Warning, "permissions name something that does not exist", "Correct the name, or take it out."},
		{"flag-unknown-name", Warning, "--allow or --deny names something that does not exist", "Correct the name, or take it out."},

		{"skill-broken", Error, "a skill cannot be used", "Correct its SKILL.md at that line."},
		{"skill-warning", Warning, "a skill is used, though something in it is not right", "Correct its SKILL.md at that line."},
		{"subagent-broken", Error, "a sub-agent's definition cannot be used", "Correct the file at that place."},
		{"subagent-no-model", Error, "a sub-agent has no model that it could run on", "Name a model of config.json in modelId or defaultModel."},
		{"subagent-no-key", Warning, "the endpoint of a sub-agent's model has no key", "Write apiKey into the endpoint's entry in config.json."},
		{"tool-broken", Error, "a user tool cannot be used", "Correct its file at that place."},
		{"tool-name", Error, "clients refuse the name of a tool", "Give its function another name."},
		{"tool-replaced", Warning, "two tools have the same name", "Rename one of them."},
		{"command-missing", Error, "a program is not there", "Install it, or write its whole path; the check \"commands\" shows where is looked."},
		{"command-desktop", Warning, "a program is found here, but not by a server that a desktop starts", "Write the program's whole path, or put its folder on the PATH of the login shell."},
		{"variable-unset", Error, "an environment variable is not set", "Set it where the server is started (a client's entry has \"env\"), or write a default."},

		{"mcp-broken", Error, "an MCP server's entry cannot be used", "Correct the entry at that place."},
		{"mcp-warning", Warning, "an MCP server is used, though something is not right", "Correct the entry, or ask who made the server."},
		{"mcp-unreachable", Error, "an MCP server cannot be connected to", "Run its command, or open its address, by hand; its last words are above."},
		{"mcp-timeout", Error, "an MCP server does not get ready in time", "Start it once by hand, since a first start may download; or raise \"connectTimeout\"."},
		{"mcp-sign-in", Warning, "an MCP server wants a sign-in", "In a terminal run the command above, or put a key into its \"headers\"."},
		{"mcp-renewal", Info, "the sign-in to an MCP server has expired", "Nothing: the next use renews it."},

		{"endpoint-no-key", Info, "an endpoint has no key, and is not used", "Write its apiKey; any text will do for a service that wants none."},
		{"endpoint-unreachable", Error, "an endpoint does not answer as it should", "Look at its baseUrl, the network, and the proxy variables."},
		{"endpoint-refused", Error, "an endpoint refuses the key", "Get another key, or correct it; ${NAME} reads it from the environment."},

		{"project-untrusted", Info, "a project brings something that would run code", "Look at it; `zen-mcp trust` or --trust-project uses it."},
		{"name-shadowed", Info, "two definitions have the same name", "Nothing, if that is meant; else rename one of them."},
		{"switched-off", Info, "something is switched off in its file", "Nothing, if that is meant."},

		{"path-shell", Warning, "the login shell does not say where programs are", "Set PATH in the client's entry, or repair the shell's start-up files."},
		{"root-missing", Error, "a root cannot be opened, or the working directory is in none", "Correct the name, make the folder, or set --cwd."},
		{"state-unusable", Error, "the state directory cannot be written", "Make it writable, or name another with $XDG_STATE_HOME."},
		{"state-readable", Warning, "others can look into the state directory", "Run chmod 700 on it."},

		{"client-no-entry", Error, "a client's file has no entry that starts zen-mcp", "Run `zen-mcp install CLIENT`."},
		{"client-command", Error, "a client's entry starts a program that is not there", "Run `zen-mcp install CLIENT` again; it writes the whole path."},
		{"client-other", Warning, "a client's entry starts another zen-mcp than this one", "Nothing, if that is meant; else run `zen-mcp install CLIENT` again."},
		{"client-start", Error, "the server does not start as the client starts it", "Start the entry's command in a terminal; `env -i` gives it as few variables as the client."},
		{"client-names", Warning, "names are too long for clients that put the server's before them", "Give the tool, or the server's entry in the client, a shorter name."},
		{"client-tools", Warning, "more tools than some clients take", "Take some away with --deny or with the agent's permissions."},
	}
}

// code finds a code. The ids in this package are literals; a test sees each of them
// in use.
func code(id string) Code {
	for _, c := range Codes() {
		if c.ID == id {
			return c
		}
	}
	panic("no code " + id)
}
