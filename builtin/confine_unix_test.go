//go:build unix

package builtin

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zenmcp/core"
	"zenmcp/core/proc"
)

// shell runs a command line with exec and returns what it printed. It gives false
// where commands cannot be confined, having made sure that exec is not offered.
func shell(t *testing.T, scope *core.Scope, line string) (string, bool) {
	t.Helper()
	if unable := proc.CanConfine(); unable != nil {
		published := scope.Tools()
		for _, name := range []string{"exec", "exec_async"} {
			omitted := slices.ContainsFunc(published.Omitted, func(o core.Omission) bool {
				return o.Name == name && strings.Contains(o.Reason, unable.Error()) && strings.Contains(o.Reason, "--unconfined-exec")
			})
			if _, ok := published.Tool(name); ok || !omitted {
				t.Errorf("%s is offered, or left out without the reason: %v", name, published.Omitted)
			}
		}
		return "", false
	}
	answer, failed := callTool(t, t.Context(), scope, "exec", mustJSON(t, map[string]any{"command": line, "timeout": 20_000}))
	var out execAnswer
	if err := json.Unmarshal([]byte(answer), &out); failed || err != nil {
		t.Fatalf("%s\n%s", line, answer)
	}
	return out.Stdout + out.Stderr, true
}

// A confined command works in the root, and has a home and a temporary folder of
// its own that end with the client.
func TestExecInRoots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	scope := newScope(t, core.Config{}, dir, dir)
	out, able := shell(t, scope, `echo a > f && cat f && echo b > ~/x && cat ~/x && cp ~/x "$TMPDIR" && echo c > "$(mktemp)" && cd ~ && pwd`)
	if !able {
		return
	}
	home, found := strings.CutPrefix(out, "a\nb\n")
	home = strings.TrimSpace(home)
	if real, _ := os.UserHomeDir(); !found || home == real || !filepath.IsAbs(home) {
		t.Fatalf("the command printed %q", out)
	}
	// Another command of the client finds it again; and what programs cannot
	// write they leave behind.
	if out, _ := shell(t, scope, "cat ~/x; mkdir -p ~/go/mod && touch ~/go/mod/f && chmod -R a-w ~/go"); out != "b\n" {
		t.Errorf("the next command printed %q", out)
	}
	if err := scope.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(home)); err == nil {
		t.Errorf("%q outlives the client", home)
	}
}

// Only who says so gets unconfined commands, or more to read.
func TestExecReach(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "f"), []byte("outside"))
	read := mustJSON(t, map[string]any{"command": "cat " + outside + "/f; echo bad > " + outside + "/g", "timeout": 20_000})
	for _, test := range []struct {
		reach       core.CommandReach
		roots       []string
		reads, able bool // able: it can write outside
	}{
		{core.CommandReach{}, nil, true, true},
		{core.CommandReach{}, []string{dir}, false, false},
		{core.CommandReach{Read: []string{outside}}, []string{dir}, true, false},
		{core.CommandReach{Read: []string{outside + "/f"}}, []string{dir}, true, false},
		{core.CommandReach{Unconfined: true}, []string{dir}, true, true},
	} {
		roots, err := core.OpenRoots(test.roots)
		if err != nil {
			t.Fatal(err)
		}
		catalog, err := core.Discover(t.Context(), Source())
		if err != nil {
			t.Fatal(err)
		}
		env := &core.Env{Commands: test.reach}
		env.Update(core.Config{}, catalog)
		scope, err := core.NewScope(env, core.AgentDefinition{Permissions: core.AllowAll()}, dir, roots)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { scope.Close(); roots.Close() })
		reach, err := CommandReach(scope)
		if unable := proc.CanConfine(); unable != nil && !test.able {
			if err == nil || !strings.Contains(err.Error(), unable.Error()) {
				t.Errorf("%+v: %q, %v", test, reach, err)
			}
			continue
		}
		if err != nil || strings.Contains(reach, "everything") != test.able {
			t.Errorf("%+v: %q, %v", test, reach, err)
		}
		answer, _ := callTool(t, t.Context(), scope, "exec", read)
		if strings.Contains(answer, `"stdout":"outside"`) != test.reads {
			t.Errorf("%+v: %s", test, answer)
		}
		if err := os.Remove(filepath.Join(outside, "g")); (err == nil) != test.able {
			t.Errorf("%+v: the file that the command was to write: %v", test, err)
		}
	}
}

// exec_async is confined as exec is, and its log is the server's to write.
func TestExecAsyncInRoots(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	scope := newScope(t, core.Config{}, dir, dir)
	if proc.CanConfine() != nil {
		shell(t, scope, "true")
		return
	}
	args := mustJSON(t, map[string]any{"command": "echo bad > " + outside + "/f; echo said; exit 3", "logFile": "log"})
	answer, failed := callTool(t, t.Context(), scope, "exec_async", args)
	if entries, err := os.ReadDir(outside); !failed || !strings.Contains(answer, "said") || err != nil || len(entries) > 0 {
		t.Errorf("%s; left outside: %v, %v", answer, entries, err)
	}
}

// An agent's own roots confine commands too, whatever has been put in their place.
func TestExecInAgentRoots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secret"), []byte("SECRET"))
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	scope := newScope(t, core.Config{}, dir, dir)
	agent := scope.Agent()
	agent.Roots = []string{"sub"}
	run, err := scope.Child(agent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	if out, _ := shell(t, run, "cat ../secret"); strings.Contains(out, "SECRET") {
		t.Error("a file beside the agent's root was read")
	}
	if err := os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	if out, _ := shell(t, run, "cat secret ../secret"); strings.Contains(out, "SECRET") {
		t.Error("a link in the place of the agent's root leads out of it")
	}
}

// TestExecInLinkFarms is the destructive command in farms of links: whatever it
// does over whichever of them, nothing outside is read or changed.
func TestExecInLinkFarms(t *testing.T) {
	t.Parallel()
	const script = `for p in "$@"; do
	cat "$p"; cat "$p"/*; ls "$p"
	echo bad > "$p"; echo bad > "$p/new"; echo bad >> "$p"; mkdir "$p/d"; ln "$p" hard; cat hard
	cp -r "$p" copy; mv "$p" moved; rm -f "$p"; rm -rf "$p"/; truncate -s 1 "$p"
	ln -sfn "$p" link; cat link link/*; echo bad > link; echo bad > link/new; rm -rf link/ hard copy moved link
done 2>/dev/null`
	for seed := range uint64(3) {
		f := newFarm(t, seed)
		f.plant(t)
		before := f.outside(t)
		line := "set --"
		for range 24 { // all in the farm, whatever becomes of the limits
			way := []string{"", "/proc/self/root"}[f.rnd.IntN(2)] + f.base
			line += fmt.Sprintf(" '%s/%s/%s'", way, []string{".", "in", "in/d", "in2", "out", "out/d"}[f.rnd.IntN(6)], f.name())
		}
		out, _ := shell(t, f.scope, line+"\n"+script)
		if strings.Contains(out, secretText) || strings.Contains(out, secretName) {
			t.Errorf("farm %d: something outside was read: %.300q", seed, out)
		}
		if after := f.outside(t); !maps.Equal(before, after) {
			t.Errorf("farm %d: something outside changed:\n%v\n%v", seed, before, after)
		}
	}
}
