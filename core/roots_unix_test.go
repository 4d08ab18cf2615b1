//go:build unix

package core

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An agent's own roots only ever take away.
func TestAgentRoots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in, in2 := w.base+"/in", w.base+"/in2"
	w.link(t, map[string]string{"away": w.base + "/out"})
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		server, agent []string
		roots         []string // nil: refused
		dir           string
	}{
		{[]string{"/"}, []string{"."}, []string{in}, in},
		{[]string{"/"}, []string{"d", in2}, []string{in + "/d", in2}, in + "/d"},
		{[]string{"/"}, []string{"~"}, []string{home}, home},
		{[]string{in, in2}, nil, []string{in, in2}, in},
		{[]string{in, in2}, []string{"d"}, []string{in + "/d"}, in + "/d"},
		{[]string{in, in2}, []string{in2 + "/sub", in}, []string{in2 + "/sub", in}, in},
		{[]string{in, in2}, []string{w.base}, []string{in, in2}, in},
		{[]string{in, in2}, []string{"/"}, []string{in, in2}, in},
		{[]string{in}, []string{in2}, nil, ""},
		{[]string{in}, []string{"d", in2}, nil, ""},
		{[]string{in}, []string{"../out"}, nil, ""},
		{[]string{in}, []string{"away"}, nil, ""},
		{[]string{in}, []string{"missing"}, nil, ""},
		{[]string{in}, []string{""}, nil, ""},
		{[]string{"/"}, []string{"missing"}, nil, ""},
	}
	for _, test := range tests {
		server := openRoots(t, test.server...)
		parent, err := NewScope(&Env{}, AgentDefinition{ID: "p"}, in, server)
		if err != nil {
			t.Fatal(err)
		}
		agent := AgentDefinition{ID: "a", Roots: test.agent}
		scope, err := NewScope(&Env{}, agent, in, server)
		run, errRun := parent.Child(agent) // a sub-agent is narrowed in the same way
		if test.roots == nil {
			if err == nil || errRun == nil || !strings.Contains(err.Error(), "the agent's own root") {
				t.Errorf("roots %q of an agent within %q: %v, %v; want errors about the agent's own root", test.agent, test.server, err, errRun)
			}
			continue
		}
		if err != nil || errRun != nil {
			t.Errorf("roots %q within %q: %v, %v", test.agent, test.server, err, errRun)
			continue
		}
		for _, s := range []*Scope{scope, run} {
			if !slices.Equal(s.Roots(), test.roots) || s.Dir() != test.dir {
				t.Errorf("roots %q within %q: %q in %q, want %q in %q", test.agent, test.server, s.Roots(), s.Dir(), test.roots, test.dir)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// What an agent's roots leave out is out of reach, also over links and for the
// runs of its sub-agents, whatever roots these name.
func TestAgentRootsConfine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parent, err := NewScope(&Env{}, AgentDefinition{Roots: []string{"d"}}, w.base+"/in", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	for _, s := range []*Scope{parent, child(t, parent, AgentDefinition{}), child(t, parent, AgentDefinition{Roots: []string{"/", w.base}})} {
		if data, _, err := mustPath(t, s, "f").ReadFile(t.Context()); err != nil || string(data) != "F" {
			t.Errorf("inside: %q, %v", data, err)
		}
		for _, given := range []string{"../a.txt", w.base + "/in/a.txt", w.base + "/out/secret.txt"} {
			if p, err := s.Path(given); err == nil || !strings.Contains(err.Error(), "outside") {
				t.Errorf("%q is reached as %q, %v", given, p.Abs, err)
			}
		}
	}
}

// C18 for the root itself: it is the same folder in another Unicode form, if the
// file system says so. A link stands in for a file system that does.
func TestRootInAnotherSpelling(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	composed, decomposed := filepath.Join(base, "caf\u00e9"), filepath.Join(base, "cafe\u0301")
	if err := os.Mkdir(decomposed, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(decomposed, "a"), []byte("A"), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := NewScope(&Env{}, AgentDefinition{}, decomposed, openRoots(t, decomposed))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(composed); err != nil { // two names to this file system
		if p, err := s.Path(filepath.Join(composed, "a")); err == nil {
			t.Errorf("a folder that does not exist is in a root: %q", p.Abs)
		}
		if err := os.Symlink(decomposed, composed); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(decomposed, filepath.Join(base, "CAFE\u0301")); err != nil {
			t.Fatal(err)
		}
	}
	for _, spelling := range []string{composed, filepath.Join(base, "CAFE\u0301")} {
		if data, _, err := mustPath(t, s, filepath.Join(spelling, "a")).ReadFile(t.Context()); err != nil || string(data) != "A" {
			t.Errorf("%q: %q, %v", spelling, data, err)
		}
	}
	if p, err := s.Path(composed + "x/a"); err == nil {
		t.Errorf("a longer name is in the root: %q", p.Abs)
	}
}
