package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cellar, link, other := filepath.Join(dir, "1.2.3", "zen-mcp"), filepath.Join(dir, "zen-mcp"), filepath.Join(dir, "other")
	for _, file := range []string{cellar, other} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(cellar, link); err != nil { // for the same file under another name, where links need a right
		t.Fatal(err)
	}
	for _, test := range []struct{ exe, called, want string }{
		{cellar, link, link},     // the name that stays
		{cellar, other, cellar},  // somebody else's
		{cellar, "nope", cellar}, // not to be found
		{cellar, "", cellar},
	} {
		if got, err := program(test.exe, test.called); err != nil || got != test.want {
			t.Errorf("%q called as %q: %q, %v", test.exe, test.called, got, err)
		}
	}
	for _, exe := range []string{"/tmp/go-build123/b001/exe/zen-mcp", "/home/x/.cache/go-build/ab/abc-d/zen-mcp"} {
		if got, err := program(exe, exe); err == nil || !strings.Contains(err.Error(), "go build -o ~/.local/bin/zen-mcp") {
			t.Errorf("%s: %q, %v", exe, got, err)
		}
	}
}

// TestServeArgs: what install enters is what serve was given, with whole paths.
func TestServeArgs(t *testing.T) {
	t.Parallel()
	abs := func(path string) string {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, test := range []struct {
		args string
		env  string // AI_ZEN_DIR
		want []string
	}{
		{"", "", nil},
		{"--name x --force --print", "", nil},
		{"--root a --root /", "", []string{"--root", abs("a"), "--root", abs("/")}},
		{"--agent x --allow a,b --log-level debug", "", []string{"--agent", "x", "--allow", "a", "--allow", "b", "--log-level", "debug"}},
		{"--trust-project --unconfined-exec=false", "", []string{"--trust-project", "--unconfined-exec=false"}},
		{"--mcp-config m.json --exec-read p --audit-log l", "", []string{"--mcp-config", abs("m.json"), "--exec-read", abs("p"), "--audit-log", abs("l")}},
		{"--grace 90s --max-calls 7", "", []string{"--grace", "1m30s", "--max-calls", "7"}},
		{"--agent=-x", "h", []string{"--agent", "-x", "--home", abs("h")}},
		{"--home g", "h", []string{"--home", abs("g")}},
	} {
		var (
			o   options
			i   installOptions
			set = command{name: "install", flags: i.register}.flagSet(&o)
		)
		if err := set.Parse(strings.Fields(test.args)); err != nil {
			t.Fatal(err)
		}
		got, err := i.serveArgs(func(name string) string {
			if name == "AI_ZEN_DIR" {
				return test.env
			}
			return ""
		})
		if want := append([]string{"serve"}, test.want...); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s, AI_ZEN_DIR=%s: %q, %v\nwant %q", test.args, test.env, got, err, want)
		}
	}
}
