package configs_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"zenmcp/configs"
	"zenmcp/core"
)

// user is somebody with a home directory and a project, in folders of a kind
// that people have.
type user struct{ home, project string }

func newUser(t *testing.T) user {
	t.Helper()
	top := filepath.Join(t.TempDir(), "Ünïcode and blanks 家")
	u := user{filepath.Join(top, "me"), filepath.Join(top, "work", "project")}
	for _, dir := range []string{u.home, u.project} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

func (u user) find(t *testing.T, o configs.Options) *configs.Places {
	t.Helper()
	o.UserHome = u.home
	if o.Project == "" {
		o.Project = u.project
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	p, err := configs.Find(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// spell renders places relative to the user: ~ for the home, . for the project.
func (u user) spell(places []configs.Place) []string {
	var out []string
	for _, p := range places {
		s := strings.Replace(p.Path, u.project, ".", 1)
		s = filepath.ToSlash(strings.Replace(s, u.home, "~", 1))
		if p.Project {
			s += " (project)"
		}
		out = append(out, s)
	}
	return out
}

func TestPlacesInTheirOrder(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	extra := filepath.Join(u.home, "extra")
	file := write(t, filepath.Join(extra, "more.json"), "{}")
	p := u.find(t, configs.Options{
		TrustProject: true,
		Skills:       []string{extra, "~/"}, SubAgents: []string{extra}, Tools: []string{extra}, MCPConfig: []string{"~/extra/more.json"},
	})
	for kind, want := range map[core.Kind][]string{
		core.KindSkill:    {"~/extra", "~", "./.ai-zen/skills (project)", "./.agents/skills (project)", "~/.ai-zen/skills", "~/.agents/skills"},
		core.KindSubagent: {"~/extra", "./.ai-zen/sub-agents (project)", "~/.ai-zen/sub-agents"},
		core.KindTool:     {"~/extra", "./.ai-zen/tools (project)", "~/.ai-zen/tools"},
		core.KindMCP: {"~/extra/more.json", "./.mcp.json (project)", "./.ai-zen/mcp.json (project)", "./.agents/mcp.json (project)",
			"~/.ai-zen/mcp.json", "~/.agents/mcp.json"},
	} {
		places, err := p.Of(kind)
		if got := u.spell(places); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v\n got %q\nwant %q", kind, err, got, want)
		}
	}
	if file != filepath.Join(extra, "more.json") || p.Home != filepath.Join(u.home, ".ai-zen") || p.Project != u.project {
		t.Errorf("home %q, project %q", p.Home, p.Project)
	}
}

func TestUntrustedProject(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for _, f := range []string{".mcp.json", ".ai-zen/mcp.json", ".ai-zen/tools/x.json", ".ai-zen/sub-agents/x.json", ".ai-zen/skills/x/SKILL.md"} {
		write(t, filepath.Join(u.project, f), "{}")
	}
	p := u.find(t, configs.Options{})
	for kind, want := range map[core.Kind]struct{ used, left []string }{
		core.KindSkill:    {used: []string{"./.ai-zen/skills (project)", "./.agents/skills (project)", "~/.ai-zen/skills", "~/.agents/skills"}},
		core.KindSubagent: {[]string{"~/.ai-zen/sub-agents"}, []string{".ai-zen/sub-agents"}},
		core.KindTool:     {[]string{"~/.ai-zen/tools"}, []string{".ai-zen/tools"}},
		core.KindMCP:      {[]string{"~/.ai-zen/mcp.json", "~/.agents/mcp.json"}, []string{".mcp.json", ".ai-zen/mcp.json"}},
	} {
		places, err := p.Of(kind)
		if got := u.spell(places); !slices.Equal(got, want.used) {
			t.Errorf("%s: got %q, want %q", kind, got, want.used)
		}
		var left []string
		for _, o := range core.Omissions(err) {
			rel, _ := filepath.Rel(u.project, o.Origin)
			left = append(left, filepath.ToSlash(rel))
			if o.Kind != kind || !strings.Contains(o.Reason, "--trust-project") {
				t.Errorf("omission %+v", o)
			}
		}
		if !slices.Equal(left, want.left) {
			t.Errorf("%s: left out %q, want %q", kind, left, want.left)
		}
	}
}

// A user who works in the home directory, or names the project's folder as home,
// has to trust nobody else.
func TestTheUsersOwnPlacesNeedNoTrust(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	write(t, filepath.Join(u.home, ".ai-zen", "tools", "x.json"), "{}")
	write(t, filepath.Join(u.project, ".ai-zen", "tools", "x.json"), "{}")
	for name, o := range map[string]configs.Options{
		"project is the home directory":  {Project: u.home},
		"home is the project's":          {Home: filepath.Join(u.project, ".ai-zen")},
		"in another spelling of the way": {Project: filepath.Join(u.home, "x", "..") + string(filepath.Separator)},
	} {
		p := u.find(t, o)
		places, err := p.Of(core.KindTool)
		if err != nil || len(places) != 1 || places[0].Project || places[0].Path != filepath.Join(p.Home, "tools") {
			t.Errorf("%s: %+v, %v", name, places, err)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	file := write(t, filepath.Join(u.home, "file"), "")
	missing := filepath.Join(u.home, "missing")
	for want, o := range map[string]configs.Options{
		`project "` + missing + `": does not exist`:              {Project: missing},
		`project "` + file + `": is not a folder`:                {Project: file},
		`home "` + file + `" is not a folder`:                    {Home: file},
		`--skills "` + missing + `": does not exist`:             {Skills: []string{u.home, missing}},
		`--tools "` + file + `": is not a folder`:                {Tools: []string{file}},
		`--sub-agents "~/missing": does not exist`:               {SubAgents: []string{"~/missing"}},
		`--mcp-config "` + u.home + `": is a folder, not a file`: {MCPConfig: []string{u.home}},
	} {
		o.UserHome, o.Getenv = u.home, func(string) string { return "" }
		if _, err := configs.Find(o); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `\\`, `\`), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestHome(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	env := func(vars map[string]string) func(string) string { return func(k string) string { return vars[k] } }
	other := filepath.Join(u.home, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	state := map[string]string{"windows": "", "darwin": "Library/Application Support/zen-mcp"}[runtime.GOOS]
	if state == "" {
		state = ".local/state/zen-mcp"
	}
	for name, test := range map[string]struct {
		o           configs.Options
		home, state string
		warnings    int
	}{
		"nothing":           {home: ".ai-zen", state: state},
		"environment":       {o: configs.Options{Getenv: env(map[string]string{"AI_ZEN_DIR": other})}, home: "other", state: state},
		"a tilde in it":     {o: configs.Options{Getenv: env(map[string]string{"AI_ZEN_DIR": "~/other"})}, home: "other", state: state},
		"the flag wins":     {o: configs.Options{Home: other, Getenv: env(map[string]string{"AI_ZEN_DIR": u.home})}, home: "other", state: state},
		"one that is amiss": {o: configs.Options{Home: other + "s"}, home: "others", state: state, warnings: 1},
		"state":             {o: configs.Options{Getenv: env(map[string]string{"XDG_STATE_HOME": other})}, home: ".ai-zen", state: "other/zen-mcp"},
		"relative state":    {o: configs.Options{Getenv: env(map[string]string{"XDG_STATE_HOME": "x"})}, home: ".ai-zen", state: state},
	} {
		p := u.find(t, test.o)
		if want := filepath.Join(u.home, test.home); p.Home != want {
			t.Errorf("%s: home %q, want %q", name, p.Home, want)
		}
		if want := filepath.Join(u.home, filepath.FromSlash(test.state)); p.State != want {
			t.Errorf("%s: state %q, want %q", name, p.State, want)
		}
		if len(p.Warnings) != test.warnings {
			t.Errorf("%s: warnings %v", name, p.Warnings)
		}
	}
}

// The folder that a program with windows starts its children in is no project.
func TestStartedInASystemFolder(t *testing.T) {
	u := newUser(t)
	t.Chdir(filepath.VolumeName(u.home) + string(filepath.Separator))
	o := configs.Options{UserHome: u.home, Getenv: func(string) string { return "" }}
	p, err := configs.Find(o)
	if err != nil || p.Project != u.home || len(p.Warnings) != 1 {
		t.Errorf("project %q, warnings %v, %v", p.Project, p.Warnings, err)
	}
	t.Chdir(u.project)
	p, err = configs.Find(o)
	if err != nil || len(p.Warnings) > 0 {
		t.Fatalf("warnings %v, %v", p.Warnings, err)
	}
	if info, err := os.Stat(p.Project); err != nil || !os.SameFile(info, stat(t, u.project)) {
		t.Errorf("project %q", p.Project)
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
