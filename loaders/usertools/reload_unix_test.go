//go:build unix

package usertools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zenmcp/core"
)

// TestReload checks what a change of a tool's file does: to the next call, to one
// that runs, and while it makes no sense.
func TestReload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"tools/c.yaml": manifestOf("c", "[echo, one]"), "tools/m.mjs": module("m", "() => 'one'")})
	source := w.source()
	env := &core.Env{StateDir: t.TempDir()}
	var scope *core.Scope
	look := func(problem string) {
		t.Helper()
		catalog, err := core.Discover(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		env.Update(core.Config{}, catalog)
		if scope == nil {
			if scope, err = core.NewScope(env, core.AgentDefinition{Permissions: core.AllowAll()}, w.options.Project, nil); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { scope.Close() })
		}
		omitted := catalog.Omitted()
		if problem == "" && len(omitted) > 0 || problem != "" && (len(omitted) != 1 || !omitted[0].Offered || !strings.Contains(omitted[0].Error(), problem)) {
			t.Errorf("said %v, want %q", omitted, problem)
		}
	}
	says := func(tool, want string) {
		t.Helper()
		if got, err := call(t.Context(), scope, tool, "{}"); err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s says %q, %v; want %q", tool, got, err, want)
		}
	}
	look("")
	says("c", "one")
	says("m", "one")

	w.write("tools/c.yaml", "function: {name: c")
	look("c.yaml")
	says("c", "one")
	w.write("tools/c.yaml", manifestOf("c", "[echo, two]"))
	w.write("tools/m.mjs", module("m", "() => 'two'"))
	look("")
	says("c", "two")
	says("m", "two")
	w.write("tools/m.mjs", "export default {")
	look("m.mjs")
	says("m", "two")

	// A call that runs ends as it began, and its worker with it.
	started, goOn := filepath.Join(w.top, "started"), filepath.Join(w.top, "go-on")
	w.write("tools/m.mjs", `import fs from 'node:fs';
		`+module("m", `async () => { fs.writeFileSync('`+started+`', '1\n'); while (!fs.existsSync('`+goOn+`')) await new Promise(r => setTimeout(r, 5)); return 'three'; }`))
	look("")
	three := make(chan string, 1)
	go func() {
		got, err := call(t.Context(), scope, "m", "{}")
		if err != nil {
			got = err.Error()
		}
		three <- got
	}()
	wait(t, started)
	w.write("tools/m.mjs", module("m", "() => 'four'"))
	look("")
	says("m", "four")
	w.write("go-on", "")
	if got := <-three; got != "three" {
		t.Errorf("the call that ran says %q", got)
	}
	says("m", "four")

	// What a module imports is part of it, wherever it is in the folder.
	w.write("tools/lib/deep/five.mjs", "export const v = ")
	w.write("tools/m.mjs", "import {v} from './lib/deep/five.mjs';\n"+module("m", "() => v"))
	look("m.mjs")
	for _, v := range []string{"five", "six"} {
		w.write("tools/lib/deep/five.mjs", "export const v = '"+v+"'")
		look("")
		says("m", v)
	}

	if err := os.Remove(filepath.Join(w.top, "tools/c.yaml")); err != nil {
		t.Fatal(err)
	}
	look("")
	if _, err := call(t.Context(), scope, "c", "{}"); err == nil {
		t.Error("a tool whose file is gone runs")
	}
}
