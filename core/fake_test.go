package core

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// fake is a source, and its own offer, of capabilities that exist in the test
// only.
type fake struct {
	caps []Capability
	text string // what its tools say
	err  error  // of Discover
	why  error  // of Instantiate
	// needs maps names to what is missing for them.
	needs map[string]error
	// makes makes the tools; nil makes one of each permitted tool and sub-agent.
	makes func(permitted []Capability) []Tool
}

func (f fake) Discover(context.Context) (Offer, error) { return f, f.err }

func (f fake) Capabilities() []Capability { return f.caps }

func (f fake) Available(_ Config, _ AgentDefinition, c Capability) error { return f.needs[c.Name] }

func (f fake) Instantiate(_ *Scope, permitted []Capability) ([]Tool, error) {
	if f.makes != nil {
		return f.makes(permitted), f.why
	}
	var tools []Tool
	for _, c := range permitted {
		if c.Kind == KindTool || c.Kind == KindSubagent {
			tools = append(tools, fakeTool(c.Name, f.text))
		}
	}
	return tools, f.why
}

// fakeTool is a tool that answers with text and takes one of the choices, if
// there are any.
func fakeTool(name, text string, choices ...any) Tool {
	in := &jsonschema.Schema{Type: "object"}
	if len(choices) > 0 {
		in.Properties = map[string]*jsonschema.Schema{"choice": {Type: "string", Enum: choices}}
	}
	return Tool{Name: name, Description: text, Input: in, Run: func(context.Context, *Call) (*Result, error) {
		return TextResult(text), nil
	}}
}

func capabilities(kind Kind, names ...string) []Capability {
	out := make([]Capability, len(names))
	for i, n := range names {
		out[i] = Capability{kind, n}
	}
	return out
}

// realDir is a fresh folder under its real name: the system's folder for
// temporary files can be a link.
func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func openRoots(t testing.TB, dirs ...string) *Roots {
	t.Helper()
	roots, err := OpenRoots(dirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { roots.Close() })
	return roots
}

func mustPath(t testing.TB, s *Scope, given string) Path {
	t.Helper()
	p, err := s.Path(given)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
