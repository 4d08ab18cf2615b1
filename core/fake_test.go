package core

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// fake is a source, and its own offer, of capabilities that exist in the test
// only. Of tools and sub-agents it makes a tool each, unless makes says which
// names it makes of all that it is permitted.
type fake struct {
	caps  []Capability
	err   error // of Discover
	why   error // of Instantiate
	text  string
	makes func(permitted []Capability) []string
	// needs maps names to what is missing for them.
	needs map[string]error
}

func (f fake) Discover(context.Context) (Offer, error) { return f, f.err }

func (f fake) Capabilities() []Capability { return f.caps }

func (f fake) Available(_ Config, _ AgentDefinition, c Capability) error { return f.needs[c.Name] }

func (f fake) Instantiate(_ *Scope, permitted []Capability) ([]Tool, error) {
	var names []string
	if f.makes != nil {
		names = f.makes(permitted)
	} else {
		for _, c := range permitted {
			if c.Kind == KindTool || c.Kind == KindSubagent {
				names = append(names, c.Name)
			}
		}
	}
	tools := make([]Tool, len(names))
	for i, name := range names {
		tools[i] = Tool{
			Name: name, Description: f.text, Input: &jsonschema.Schema{Type: "object"},
			Run: func(context.Context, *Call) (*Result, error) { return TextResult(f.text), nil },
		}
	}
	return tools, f.why
}

func capabilities(kind Kind, names ...string) []Capability {
	out := make([]Capability, len(names))
	for i, n := range names {
		out[i] = Capability{kind, n}
	}
	return out
}

// has reports whether a capability of that kind and name, or with no name any of
// that kind, is among caps.
func has(caps []Capability, kind Kind, name string) bool {
	return slices.ContainsFunc(caps, func(c Capability) bool { return c.Kind == kind && (name == "" || c.Name == name) })
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
