// Package coretest is what implementers of core's interfaces prove themselves
// with, [TestSource] for sources of capabilities, [Lint] for tools and
// [TestSchema] for the JSON Schemas of files, and what stands in for something else:
// the [Script] for a chat model, the [Buffer] for a log.
package coretest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"zenmcp/core"
)

// T is the part of *testing.T that the suites need.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
	Cleanup(func())
	TempDir() string
}

// TestSource checks that a source keeps the contract of [core.Source] and
// [core.Offer], and that it offers everything in wants:
//
//   - what it lists, and the tools it makes of that, is the same in the same
//     order every time, on many goroutines too;
//   - it makes no tool beyond those permitted, whichever are, and says why it
//     leaves one out;
//   - making tools leaves no traces, neither on disk nor in what it was given;
//   - its tools pass [Lint];
//   - a choice in a tool's schema is something permitted, and a call that names
//     anything else is answered as one that names nothing there is.
func TestSource(t T, source core.Source, wants ...core.Capability) {
	t.Helper()
	s := suite{T: t, source: source, offer: discover(t, source), env: &core.Env{StateDir: t.TempDir(), Models: Replies().Models}, dir: t.TempDir()}
	if s.offer == nil {
		for _, w := range wants {
			t.Errorf("%v is not offered: Discover gave no offer", w)
		}
		return
	}
	catalog, err := core.Discover(t.Context(), source)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.env.Update(core.Config{}, catalog)
	s.all = slices.Clone(s.offer.Capabilities())
	s.testCapabilities(wants)
	s.testAll()
	s.testSubsets()
	s.testConcurrency()
}

type suite struct {
	T
	source core.Source
	offer  core.Offer
	env    *core.Env
	dir    string // the working directory of all scopes
	all    []core.Capability
	order  []string // of the tools when everything is permitted
}

func discover(t T, source core.Source) core.Offer {
	t.Helper()
	offer, err := source.Discover(t.Context())
	for _, o := range core.Omissions(err) {
		if o.Reason == "" {
			t.Errorf("Discover leaves out %v without a reason", o)
		}
	}
	return offer
}

func (s *suite) testCapabilities(wants []core.Capability) {
	s.Helper()
	for _, c := range s.all {
		if !slices.Contains(core.Kinds(), c.Kind) || c.Name == "" {
			s.Errorf("capability %#v has no kind or no name", c)
		}
	}
	for _, w := range wants {
		if !slices.Contains(s.all, w) {
			s.Errorf("%v is not offered; there are %v", w, s.all)
		}
	}
	again := discover(s.T, s.source)
	if again == nil || !slices.Equal(again.Capabilities(), s.all) {
		s.Errorf("a second Discover lists something else, or in another order")
	}
}

// testAll permits everything.
func (s *suite) testAll() {
	s.Helper()
	scope := s.scope(s.all)
	tools := s.instantiate(scope, s.all)
	s.order = names(tools)
	for _, tool := range tools {
		if err := Lint(tool); err != nil {
			s.Errorf("%v", err)
		}
	}
	if again := s.instantiate(scope, s.all); !same(again, tools) {
		s.Errorf("the same Instantiate again made other tools: %q, then %q", names(tools), names(again))
	}
	if other := s.instantiate(s.scope(s.all), s.all); !same(other, tools) {
		s.Errorf("Instantiate for another scope made other tools: %q, then %q", names(tools), names(other))
	}
	if !slices.Equal(s.offer.Capabilities(), s.all) {
		s.Errorf("Instantiate changed the capabilities of the offer")
	}
}

// testSubsets permits nothing, each capability alone, and all but each.
func (s *suite) testSubsets() {
	s.Helper()
	subsets := [][]core.Capability{nil}
	for _, c := range s.all {
		rest := slices.DeleteFunc(slices.Clone(s.all), func(o core.Capability) bool { return o == c })
		subsets = append(subsets, []core.Capability{c}, rest)
	}
	for _, permitted := range subsets {
		scope := s.scope(permitted)
		tools := s.instantiate(scope, permitted)
		next := 0
		for _, name := range names(tools) {
			i := slices.Index(s.order[next:], name)
			if i < 0 {
				s.Errorf("with %v permitted the tools are %q, in another order than %q", permitted, names(tools), s.order)
				break
			}
			next += i + 1
		}
		for _, tool := range tools {
			s.testChoices(scope, tool, permitted)
		}
	}
}

// testChoices looks at arguments whose schema lists choices: none of them may be
// a capability that is not permitted, and calls with such a name are refused in
// the words for a name that nobody has.
func (s *suite) testChoices(scope *core.Scope, tool core.Tool, permitted []core.Capability) {
	s.Helper()
	for argument, property := range tool.Input.Properties {
		isChoice := func(c core.Capability) bool { return slices.Contains(property.Enum, any(c.Name)) }
		if c := slices.IndexFunc(permitted, isChoice); c < 0 || permitted[c].Kind == core.KindTool {
			continue // no choice among capabilities
		}
		for _, c := range s.all {
			if slices.ContainsFunc(permitted, func(p core.Capability) bool { return p.Name == c.Name }) {
				continue
			}
			if isChoice(c) {
				s.Errorf("tool %q offers %v, which is not permitted", tool.Name, c)
				continue
			}
			nobody := strings.Repeat("~", len(c.Name)) // a name that nobody has
			denied, unknown := s.refusal(tool, argument, c.Name), s.refusal(tool, argument, nobody)
			if denied != unknown {
				s.Errorf("tool %q tells a denied %v from an unknown name:\n%s\n%s", tool.Name, c, denied, unknown)
			}
		}
	}
}

// refusal is what a tool says to a choice, the name taken out, and without the
// advice that may follow a semicolon: that depends on the spelling of the name.
func (s *suite) refusal(tool core.Tool, argument, name string) string {
	s.Helper()
	arguments, err := json.Marshal(map[string]string{argument: name})
	if err != nil {
		s.Fatalf("%v", err)
	}
	result, err := tool.Run(s.Context(), &core.Call{Arguments: arguments})
	switch {
	case err != nil:
	case result != nil && result.IsError:
		err = errors.New(result.Text())
	default:
		s.Errorf("tool %q takes %q, which is not permitted, for %s", tool.Name, name, argument)
		return ""
	}
	refusal, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), strconv.Quote(name), "NAME"), ";")
	return refusal
}

// testConcurrency is for the race detector, and for what goes wrong without it.
func (s *suite) testConcurrency() {
	s.Helper()
	shared := s.scope(s.all)
	var wg sync.WaitGroup
	for range 4 {
		own := s.scope(s.all)
		wg.Go(func() {
			offer := discover(s.T, s.source)
			if offer == nil || !slices.Equal(offer.Capabilities(), s.all) {
				s.Errorf("Discover on several goroutines lists something else")
				return
			}
			for _, scope := range []*core.Scope{shared, own} {
				if got, _ := s.offer.Instantiate(scope, slices.Clone(s.all)); !slices.Equal(names(got), s.order) {
					s.Errorf("Instantiate on several goroutines made %q, want %q", names(got), s.order)
				}
			}
		})
	}
	wg.Wait()
}

// scope makes a scope whose agent is permitted exactly the capabilities given.
func (s *suite) scope(permitted []core.Capability) *core.Scope {
	s.Helper()
	byKind := map[core.Kind][]string{}
	for _, c := range permitted {
		byKind[c.Kind] = append(byKind[c.Kind], c.Name)
	}
	agent := core.AgentDefinition{ID: "coretest", Permissions: core.Permissions{}}
	for kind, names := range byKind {
		agent.Permissions[kind] = core.Allow(names...)
	}
	scope, err := core.NewScope(s.env, agent, s.dir, nil)
	if err != nil {
		s.Fatalf("%v", err)
	}
	s.Cleanup(func() {
		if err := scope.Close(); err != nil {
			s.Errorf("closing a scope: %v", err)
		}
	})
	return scope
}

// instantiate makes tools and checks what holds every time.
func (s *suite) instantiate(scope *core.Scope, permitted []core.Capability) []core.Tool {
	s.Helper()
	given := slices.Clone(permitted)
	tools, err := s.offer.Instantiate(scope, given)
	if !slices.Equal(given, permitted) {
		s.Errorf("Instantiate changed the list of what is permitted")
	}
	for _, dir := range []string{scope.Dir(), scope.StateDir()} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			s.Errorf("Instantiate left %v in a folder of the scope (%v)", entries, err)
		}
	}
	made := names(tools)
	for _, name := range made {
		if !slices.ContainsFunc(permitted, func(c core.Capability) bool { return c.Name == name && isTool(c) }) {
			s.Errorf("Instantiate made tool %q with only %v permitted", name, permitted)
		}
	}
	omitted := core.Omissions(err)
	for _, c := range permitted {
		explained := slices.ContainsFunc(omitted, func(o core.Omission) bool { return o.Capability == c && o.Reason != "" })
		if isTool(c) && !explained && !slices.Contains(made, c.Name) {
			s.Errorf("Instantiate made no tool of %v, with %v permitted, and gave no reason", c, permitted)
		}
	}
	return tools
}

// isTool reports whether a capability becomes a tool of its name.
func isTool(c core.Capability) bool { return c.Kind == core.KindTool || c.Kind == core.KindSubagent }

func names(tools []core.Tool) []string {
	out := make([]string, len(tools))
	for i, t := range tools {
		out[i] = t.Name
	}
	return out
}

// same reports whether tools look the same to a client.
func same(a, b []core.Tool) bool {
	return slices.EqualFunc(a, b, func(x, y core.Tool) bool {
		xs, errX := json.Marshal(x.Input)
		ys, errY := json.Marshal(y.Input)
		return errX == nil && errY == nil && bytes.Equal(xs, ys) && x.Name == y.Name && x.Title == y.Title &&
			x.Description == y.Description && x.Hints == y.Hints && reflect.DeepEqual(x.Meta, y.Meta)
	})
}
