package mcps

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// A Transport is how a server is spoken to.
type Transport string

// The transports of mcp.json.
const (
	Stdio Transport = "stdio" // a child process
	HTTP  Transport = "http"  // streamable HTTP
	SSE   Transport = "sse"   // HTTP with a stream of events, as it was before 2025-03-26
)

// transports maps what people write, in lower case, to what it means.
var transports = map[string]Transport{
	"stdio": Stdio,
	"http":  HTTP, "streamable-http": HTTP, "streamablehttp": HTTP, "streamable_http": HTTP,
	"sse": SSE,
}

// An Era says which generation of the protocol a server is addressed in.
type Era string

// The values of an entry's protocol field.
const (
	Auto   Era = "auto"   // ask for the newest, fall back to initialize
	Legacy Era = "legacy" // initialize, up to 2025-11-25
	Modern Era = "modern" // without a handshake, from 2026-07-28 on
)

// Defaults of the times in an entry. All of them are milliseconds in mcp.json.
const (
	DefaultTimeout        = 60 * time.Second // of silence in a call; progress starts it anew
	DefaultMaxTimeout     = time.Hour        // of a call in all
	DefaultConnectTimeout = 60 * time.Second // until a server is ready; npx downloads at the first start
	DefaultIdleStdio      = 30 * time.Minute // without a call until a child is stopped (contract §9)
	DefaultIdleHTTP       = 5 * time.Minute  // without a call until an HTTP session is ended
)

// A Server is one entry of mcp.json, checked, with its variables expanded.
type Server struct {
	Name        string
	Description string
	Origin      string // the file it comes from
	Transport   Transport
	// Inferred is set when the entry has a URL and no type: streamable HTTP is
	// tried first and SSE next.
	Inferred bool

	Command string
	Args    []string
	Env     map[string]string // added to our own environment
	Bare    bool              // Env is all of it; not in mcp.json
	Dir     string            // cwd; relative to the project; empty means the project

	URL     string
	Headers map[string]string
	OAuth   *OAuth

	Protocol       Era
	Timeout        time.Duration
	MaxTimeout     time.Duration
	ConnectTimeout time.Duration
	IdleTimeout    time.Duration // 0 or less: never
	Shared         bool

	expanded []string // what ${NAME} was replaced by
}

// OAuth is how to sign in to a server that wants it. Every field is optional:
// without a client ID the client registers itself where the server allows it.
type OAuth struct {
	ClientID     string
	ClientSecret string
	Scopes       []string
	CallbackPort int // of the loopback listener; 0 means any free one
}

// same reports whether a connection made for s serves o as well. How the values were
// written makes no difference.
func (s *Server) same(o *Server) bool {
	if s == o {
		return true
	}
	x, y := *s, *o
	x.expanded, y.expanded = nil, nil
	return reflect.DeepEqual(x, y)
}

// A fileContent is what one mcp.json says.
type fileContent struct {
	servers []*Server
	// hidden are names that are taken here although nothing can be used: the
	// entry is disabled, or lacks a variable (decision 25). A broken entry takes
	// no name.
	hidden   []string
	problems []problem
}

// A problem is an error in one entry, or in the file when server is empty.
type problem struct {
	server string
	at     *configs.Problem
	usable bool // the entry counts all the same
	kept   bool // the entry, or the file, counts as it was before
}

// keep has what cannot be understood count as it did before: an entry, or the file.
func (c *fileContent) keep(last fileContent) {
	for i := range c.problems {
		p := &c.problems[i]
		switch {
		case p.usable || errors.Is(p.at, core.ErrDisabled):
		case p.server == "" && len(c.servers) == 0:
			c.servers, c.hidden = last.servers, last.hidden
			p.kept = len(last.servers) > 0
		case p.server != "":
			named := func(s *Server) bool { return s.Name == p.server }
			at := slices.IndexFunc(last.servers, named)
			if p.kept = at >= 0; p.kept && !slices.ContainsFunc(c.servers, named) {
				c.servers = slices.Insert(slices.Clone(c.servers), min(at, len(c.servers)), last.servers[at])
				c.hidden = slices.DeleteFunc(slices.Clone(c.hidden), func(name string) bool { return name == p.server })
			}
		}
	}
}

// parseFile reads one mcp.json. lookup finds environment variables.
func parseFile(doc *configs.Document, lookup func(string) (string, bool)) fileContent {
	var out fileContent
	fail := func(server string, at *configs.Document, err error) {
		out.problems = append(out.problems, problem{server: server, at: at.Problem(err)})
	}
	list, found := doc.At("mcpServers")
	switch {
	case doc.Kind() != rawjson.Object:
		fail("", doc, errors.New(`must be an object with "mcpServers"`))
		return out
	case !found:
		if other, ok := doc.At("servers"); ok {
			fail("", other, errors.New(`is not read here; name it "mcpServers"`))
		}
		return out
	case list.Kind() != rawjson.Object && list.Kind() != rawjson.Null:
		fail("", list, errors.New("must be an object, one member for each server"))
		return out
	}
	for _, m := range list.Members() {
		if m.Name == "" {
			fail("", m.Value, errors.New("a server needs a name"))
			continue
		}
		e := parseEntry(m.Name, m.Value.JSON(), lookup)
		for _, err := range e.warnings {
			out.problems = append(out.problems, problem{server: m.Name, at: m.Value.Problem(err), usable: e.err == nil})
		}
		if e.err != nil {
			fail(m.Name, m.Value, e.err)
		}
		switch {
		case e.takesName:
			out.hidden = append(out.hidden, m.Name)
			if e.err == nil {
				fail(m.Name, m.Value, core.InField("disabled", fmt.Errorf("%w in its entry", core.ErrDisabled)))
			}
		case e.err == nil:
			e.server.Origin = doc.File()
			out.servers = append(out.servers, e.server)
		}
	}
	return out
}

// An entry is what parseEntry makes of one member of mcpServers.
type entry struct {
	server    *Server
	takesName bool    // hides lower entries of the name, though err may be set
	err       error   // the server cannot be used
	warnings  []error // it can, but something in it is not right
}

func parseEntry(name string, raw json.RawMessage, lookup func(string) (string, bool)) entry {
	members, err := rawjson.Members(raw)
	if err != nil {
		return entry{err: errors.New("must be an object")}
	}
	r := reader{fields: map[string]json.RawMessage{}, lookup: lookup}
	for _, f := range members {
		if rawjson.KindOf(f.Value) != rawjson.Null {
			r.fields[f.Name] = f.Value
		}
	}
	if disabled(r.fields["disabled"]) {
		return entry{takesName: true}
	}
	s := r.server(name)
	e := entry{server: s, err: r.err, warnings: r.warnings}
	if e.err == nil && r.missing != nil {
		e.err, e.takesName = r.missing, true
	}
	return e
}

// disabled takes everything for a yes that can only mean one (B49).
func disabled(raw json.RawMessage) bool {
	switch strings.ToLower(string(raw)) {
	case "", "false", "0", `"false"`, `""`:
		return false
	}
	return true
}

// known are the fields of an entry, for hints about misspelt ones. Others are
// ignored: every client has some of its own.
var known = []string{
	"type", "transport", "transportType", "command", "args", "env", "cwd", "url", "headers", "description", "disabled",
	"timeout", "maxTotalTimeout", "connectTimeout", "idleTimeout", "protocol", "shared", "oauth",
}
