package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Source knows where one family of capabilities comes from: the built-in
// tools, a folder of skills, the MCP servers of mcp.json. It is asked anew
// whenever files change.
type Source interface {
	// Discover looks at what there is. It runs no code that it finds, unless
	// that is the user's own or trusted, and permits nothing: it only lists. What cannot be read is reported as
	// joined [Omission] errors; the Offer holds the rest and is valid even
	// then. A nil Offer is an empty one. Other sources are asked at the same time.
	Discover(ctx context.Context) (Offer, error)
}

// An Offer is what a source found, once: an immutable snapshot.
type Offer interface {
	// Capabilities lists what there is, in the order of publication.
	Capabilities() []Capability
	// Instantiate makes the tools for a scope. It is given those of its own
	// capabilities that passed the filter and makes no tool beyond them, but
	// may leave tools out that make no sense now (a load_skill without
	// skills), returning the reasons as joined [Omission] errors. It must be
	// cheap and without effects: processes and connections start at the
	// first call. State that must outlive a reload belongs into [Local].
	Instantiate(scope *Scope, permitted []Capability) ([]Tool, error)
}

// A Selective offer has capabilities that are of use only with some
// configurations or agents.
type Selective interface {
	// Available returns nil, or an error that says what is missing.
	Available(config Config, agent AgentDefinition, c Capability) error
}

// A Superseding offer ends what earlier offers of its source hold.
type Superseding interface {
	// Supersede is called when the offer is in force: who asks from now on gets it.
	Supersede()
}

// A Catalog is what there is, before or after the filter. It does not change: a
// refresh is another catalog.
type Catalog struct {
	parts   []part
	omitted []Omission
}

type part struct {
	offer        Offer
	capabilities []Capability
}

// Discover is the first phase: it asks every source what there is, all at once.
// The order of the sources is the order of publication, and a later source wins a
// name. It fails only when ctx ends.
func Discover(ctx context.Context, sources ...Source) (Catalog, error) {
	offers, errs := make([]Offer, len(sources)), make([]error, len(sources))
	var wg sync.WaitGroup
	for i, s := range sources {
		wg.Go(func() { offers[i], errs[i] = s.Discover(ctx) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return Catalog{}, context.Cause(ctx)
	}
	var c Catalog
	for i, offer := range offers {
		c.omitted = append(c.omitted, Omissions(errs[i])...)
		if offer != nil {
			c.parts = append(c.parts, part{offer, offer.Capabilities()})
		}
	}
	return c, nil
}

// Capabilities lists what the catalog holds.
func (c Catalog) Capabilities() []Capability {
	var all []Capability
	for _, p := range c.parts {
		all = append(all, p.capabilities...)
	}
	return all
}

// Omitted lists what was left out so far, and why.
func (c Catalog) Omitted() []Omission { return slices.Clone(c.omitted) }

// Filter is the second phase: it keeps what is not excluded, what the agent's
// permissions let through, and what is of use with this configuration and
// agent. The first test that fails gives the reason. It is pure.
func (c Catalog) Filter(config Config, agent AgentDefinition, exclude ...Capability) Catalog {
	out := Catalog{omitted: slices.Clone(c.omitted)}
	for _, p := range c.parts {
		kept := part{offer: p.offer}
		selective, _ := p.offer.(Selective)
		for _, c := range p.capabilities {
			reason := ""
			if slices.Contains(exclude, c) {
				reason = "excluded here, so that an agent cannot call itself"
			} else if !agent.Permissions.Permits(c) {
				reason = fmt.Sprintf("not permitted by permissions.%s of the agent", c.Kind)
			} else if selective != nil {
				if err := selective.Available(config, agent, c); err != nil {
					reason = err.Error()
				}
			}
			if reason == "" {
				kept.capabilities = append(kept.capabilities, c)
			} else {
				out.omitted = append(out.omitted, Omission{Capability: c, Reason: reason})
			}
		}
		out.parts = append(out.parts, kept)
	}
	return out
}

// Instantiate is the third phase: it makes the tools of a filtered catalog for a
// scope. Of tools with the same name the last one wins and keeps its place, and a
// name that clients refuse is left out (decision 29).
func (c Catalog) Instantiate(scope *Scope) Published {
	out := Published{Omitted: slices.Clone(c.omitted)}
	for _, p := range c.parts {
		if skilled, ok := p.offer.(Skilled); ok {
			out.Skills = append(out.Skills, skilled.Skills(p.capabilities)...)
		}
		tools, err := p.offer.Instantiate(scope, p.capabilities)
		out.Omitted = append(out.Omitted, Omissions(err)...)
		for _, t := range tools {
			named := Capability{KindTool, t.Name}
			if err := CheckName(t.Name); err != nil {
				out.Omitted = append(out.Omitted, Omit(named, "", err))
				continue
			}
			before := len(out.Tools)
			out.Tools = slices.DeleteFunc(out.Tools, func(o Tool) bool { return o.Name == t.Name })
			if len(out.Tools) < before {
				out.Omitted = append(out.Omitted, Omission{Capability: named, Reason: "replaced by a later tool of the same name", Cause: &ShadowedError{}})
			}
			out.Tools = append(out.Tools, t.budgeted(scope))
		}
	}
	return out
}

// Published is what one scope offers: the tools and skills in their order, and
// what was left out on the way with the reasons.
type Published struct {
	Tools   []Tool
	Skills  []Skill
	Omitted []Omission
}

// Tool returns the tool of that name.
func (p Published) Tool(name string) (Tool, bool) {
	for _, t := range p.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// Names lists the names of the tools in their order.
func (p Published) Names() []string {
	names := make([]string, len(p.Tools))
	for i, t := range p.Tools {
		names[i] = t.Name
	}
	return names
}

// UnknownTool is the error for a name that is not published. A tool that is
// denied gets the same words as one that does not exist.
func (p Published) UnknownTool(name string) error {
	return fmt.Errorf("unknown tool %q%s", Clip(name, 80), DidYouMean(name, p.Names()))
}

// maxToolName is the longest name of a tool in bytes.
const maxToolName = 64

// CheckName reports names that MCP clients and chat completion APIs refuse: a
// tool's name is 1 to 64 ASCII letters, digits, underscores and hyphens.
func CheckName(name string) error {
	refused := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	if name == "" || len(name) > maxToolName || strings.IndexFunc(name, refused) >= 0 {
		return errors.New("clients refuse this name: use 1 to 64 letters, digits, _ or -")
	}
	return nil
}
