//go:build unix

package usertools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"zenmcp/core"
)

func manifestOf(name, command string) string {
	return fmt.Sprintf("function: {name: %s, description: d, parameters: {type: object}}\ncommand: %s\n", name, command)
}

// TestPrograms are tools in sh and Python, and what becomes of what they do.
func TestPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		"tools/echo.yaml":    manifestOf("echo", "[cat]"),
		"tools/dir.yaml":     manifestOf("dir", `[sh, -c, 'pwd; echo "$TOOL_DIR $A"']`) + "env: {A: \"${TOOL_DIR}/a ${NOBODY_SETS_THIS:-b}\"}",
		"tools/script.yaml":  manifestOf("script", `[./scripts/run.sh, "${TOOL_DIR}"]`),
		"tools/count.yaml":   manifestOf("count", `[python3, "${TOOL_DIR}/scripts/count.py"]`),
		"tools/fails.yaml":   manifestOf("fails", `[sh, -c, 'echo out; echo "what is wrong" >&2; exit 3']`),
		"tools/quiet.yaml":   manifestOf("quiet", `[sh, -c, 'echo only this; exit 1']`),
		"tools/tells.yaml":   manifestOf("tells", `[sh, -c, 'echo "not $API" >&2; exit 1']`) + "env: {API: key-of-the-tool}",
		"tools/killed.yaml":  manifestOf("killed", `[sh, -c, 'kill -9 $$']`),
		"tools/missing.yaml": manifestOf("missing", `[no-such-program-anywhere]`),
		"tools/deaf.yaml":    manifestOf("deaf", `[sh, -c, 'exec <&-; echo done']`),
		"tools/blocks.yaml":  manifestOf("blocks", `[echo, '{"content": [{"type": "text", "text": "hi"}], "isError": true}']`),
		"tools/holds.yaml":   manifestOf("holds", `[sh, -c, 'sleep 60 & echo early']`),
		"tools/late.yaml":    manifestOf("late", `[sh, -c, 'echo begun >&2; sleep 60']`) + "timeout: 1500",
		"tools/much.yaml":    manifestOf("much", `[sh, -c, 'head -c 20000000 /dev/zero | tr "\\0" x']`),
		"tools/scripts/run.sh": `#!/bin/sh
echo "in $(dirname "$0"), given $1"`,
		"tools/scripts/count.py": `import json, sys
words = json.load(sys.stdin)["text"].split()
json.dump({"words": len(words), "größe": words[0]}, sys.stdout, ensure_ascii=False)`,
	})
	scope, omitted := w.scope()
	if len(omitted) > 0 {
		t.Fatal(omitted)
	}
	tools, work := filepath.Join(w.top, "tools"), filepath.Join(w.top, "work")
	for _, c := range []struct{ name, args, want, err string }{
		{"echo", `{"big":12345678901234567890,"a":"ü"}`, `{"big":12345678901234567890,"a":"ü"}`, ""},
		{"echo", ``, `{}`, ""},
		{"dir", `{}`, work + "\n" + tools + " " + tools + "/a b", ""},
		{"script", `{}`, "in " + tools + "/scripts, given " + tools, ""},
		{"count", `{"text":"äöü b c"}`, `{"words": 3, "größe": "äöü"}`, ""},
		{"fails", `{}`, "", "fails: exit code 3; it said: what is wrong"},
		{"quiet", `{}`, "", "quiet: exit code 1; it said: only this"},
		{"tells", `{}`, "", "tells: exit code 1; it said: not ***"},
		{"killed", `{}`, "", "killed: ended by SIGKILL"},
		{"missing", `{}`, "", `"no-such-program-anywhere": no such program on PATH`},
		{"deaf", `{"text":"` + strings.Repeat("x", 1<<20) + `"}`, "done", ""},
		{"blocks", `{}`, `{"content": [{"type": "text", "text": "hi"}], "isError": true}`, ""},
		{"holds", `{}`, "early", ""},
		{"late", `{}`, "", "late: no answer within 1.5s; it was ended; it said: begun"},
	} {
		got, err := call(t.Context(), scope, c.name, c.args)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s %.100s: %.300q, %v; want %q %s", c.name, c.args, got, err, c.want, c.err)
		}
	}
	if got, err := call(t.Context(), scope, "much", ""); err != nil || len(got) > 100_000 || !strings.Contains(got, "only the first 16 MB") {
		t.Errorf("much gave %d bytes, %v: %.200q", len(got), err, got[max(0, len(got)-200):])
	}
}

// wait reads a number that a tool has written to a file.
func wait(t *testing.T, file string) int {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for range 2000 {
		if text, err := os.ReadFile(file); err == nil && strings.HasSuffix(string(text), "\n") {
			n, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		<-ticker.C
	}
	t.Fatalf("%s is not written", file)
	return 0
}

// A cancelled call ends at once, with everything that it started; and nothing
// outlives the client.
func TestCallsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		"tools/hangs.yaml":  manifestOf("hangs", `[sh, -c, 'sh -c "echo \$\$ > pid; exec sleep 60" & wait']`),
		"tools/leaves.yaml": manifestOf("leaves", `[sh, -c, 'sh -c "echo \$\$ > left; exec sleep 60" >/dev/null 2>&1 & echo gone']`),
	})
	scope, _ := w.scope()
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error)
	go func() {
		_, err := call(ctx, scope, "hangs", "")
		failed <- err
	}()
	pid := wait(t, filepath.Join(w.top, "work", "pid"))
	cancel(errors.New("the client gave up"))
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "the client gave up") {
		t.Errorf("the call gave %v", err)
	}
	if syscall.Kill(pid, 0) == nil && running(pid) {
		t.Errorf("process %d outlives its call", pid)
	}
	if got, err := call(t.Context(), scope, "leaves", ""); err != nil || got != "gone" {
		t.Fatalf("%q, %v", got, err)
	}
	pid = wait(t, filepath.Join(w.top, "work", "left"))
	if err := scope.Close(); err != nil {
		t.Error(err)
	}
	if syscall.Kill(pid, 0) == nil && running(pid) {
		t.Errorf("process %d outlives the client", pid)
	}
}

// running tells a process from one that has ended and that nobody has waited for.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestSecretsAreMasked: what a command or a module repeats of the environment does not
// get into an error or the log, nor does half of it where the words are cut.
func TestSecretsAreMasked(t *testing.T) {
	t.Setenv("TEST_KEY", "key-of-the-environment")
	w := newWorld(t, map[string]string{
		"tools/long.yaml":  manifestOf("long", `[sh, -c, 'printf "%s %01990d" "$TEST_KEY" 7 >&2; exit 1']`),
		"tools/throws.mjs": "console.log(process.env.TEST_KEY);\n" + module("throws", "() => { throw new Error('not ' + process.env.TEST_KEY); }"),
	})
	scope, _ := w.scope()
	for name, want := range map[string]string{"long": "it said: 000", "throws": "not ***"} {
		if _, err := call(t.Context(), scope, name, `{}`); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ment") {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if log := w.printed.String(); !strings.Contains(log, "text=***") || strings.Contains(log, "key-of-the") {
		t.Errorf("the log is %s", log)
	}
}

// TestModules is what modules do to each other and to the process: nothing.
func TestModules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		"tools/ok.mjs":      "import { twice } from './lib.mjs';\n" + module("ok", "async (x) => ({ pid: process.pid, dir: process.cwd(), twice: twice(x.n) })"),
		"tools/lib.mjs":     "export const twice = (n) => 2 * n;",
		"tools/common.js":   "module.exports = { function: { name: 'common', description: 'd', parameters: {} }, callback: () => 'c' };",
		"tools/this.mjs":    "export default { function: { name: 'self', description: 'd' }, secret: 's', exec() { return this.secret; } };",
		"tools/prints.mjs":  "console.log('at load');\n" + module("prints", "() => { console.log('a log line'); console.error('an error line'); return 1; }"),
		"tools/raw.mjs":     "import fs from 'node:fs';\n" + module("raw", "() => { fs.writeSync(1, 'no line end'); return 'fine'; }"),
		"tools/exits.mjs":   module("exits", "() => process.exit(5)"),
		"tools/throws.mjs":  module("throws", "() => { setTimeout(() => { throw new Error('later'); }, 1); return new Promise(() => {}); }"),
		"tools/rejects.mjs": module("rejects", "() => { Promise.reject(new Error('nobody waits')); return new Promise(() => {}); }"),
		"tools/loops.mjs":   "export default { function: { name: 'loops', description: 'd' }, timeout: 300, exec: () => { for (;;); } };",
		"tools/stops.mjs":   "export default { function: { name: 'stops', description: 'd' }, timeout: 200, exec: (x, { signal }) => new Promise((ok) => signal.addEventListener('abort', () => { stopped = true; })), };\nlet stopped = false;",
		"tools/blocks.mjs":  module("blocks", "() => ({ content: [{ type: 'text', text: 'hi' }] })"),
		"tools/big.mjs":     module("big", "(x) => x.text.length"),
	})
	scope, omitted := w.scope()
	// lib.mjs exports something, and no tool.
	if len(omitted) != 1 || !strings.Contains(omitted[0].Reason, "exports no tool") {
		t.Fatalf("left out: %v", omitted)
	}
	var first struct {
		Pid   int
		Dir   string
		Twice int
	}
	again := func(when string) {
		t.Helper()
		got, err := call(t.Context(), scope, "ok", `{"n":21}`)
		pid := first.Pid
		if e := json.Unmarshal([]byte(got), &first); err != nil || e != nil || first.Twice != 42 || first.Dir != filepath.Join(w.top, "work") {
			t.Errorf("%s: %q, %v", when, got, err)
		}
		if pid != 0 && pid != first.Pid {
			t.Errorf("%s: another process", when)
		}
	}
	again("first")
	for _, c := range []struct{ name, args, want, err string }{
		{"common", `{}`, "c", ""},
		{"self", `{}`, "s", ""},
		{"prints", `{}`, "1", ""},
		{"raw", `{}`, "fine", ""},
		{"exits", `{}`, "", "exits: the module ended its process (exit code 5)"},
		{"throws", `{}`, "", "throws: the module threw: later"},
		{"rejects", `{}`, "", "rejects: the module threw: nobody waits"},
		{"loops", `{}`, "", "loops: no answer within 300ms"},
		{"stops", `{}`, "", "stops: no answer within 200ms"},
		{"blocks", `{}`, `{"content":[{"type":"text","text":"hi"}]}`, ""},
		{"big", `{"text":"` + strings.Repeat("x", 3<<20) + `"}`, fmt.Sprint(3 << 20), ""},
		{"exits", `{}`, "", "exit code 5"},
	} {
		got, err := call(t.Context(), scope, c.name, c.args)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %.300q, %v; want %q %s", c.name, got, err, c.want, c.err)
		}
		again("after " + c.name)
	}
	for _, line := range []string{"at load", "a log line", "an error line", "no line end"} {
		if !strings.Contains(w.printed.String(), line) {
			t.Errorf("the log lacks %q", line)
		}
	}
	if err := syscall.Kill(first.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The call after its end may still find it; the next one has another.
	if got, err := call(t.Context(), scope, "common", ""); err != nil && !strings.Contains(err.Error(), "Node ended (ended by SIGKILL)") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := call(t.Context(), scope, "common", ""); err != nil || got != "c" {
		t.Errorf("after Node was killed: %q, %v", got, err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			want := strconv.Itoa(i)
			if got, err := call(t.Context(), scope, "big", `{"text":"`+strings.Repeat("x", i)+`"}`); err != nil || got != want {
				t.Errorf("of many at once: %q, %v; want %s", got, err, want)
			}
		})
	}
	wg.Wait()
}

// TestLoading is discovery: what cannot be loaded costs itself only, and what was
// loaded is not run again until something changes.
func TestLoading(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(t.TempDir(), "runs")
	count := func() int {
		text, _ := os.ReadFile(runs)
		return len(text)
	}
	w := newWorld(t, map[string]string{
		"tools/a.mjs":     fmt.Sprintf("import fs from 'node:fs'; fs.appendFileSync(%q, 'x');\n", runs) + module("a", "() => 1"),
		"tools/exits.mjs": "process.exit(1)",
		"tools/throws.js": "throw new Error('not today')",
		"tools/bad.mjs":   "export default { function: { name: 5, description: 'd' }, exec: () => 1 };",
		"tools/dep.mjs":   "import 'no-such-package';",
	})
	wants := map[string]string{"exits.mjs": "ended its process", "throws.js": "not today", "bad.mjs": "function.name: must be", "dep.mjs": "no-such-package"}
	for round := range 2 {
		scope, omitted := w.scope()
		if got := scope.Tools().Names(); len(got) != 1 || got[0] != "a" || count() != 1 {
			t.Errorf("round %d: %q, it ran %d times", round, got, count())
		}
		for _, o := range omitted {
			if want := wants[filepath.Base(o.Origin)]; want == "" || !strings.Contains(o.Reason, want) {
				t.Errorf("left out: %v, want %q", o, want)
			}
		}
		if len(omitted) != len(wants) {
			t.Errorf("left out: %v", omitted)
		}
	}
	w.write("tools/data.json", "{}")
	if w.scope(); count() != 2 {
		t.Errorf("after a change it ran %d times", count())
	}
	file := w.source().cacheFile(filepath.Join(w.top, "tools"))
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the cache is %v, %v", info, err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w.scope(); count() != 3 {
		t.Errorf("with a broken cache it ran %d times", count())
	}
}

// Modules that never finish loading hold up discovery for so long, and no more.
func TestModulesThatHang(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		"tools/loops.mjs": "for (;;);", "tools/waits.mjs": "await new Promise(() => {});", "tools/a.mjs": module("a", "() => 1"),
	})
	s := w.source()
	s.limit = 4 * time.Second
	begin := time.Now()
	catalog, err := core.Discover(t.Context(), s)
	if took := time.Since(begin); err != nil || took < s.limit || took > s.limit+20*time.Second {
		t.Errorf("discovery took %v, %v", took, err)
	}
	if all := catalog.Capabilities(); len(all) != 1 || all[0].Name != "a" {
		t.Errorf("there is %v", all)
	}
	for _, o := range catalog.Omitted() {
		if !strings.Contains(o.Reason, "did not finish loading within 4s") {
			t.Errorf("left out: %v", o)
		}
	}
}

// Without Node modules are left out, and manifests are not.
func TestWithoutNode(t *testing.T) {
	w := newWorld(t, map[string]string{"tools/a.mjs": module("a", "() => 1"), "tools/b.yaml": manifestOf("b", "[/bin/echo, b]")})
	t.Setenv("PATH", t.TempDir())
	scope, omitted := w.scope()
	if names := scope.Tools().Names(); len(names) != 1 || len(omitted) != 1 || !strings.Contains(omitted[0].Reason, "install Node.js") {
		t.Errorf("%q, %v", names, omitted)
	}
	if got, err := call(t.Context(), scope, "b", ""); err != nil || got != "b" {
		t.Errorf("%q, %v", got, err)
	}
}

// A call that takes long says so.
func TestProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"tools/slow.yaml": manifestOf("slow", `[sleep, "2.3"]`)})
	scope, _ := w.scope()
	tool, _ := scope.Tools().Tool("slow")
	var reports []core.Progress
	if _, err := tool.Run(t.Context(), &core.Call{Progress: func(p core.Progress) { reports = append(reports, p) }}); err != nil {
		t.Fatal(err)
	}
	if len(reports) == 0 || reports[0].Done < 1.9 {
		t.Errorf("it reported %v", reports)
	}
}
