package configs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zenmcp/configs"
	"zenmcp/core"
)

// used lists the project's places that would run code, and are used.
func used(t *testing.T, u user, p *configs.Places) []string {
	t.Helper()
	var all []string
	for _, kind := range []core.Kind{core.KindTool, core.KindSubagent, core.KindMCP} {
		places, err := p.Of(kind)
		for _, o := range core.Omissions(err) {
			if !strings.Contains(o.Reason, "--trust-project") && !strings.Contains(o.Reason, "try again") {
				t.Errorf("%v does not say how to enable it", o)
			}
		}
		for _, place := range places {
			if _, err := os.Stat(place.Path); err == nil && place.Project {
				all = append(all, u.spell([]configs.Place{place})[0])
			}
		}
	}
	return all
}

func (u user) trust(t *testing.T) []string {
	t.Helper()
	places, err := u.find(t, configs.Options{}).Trust(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u.spell(places)
}

// A cloned project runs nothing until it is trusted, and what has changed or is
// new since then asks again, by itself.
func TestTrust(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	file := func(name, text string) { write(t, filepath.Join(u.project, name), text) }
	file(".ai-zen/tools/a.yaml", "x")
	file(".ai-zen/tools/lib/b.js", "x")
	file(".ai-zen/sub-agents/s.json", "{}")
	file(".mcp.json", `{"mcpServers": {"x": {"command": "node", "args": ["server.js"]}}}`)
	file("server.js", "x")
	find := func() *configs.Places { return u.find(t, configs.Options{}) }
	tools, subs, servers := "./.ai-zen/tools (project)", "./.ai-zen/sub-agents (project)", "./.mcp.json (project)"
	check := func(when string, want ...string) {
		t.Helper()
		if got := used(t, u, find()); !slices.Equal(got, want) {
			t.Errorf("%s: %q is used, want %q", when, got, want)
		}
	}
	check("before")
	if got := u.trust(t); !slices.Equal(got, []string{servers, subs, tools}) {
		t.Errorf("trusted %q", got)
	}
	if info, err := os.Stat(filepath.Join(find().State, "trust.json")); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("the record: %v, %v", info, err)
	}
	check("after", tools, subs, servers)
	file("README.md", "x")
	check("after a change of nothing that runs", tools, subs, servers)
	file(".ai-zen/tools/lib/b.js", "y")
	check("after a change of a tool's file", subs, servers)
	file(".ai-zen/mcp.json", "{}")
	file("server.js", "y")
	check("after a change of a server's script, with a new file of servers", subs)
	u.trust(t)
	check("after another look", tools, subs, servers, "./.ai-zen/mcp.json (project)")
	if err := os.Remove(filepath.Join(u.project, ".ai-zen", "tools", "a.yaml")); err != nil {
		t.Fatal(err)
	}
	check("after a removal", subs, servers, "./.ai-zen/mcp.json (project)")
	if got := used(t, u, u.find(t, configs.Options{TrustProject: true})); len(got) != 4 {
		t.Errorf("with --trust-project %q is used", got)
	}
	if err := find().Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("after it was forgotten")
	write(t, filepath.Join(find().State, "trust.json"), "{")
	if _, err := find().Of(core.KindTool); err == nil || !strings.Contains(err.Error(), "trust.json") {
		t.Errorf("a broken record gave %v", err)
	}
}

// The trust in one project says nothing about another one, and a project that is
// moved has to be trusted where it is.
func TestTrustIsOneProjects(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	other := u.project + " copy"
	for _, dir := range []string{u.project, other} {
		write(t, filepath.Join(dir, ".ai-zen", "tools", "a.yaml"), "x")
	}
	u.trust(t)
	if places := u.find(t, configs.Options{Project: other}); used(t, u, places) != nil {
		t.Error("a copy is trusted")
	}
}

// An agent of somebody else's project does not widen what the user allows.
func TestAgentsOfProjectsAreLimited(t *testing.T) {
	t.Parallel()
	all, reader := `{"permissions": {"tools": {"allow": ["*"]}, "mcps": {"allow": ["*"]}}}`, `{"permissions": {"tools": {"allow": ["readFile", "ls"]}}, "roots": ["docs"]}`
	tests := []struct {
		name  string
		files map[string]string // p: the project's agents, h: the user's
		id    string
		exec  bool
		limit string // the user's agent that limits; empty: no warning
		roots []string
	}{
		{"nothing of the user's", map[string]string{"p/default": all}, "default", true, "", nil},
		{"the user's default", map[string]string{"p/default": all, "h/default": reader}, "default", false, "default", []string{"docs"}},
		{"the user's of that id", map[string]string{"p/x": all, "h/x": reader, "h/default": all}, "x", false, "x", []string{"docs"}},
		{"an id of the project's alone", map[string]string{"p/x": all, "h/default": reader}, "x", false, "default", []string{"docs"}},
		{"the default of config.json", map[string]string{"p/x": all, "h/safe": reader, "h/../config": `{"defaultAgent": "safe"}`}, "x", false, "safe", []string{"docs"}},
		{"narrower itself", map[string]string{"p/x": `{"permissions": {"tools": {"allow": ["ls"]}}}`, "h/default": all}, "x", false, "", nil},
		{"the user's own file", map[string]string{"h/x": all, "h/default": reader}, "x", true, "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			for name, text := range test.files {
				dir := filepath.Join(u.project, ".ai-zen", "agents")
				if name[0] == 'h' {
					dir = filepath.Join(u.home, ".ai-zen", "agents")
				}
				write(t, filepath.Join(dir, name[2:]+".json"), text)
			}
			a, err := u.find(t, configs.Options{}).Agent(test.id)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Permissions.Permits(core.Capability{Kind: core.KindTool, Name: "exec"}); got != test.exec {
				t.Errorf("exec is permitted: %v", got)
			}
			warned := len(a.Warnings) == 1 && strings.Contains(a.Warnings[0].Error(), `your own agent "`+test.limit+`"`)
			if warned != (test.limit != "") || !slices.Equal(a.Roots, test.roots) {
				t.Errorf("warnings %v, roots %q", a.Warnings, a.Roots)
			}
			u.trust(t)
			for _, o := range []configs.Options{{}, {TrustProject: true}} {
				if a, err := u.find(t, o).Agent(test.id); err != nil || len(a.Warnings) > 0 {
					t.Errorf("trusted: %v, %v", a.Warnings, err)
				}
			}
		})
	}
}

// A user's agent that cannot be read allows nothing to a project's.
func TestABrokenAgentOfTheUsers(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	write(t, filepath.Join(u.project, ".ai-zen", "agents", "default.json"), "{}")
	file := write(t, filepath.Join(u.home, ".ai-zen", "agents", "default.json"), "{")
	if a, err := u.find(t, configs.Options{}).Agent("default"); err == nil || !strings.Contains(err.Error(), file) || a.Permissions != nil {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestWhatCannotBeTrusted(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	dir := filepath.Join(u.project, ".ai-zen", "tools")
	write(t, filepath.Join(dir, "a"), "x")
	if err := os.Truncate(filepath.Join(dir, "a"), 65<<20); err != nil {
		t.Fatal(err)
	}
	p := u.find(t, configs.Options{})
	if places, err := p.Trust(t.Context()); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("more than can be looked at was trusted: %v, %v", places, err)
	}
	if _, err := os.Stat(filepath.Join(p.State, "trust.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was recorded: %v", err)
	}
}
