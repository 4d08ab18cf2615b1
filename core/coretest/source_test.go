package coretest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core"
)

// skills is a small source as they should be: a tool of its own, and one that
// offers a choice of skills. The tests break it, one rule at a time.
type skills struct {
	names       []string
	discover    func() (core.Offer, error)
	instantiate func(scope *core.Scope, permitted []core.Capability, tools []core.Tool) ([]core.Tool, error)
	change      func(*core.Tool)
}

func (s skills) Discover(context.Context) (core.Offer, error) {
	if s.discover != nil {
		return s.discover()
	}
	return s, nil
}

func (s skills) Capabilities() []core.Capability {
	all := []core.Capability{{Kind: core.KindTool, Name: "plain"}, {Kind: core.KindTool, Name: "choose"}}
	for _, n := range s.names {
		all = append(all, core.Capability{Kind: core.KindSkill, Name: n})
	}
	return all
}

func (s skills) Instantiate(scope *core.Scope, permitted []core.Capability) ([]core.Tool, error) {
	var tools []core.Tool
	var left error
	if slices.Contains(permitted, core.Capability{Kind: core.KindTool, Name: "plain"}) {
		tools = append(tools, core.Define(core.Tool{Name: "plain", Description: "Does nothing."}, run[struct{}]).Bind(scope))
	}
	var choices []any
	for _, c := range permitted {
		if c.Kind == core.KindSkill {
			choices = append(choices, c.Name)
		}
	}
	choose := core.Capability{Kind: core.KindTool, Name: "choose"}
	switch {
	case !slices.Contains(permitted, choose):
	case len(choices) == 0:
		left = core.Omission{Capability: choose, Reason: "there are no skills"}
	default:
		in := core.SchemaFor[choice]()
		in.Properties["skill"].Enum = choices
		tools = append(tools, core.Define(core.Tool{Name: "choose", Description: "Chooses.", Input: in}, run[choice]).Bind(scope))
	}
	if s.change != nil {
		for i := range tools {
			s.change(&tools[i])
		}
	}
	if s.instantiate != nil {
		return s.instantiate(scope, permitted, tools)
	}
	return tools, left
}

type choice struct {
	Skill string   `json:"skill" jsonschema:"which one"`
	More  []string `json:"more,omitempty"`
}

func run[In any](context.Context, *core.Call, In) (*core.Result, error) {
	return core.TextResult("done"), nil
}

// recorder is a T that keeps what it is told.
type recorder struct {
	*testing.T
	mu     sync.Mutex
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestGoodSource(t *testing.T) {
	t.Parallel()
	TestSource(t, skills{names: []string{"a", "b", "c"}},
		core.Capability{Kind: core.KindTool, Name: "choose"}, core.Capability{Kind: core.KindSkill, Name: "b"})
	TestSource(t, skills{}, core.Capability{Kind: core.KindTool, Name: "plain"})
	TestSource(t, skills{discover: func() (core.Offer, error) { return nil, errors.New("nothing can be read") }})
}

// TestBadSources breaks each rule and checks that the suite says so.
func TestBadSources(t *testing.T) {
	t.Parallel()
	var made, discovered atomic.Int64
	tests := map[string]struct {
		source skills
		want   string
	}{
		"more than permitted": {skills{instantiate: func(scope *core.Scope, _ []core.Capability, _ []core.Tool) ([]core.Tool, error) {
			return []core.Tool{core.Define(core.Tool{Name: "plain", Description: "d"}, run[struct{}]).Bind(scope)}, nil
		}}, `made tool "plain" with only []`},
		"no reason": {skills{instantiate: func(_ *core.Scope, _ []core.Capability, tools []core.Tool) ([]core.Tool, error) {
			return tools, nil
		}}, "gave no reason"},
		"another order": {skills{names: []string{"a"}, instantiate: func(_ *core.Scope, _ []core.Capability, tools []core.Tool) ([]core.Tool, error) {
			if made.Add(1)%2 == 0 {
				slices.Reverse(tools)
			}
			return tools, core.Omission{Capability: core.Capability{Kind: core.KindTool, Name: "choose"}, Reason: "r"}
		}}, "made other tools"},
		"changes the list": {skills{instantiate: func(_ *core.Scope, permitted []core.Capability, tools []core.Tool) ([]core.Tool, error) {
			slices.Reverse(permitted)
			return tools, nil
		}}, "changed the list"},
		"leaves a file": {skills{instantiate: func(scope *core.Scope, _ []core.Capability, tools []core.Tool) ([]core.Tool, error) {
			return tools, os.WriteFile(filepath.Join(scope.Dir(), "trace"), nil, 0o600)
		}}, "left [- trace]"},
		"takes anything": {skills{names: []string{"a", "b"}, change: func(tool *core.Tool) {
			tool.Run = func(context.Context, *core.Call) (*core.Result, error) { return core.TextResult("done"), nil }
		}}, `tool "choose" takes "b", which is not permitted`},
		"tells denied from unknown": {skills{names: []string{"a", "b"}, change: func(tool *core.Tool) {
			tool.Run = func(_ context.Context, call *core.Call) (*core.Result, error) {
				if strings.Contains(string(call.Arguments), `"b"`) {
					return nil, errors.New(`"b" is not permitted`)
				}
				return core.ErrorResult(errors.New("unknown skill")), nil
			}
		}}, "from an unknown name"},
		"no description": {skills{change: func(tool *core.Tool) { tool.Description = " " }}, "has no description"},
		"an unusable name": {skills{discover: func() (core.Offer, error) {
			return skills{names: []string{""}}, nil
		}}, "has no kind or no name"},
		"discovers in another order": {skills{discover: func() (core.Offer, error) {
			names := []string{"a", "b"}
			if discovered.Add(1)%3 == 0 {
				slices.Reverse(names)
			}
			return skills{names: names}, nil
		}}, "in another order"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{T: t}
			TestSource(r, test.source)
			if !slices.ContainsFunc(r.errors, func(e string) bool { return strings.Contains(e, test.want) }) {
				t.Errorf("the suite says %q, want one with %q", r.errors, test.want)
			}
		})
	}
	r := &recorder{T: t}
	TestSource(r, skills{}, core.Capability{Kind: core.KindMCP, Name: "x"})
	TestSource(r, skills{discover: func() (core.Offer, error) { return nil, nil }}, core.Capability{Kind: core.KindMCP, Name: "y"})
	if len(r.errors) != 2 || !strings.Contains(r.errors[0], "mcps:x is not offered") || !strings.Contains(r.errors[1], "mcps:y is not offered") {
		t.Errorf("for capabilities that are missing the suite says %q", r.errors)
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	str := &jsonschema.Schema{Type: "string"}
	object := func(change func(*jsonschema.Schema)) *jsonschema.Schema {
		s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"p": {Type: "string"}}}
		change(s)
		return s
	}
	for _, c := range []struct {
		in   *jsonschema.Schema
		want string
	}{
		{core.SchemaFor[choice](), ""},
		{nil, "must be an object's, not null"},
		{str, "must be an object's"},
		{object(func(s *jsonschema.Schema) { s.OneOf = []*jsonschema.Schema{str} }), "oneOf at the top"},
		{object(func(s *jsonschema.Schema) { s.Ref = "#/x" }), "$ref at the top"},
		{object(func(s *jsonschema.Schema) { s.Required = []string{"q"} }), `requires "q"`},
		{object(func(s *jsonschema.Schema) { s.Properties["p"] = &jsonschema.Schema{Types: []string{"null", "string"}} }), "input.p has a type with null"},
		{object(func(s *jsonschema.Schema) {
			s.Properties["p"] = &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "array"}}
		}), "input.p.items is an array without items"},
		{object(func(s *jsonschema.Schema) {
			s.Properties["p"] = object(func(s *jsonschema.Schema) { s.Properties["q"] = &jsonschema.Schema{Type: "array"} })
		}), "input.p.q is an array without items"},
	} {
		tool := core.Tool{Name: "t", Description: "d", Input: c.in, Run: func(context.Context, *core.Call) (*core.Result, error) { return nil, nil }}
		err := Lint(tool)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	err := Lint(core.Tool{Name: "a b", Hints: core.Hints{ReadOnly: true, Destructive: true}})
	for _, want := range []string{"refuse this name", "no description", "nothing to run", "it destroys"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
