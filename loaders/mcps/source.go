// Package mcps lets an agent use other MCP servers: load_mcp connects to one and
// shows what it offers, call_mcp_tool calls one of its tools, read_mcp_resource
// reads one of its resources.
//
// The hop is faithful. What the other server answers is passed on as its own
// bytes, so blocks of unknown kinds, big integers and the order of keys survive;
// progress, cancellation and questions to the user go through, in all eras of
// the protocol. To that end the package has a client of its own, [peer], which
// forwards and does not decode.
//
// Servers are declared in mcp.json files (config.go). A scope has connections of
// its own, which start when they are first needed and end with it (pool.go).
package mcps

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"zenmcp/configs"
	"zenmcp/core"
)

// Options say what a source works with.
type Options struct {
	// Places say where the mcp.json files are and what the project is.
	Places *configs.Places
	// Version is ours, told to servers.
	Version string
	// LookupEnv finds environment variables; nil means os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// SignIn has a person open an address in a browser, to sign in to the server
	// of that name; it returns without waiting for that. Nil means that there is
	// no person here, and that errors say what to run where there is one.
	SignIn func(ctx context.Context, server, address string) error
	// ReadOnly writes no file: a sign-in that has expired is not renewed, since the
	// new one could not be kept.
	ReadOnly bool
}

// A Source is the MCP servers of mcp.json. It outlives reloads: it owns what is
// known about servers, and the connections that scopes share.
type Source struct {
	opts Options

	mu      sync.Mutex
	legacy  map[string]bool        // by [Server.address]: initialize was what worked
	shared  map[string]*sharedPool // by the id of the client's agent
	wallets map[string]*wallet     // by address
	offered []*Server              // by the latest Discover

	pools sync.Map                      // of *pool, those that are open
	good  configs.LastGood[fileContent] // by file
}

var _ core.Source = (*Source)(nil)

// New makes a source. It reads nothing yet.
func New(o Options) *Source {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	return &Source{opts: o, legacy: map[string]bool{}, shared: map[string]*sharedPool{}, wallets: map[string]*wallet{}}
}

// Discover reads the mcp.json files. The first file that has a name wins it. What
// cannot be understood, a file or an entry, counts as it was when it could. No server
// is started or contacted. When the offer supersedes another, connections whose entry
// has changed or is gone end after their calls.
func (s *Source) Discover(context.Context) (core.Offer, error) {
	places, err := s.opts.Places.Of(core.KindMCP)
	r := filesReader{lookup: s.opts.LookupEnv, offer: &offer{source: s, broken: map[string]string{}}, taken: map[string]string{},
		errs: []error{err}, round: s.good.Round()}
	for _, place := range places {
		r.file(place.Path)
	}
	r.round.End()
	return r.offer, errors.Join(r.errs...)
}

// A filesReader makes an offer of files, those that win first.
type filesReader struct {
	lookup func(string) (string, bool)
	offer  *offer
	taken  map[string]string // by the names that are settled: the file that did it
	errs   []error
	round  *configs.Round[fileContent]
}

func (r *filesReader) file(path string) {
	doc, err := configs.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var content fileContent
	if err == nil {
		content = parseFile(doc, r.lookup)
	}
	for _, p := range configs.Problems(err) {
		content.problems = append(content.problems, problem{at: p})
	}
	content.keep(r.round.Last(path))
	r.round.Settle(path, content, nil)
	settled := slices.Clone(content.hidden)
	for _, server := range content.servers {
		if by, taken := r.taken[server.Name]; taken {
			shadowed := &configs.Problem{File: path, Err: &core.ShadowedError{By: by}}
			if doc != nil {
				member, _ := doc.At("mcpServers", server.Name)
				shadowed = member.Problem(shadowed.Err)
			}
			r.errs = append(r.errs, shadowed.Omission(core.Capability{Kind: core.KindMCP, Name: server.Name}))
			continue
		}
		r.offer.servers = append(r.offer.servers, server)
		delete(r.offer.broken, server.Name)
		settled = append(settled, server.Name)
	}
	for _, p := range content.problems {
		if _, taken := r.taken[p.server]; taken {
			continue
		}
		if p.server != "" && !p.usable && !p.kept && !errors.Is(p.at, core.ErrDisabled) {
			r.offer.broken[p.server] = p.at.Error()
		}
		o := p.at.Omission(core.Capability{Kind: core.KindMCP, Name: p.server})
		o.Offered = p.usable
		if p.kept {
			o = configs.Kept(o)
		}
		r.errs = append(r.errs, o)
	}
	for _, name := range settled {
		r.taken[name] = path
	}
}

// An offer is the servers at one time.
type offer struct {
	source  *Source
	servers []*Server
	// broken are servers that are declared and cannot be used, with the reason,
	// for who asks for one by name.
	broken map[string]string
}

// The names of the tools.
const (
	loadName = "load_mcp"
	callName = "call_mcp_tool"
	readName = "read_mcp_resource"
)

func (o *offer) Capabilities() []core.Capability {
	caps := []core.Capability{{Kind: core.KindTool, Name: loadName}, {Kind: core.KindTool, Name: callName}, {Kind: core.KindTool, Name: readName}}
	for _, server := range o.servers {
		caps = append(caps, core.Capability{Kind: core.KindMCP, Name: server.Name})
	}
	return caps
}

// Supersede ends connections to what is not offered any more.
func (o *offer) Supersede() { o.source.retire(o.servers) }

func (o *offer) Instantiate(scope *core.Scope, permitted []core.Capability) ([]core.Tool, error) {
	t := &toolset{source: o.source, broken: o.broken, tools: map[string]bool{}}
	for _, server := range o.servers {
		if slices.Contains(permitted, core.Capability{Kind: core.KindMCP, Name: server.Name}) {
			t.servers = append(t.servers, server)
		}
	}
	var names []string
	for _, c := range permitted {
		if c.Kind == core.KindTool {
			names = append(names, c.Name)
			t.tools[c.Name] = true
		}
	}
	var tools []core.Tool
	var errs []error
	for _, name := range names {
		if len(t.servers) == 0 {
			errs = append(errs, core.Omission{Capability: core.Capability{Kind: core.KindTool, Name: name},
				Reason: "no MCP server that the agent may use is configured"})
			continue
		}
		tools = append(tools, t.definition(name).Bind(scope))
	}
	return tools, errors.Join(errs...)
}
