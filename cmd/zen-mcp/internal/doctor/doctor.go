// Package doctor finds out what is wrong with an installation: in its files, in
// what they describe, on the machine, and in the clients.
//
// [Run] makes all checks, in the order of the table in this file, and goes on when
// one finds something. Everything is read by the packages that use it otherwise, so
// that what doctor sees is what serves. It writes nothing, and starts nothing that a
// server would not start for the same flags.
package doctor

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"

	"zenmcp/configs"
	"zenmcp/configs/clients"
	"zenmcp/core"
	"zenmcp/core/llm"
)

// Options say what to look at: what the flags of a server would say.
type Options struct {
	Version  string
	Places   configs.Options
	Agents   []string // ids; none means the one that would be served
	Commands core.CommandReach
	// Dir finds the working directory, and Roots the roots and, with them, the
	// directory that counts.
	Dir   func(project string) (string, error)
	Roots func(dir string) (*core.Roots, string, error)
	// Narrow takes away from permissions what --allow and --deny do. Named are the
	// names in these flags, by the flag.
	Narrow func(core.Permissions) core.Permissions
	Named  map[string][]core.Capability
	// Sources makes the sources of a server, which write nothing.
	Sources func(*configs.Places) []core.Source
	// Boundary says what a scope can reach.
	Boundary func(*core.Scope) string
	// Client has its entry started as it would start it; nil looks at files only.
	Client *clients.Client
	// Online lets endpoints be asked whether they accept their keys.
	Online bool
	Log    *slog.Logger
}

// checks lists the checks in their order: each may use what those before it found.
func checks() []struct {
	name string
	run  func(*exam, context.Context)
} {
	return []struct {
		name string
		run  func(*exam, context.Context)
	}{
		{"files", (*exam).files},
		{"configuration", (*exam).configuration},
		{"roots", (*exam).boundary},
		{"agents", (*exam).definitions},
		{"skills", (*exam).skills},
		{"sub-agents", (*exam).subAgents},
		{"user tools", (*exam).userTools},
		{"MCP servers", (*exam).servers},
		{"endpoints", (*exam).endpoints},
		{"commands", (*exam).commands},
		{"state", (*exam).state},
		{"clients", (*exam).clients},
	}
}

// An exam is the checks under way, and what they have found out.
type exam struct {
	Options
	now      *Check // that runs
	reported map[Finding]bool

	places    *configs.Places // nil when they could not be found
	untrusted map[string]bool // places of the project that are left out
	offers    []*recorded
	catalog   core.Catalog
	config    core.Config
	broken    bool // config.json is
	dir       string
	roots     *core.Roots
	served    []served
}

// A served agent is one that a server with these flags would publish.
type served struct {
	agent     configs.Agent
	published core.Published
}

// Run makes all checks. It returns when ctx ends, at the latest.
func Run(ctx context.Context, o Options) (*Report, error) {
	e := &exam{Options: o, reported: map[Finding]bool{}, untrusted: map[string]bool{}}
	r := &Report{Version: o.Version, System: runtime.GOOS + "/" + runtime.GOARCH}
	defer func() { _ = e.roots.Close() }()
	for _, check := range checks() {
		e.now = &Check{Name: check.name, Level: OK, Facts: []Fact{}, Findings: []Finding{}}
		check.run(e, ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for _, f := range e.now.Findings {
			switch f.Level {
			case Error:
				r.Errors++
			case Warning:
				r.Warnings++
			}
		}
		r.Checks = append(r.Checks, *e.now)
	}
	return r, nil
}

// fact notes something that was looked at.
func (e *exam) fact(name, format string, args ...any) { e.now.fact(name, format, args...) }

// find notes what is wrong, unless that is known: several things can be read from
// one file.
func (e *exam) find(id string, err error) {
	f := finding(id, err)
	if !e.reported[f] {
		e.reported[f] = true
		e.now.add(f)
	}
}

// problems notes what is wrong in a file. fatal says that nothing in it counts.
func (e *exam) problems(found []*configs.Problem, fatal bool) {
	for _, p := range found {
		id := "config-warning"
		if fatal {
			id = "config-value"
		}
		e.find(classified(p, id), p)
	}
}

// omissions notes what is wrong with the things of a dimension.
func (e *exam) omissions(kind core.Kind) {
	for _, o := range e.catalog.Omitted() {
		if o.Kind != kind || e.untrusted[o.Origin] {
			continue
		}
		id := "config-warning"
		switch {
		case kind == "":
		case !o.Offered:
			id = nouns[kind] + "-broken"
		case kind == core.KindSkill || kind == core.KindMCP:
			id = nouns[kind] + "-warning"
		}
		e.find(classified(o, id), o)
	}
}

// nouns begin the codes of the dimensions.
var nouns = map[core.Kind]string{core.KindTool: "tool", core.KindSkill: "skill", core.KindMCP: "mcp", core.KindSubagent: "subagent"}

// classified is the code of an error whose class says more than where it comes
// from, else the code given.
func classified(err error, otherwise string) string {
	for class, id := range map[configs.Class]string{
		configs.Unreadable: "config-syntax", configs.UnknownKey: "config-key", configs.Twice: "config-twice",
		configs.Unresolved: "config-reference", configs.Exposed: "secret-readable", configs.Limited: "agent-limited",
		configs.NoHome: "home-missing", configs.Guessed: "project-guess",
	} {
		if errors.Is(err, class) {
			return id
		}
	}
	var unset *core.UnsetError
	var shadowed *core.ShadowedError
	var o core.Omission
	switch {
	case errors.As(err, &unset):
		return "variable-unset"
	case errors.As(err, &shadowed) && errors.As(err, &o) && o.Kind == core.KindTool:
		return "tool-replaced"
	case errors.As(err, &shadowed):
		return "name-shadowed"
	case errors.Is(err, core.ErrDisabled):
		return "switched-off"
	case missing(err):
		return "command-missing"
	}
	return otherwise
}

// A recorded source remembers what it offered.
type recorded struct {
	core.Source
	offer core.Offer
}

func (r *recorded) Discover(ctx context.Context) (core.Offer, error) {
	offer, err := r.Source.Discover(ctx)
	r.offer = offer
	return offer, err
}

// discover makes the catalog.
func (e *exam) discover(ctx context.Context) {
	var sources []core.Source
	for _, s := range e.Sources(e.places) {
		r := &recorded{Source: s}
		e.offers = append(e.offers, r)
		sources = append(sources, r)
	}
	// It fails only when ctx ends, which Run notices.
	e.catalog, _ = core.Discover(ctx, sources...)
}

// environment is what scopes are made in.
func (e *exam) environment() *core.Env {
	env := &core.Env{Log: e.Log, StateDir: e.places.State, Models: new(llm.Service).Model, Commands: e.Commands}
	env.Update(e.config, e.catalog)
	return env
}

// named lists the names of a dimension that exist: those that are offered, and
// those that would be.
func (e *exam) named(kind core.Kind) []string {
	var names []string
	for _, c := range e.catalog.Capabilities() {
		if c.Kind == kind {
			names = append(names, c.Name)
		}
	}
	for _, o := range e.catalog.Omitted() {
		if o.Kind == kind && o.Name != "" {
			names = append(names, o.Name)
		}
	}
	return names
}

// partial reports whether a dimension has names that are not known: those in a file
// that cannot be read, or that the project would bring.
func (e *exam) partial(kind core.Kind) bool {
	return slices.ContainsFunc(e.catalog.Omitted(), func(o core.Omission) bool { return o.Kind == kind && o.Name == "" })
}
