package usertools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/coretest"
	"zenmcp/core/rawjson"
)

// A world is a user with folders of tools.
type world struct {
	t       *testing.T
	top     string
	options configs.Options
	printed *coretest.Buffer
}

// newWorld has the files below a fresh folder. Without dirs the tools are those in
// the folder "tools".
func newWorld(t *testing.T, files map[string]string, dirs ...string) *world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, top: top, printed: &coretest.Buffer{}}
	if dirs == nil {
		dirs = []string{"tools"}
	}
	for _, dir := range append(dirs, "work", "home") {
		w.mkdir(dir)
	}
	for name, text := range files {
		w.write(name, text)
	}
	w.options = configs.Options{UserHome: filepath.Join(top, "home"), Project: filepath.Join(top, "work"), Getenv: func(string) string { return "" }}
	for _, dir := range dirs {
		w.options.Tools = append(w.options.Tools, filepath.Join(top, dir))
	}
	return w
}

func (w *world) mkdir(name string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Join(w.top, name), 0o777); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, text string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(name))
	if err := os.WriteFile(filepath.Join(w.top, name), []byte(text), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) source() *Source {
	w.t.Helper()
	places, err := configs.Find(w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	return New(places, slog.New(slog.NewTextHandler(w.printed, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// scope offers the tools of the world, and tells what was left out.
func (w *world) scope() (*core.Scope, []core.Omission) {
	w.t.Helper()
	catalog, err := core.Discover(w.t.Context(), w.source())
	if err != nil {
		w.t.Fatal(err)
	}
	env := &core.Env{StateDir: w.t.TempDir(), Log: slog.New(slog.NewTextHandler(w.printed, nil))}
	env.Update(core.Config{}, catalog)
	scope, err := core.NewScope(env, core.AgentDefinition{Permissions: core.AllowAll()}, w.options.Project, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := scope.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return scope, catalog.Omitted()
}

// call calls a tool. A result that is passed on whole is its JSON.
func call(ctx context.Context, scope *core.Scope, name, args string) (string, error) {
	tool, ok := scope.Tools().Tool(name)
	if !ok {
		return "", fmt.Errorf("%s is not offered: %v", name, scope.Tools().Omitted)
	}
	res, err := tool.Run(ctx, &core.Call{Arguments: json.RawMessage(args)})
	if err != nil {
		return "", err
	}
	if res.Whole != nil {
		return string(res.Whole), nil
	}
	return res.Text(), nil
}

func module(name, exec string) string {
	return fmt.Sprintf("export default { function: { name: %q, description: 'd', parameters: { type: 'object' } }, exec: %s };", name, exec)
}

// TestVectors is how the TypeScript system reads and runs modules (contract §5).
func TestVectors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/userTools.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		ID, Name, Error string
		Files           map[string]string
		Dirs            []string
		Tools           []string
		LeftOut         int
		Call            json.RawMessage
		Result          *string
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			scope, omitted := newWorld(t, v.Files, v.Dirs...).scope()
			if got := scope.Tools().Names(); !slices.Equal(got, v.Tools) || len(omitted) != v.LeftOut {
				t.Fatalf("%s: the tools are %q, want %q; left out: %v", v.Name, got, v.Tools, omitted)
			}
			if v.Call == nil {
				return
			}
			got, err := call(t.Context(), scope, v.Tools[0], string(v.Call))
			if v.Error != "" && (err == nil || !strings.HasSuffix(err.Error(), ": "+v.Error)) || v.Error == "" && (err != nil || got != *v.Result) {
				t.Errorf("%s: %q, %v", v.Name, got, err)
			}
		})
	}
	if len(vectors) < 10 {
		t.Errorf("only %d vectors", len(vectors))
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		"tools/a.yaml": "function: {name: one, description: d}\ncommand: [echo]",
		"tools/b.json": `{"function": {"name": "two", "description": "d", "parameters": {"properties": {"x": {"type": "array"}}}}, "command": ["echo"]}`,
		"tools/c.mjs":  module("three", "() => 1"),
	})
	named := func(name string) core.Capability { return core.Capability{Kind: core.KindTool, Name: name} }
	coretest.TestSource(t, w.source(), named("one"), named("two"), named("three"))
}

// TestManifests are files as people write them: which are tools, and what is said
// of the others.
func TestManifests(t *testing.T) {
	t.Parallel()
	const f = "function: {name: x, description: d}\n"
	for _, c := range []struct{ name, file, text, want string }{ // want: "" is a tool; "-" is none, and no error
		{"yaml", "a.yaml", f + "command: [echo]", ""},
		{"yml, with a comment", "a.yml", "# c\n" + f + "command: [echo]", ""},
		{"json with comments", "a.json", `{"function": {"name": "x"}, /* c */ "command": ["echo"],}`, ""},
		{"everything", "a.yaml", f + "command: [echo]\ntimeout: 5\nenv: {A: b}\nhints: {readOnly: true, openWorld: false}", ""},
		{"package.json", "package.json", `{"type": "module"}`, "-"},
		{"other yaml", "a.yaml", "services: {}", "-"},
		{"hidden", ".a.yaml", "{", "-"},
		{"no command", "a.yaml", f, "command: is missing"},
		{"no function", "a.yaml", "command: [echo]", "function: is missing"},
		{"no name", "a.yaml", "function: {description: d}\ncommand: [echo]", "function.name: is missing"},
		{"a command that is a line", "a.yaml", f + "command: echo hello", "command: must be a list"},
		{"no list in it", "a.yaml", f + "command: []", "command: is missing"},
		{"broken yaml", "a.yaml", "function: {name: x\ncommand: [", "a.yaml:2:1"},
		{"broken json", "a.json", "{\n\"function\": [}", "a.json:2:14"},
		{"parameters of a list", "a.yaml", f + "command: [echo]\n" + "function: {}", "a.yaml:3:1"},
		{"the place of a field", "a.yaml", "function:\n  name: x\n  parameters: {type: string}\ncommand: [echo]", "a.yaml:3:16): function.parameters.type"},
		{"the place in a list", "a.yaml", f + "command:\n  - echo\n  - ${ZEN_MCP_NOT_SET_ANYWHERE}", "a.yaml:4:5): command.1"},
		{"the place of one key", "a.yaml", "\ncommand: [echo]", "a.yaml:2:1): function"},
		{"no object", "a.yaml", "function: {name: x, parameters: {type: string}}\ncommand: [echo]", "function.parameters.type: must be"},
		{"a variable that is not set", "a.yaml", f + "command: [echo, \"${ZEN_MCP_NOT_SET_ANYWHERE}\"]", "command.1: the environment variable"},
		{"in the environment", "a.yaml", f + "command: [echo]\nenv: {A: \"${ZEN_MCP_NOT_SET_ANYWHERE}\"}", "env.A: the environment variable"},
		{"a negative timeout", "a.yaml", f + "command: [echo]\ntimeout: -1", "timeout: must be"},
		{"an empty file", "a.yaml", "", "-"},
		{"a list", "a.yaml", "- a", "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			scope, omitted := newWorld(t, map[string]string{"tools/" + c.file: c.text}).scope()
			names := scope.Tools().Names()
			switch {
			case c.want == "" && (len(omitted) > 0 || !slices.Equal(names, []string{"x"})):
				t.Errorf("%q; left out: %v", names, omitted)
			case c.want == "-" && (len(omitted) > 0 || len(names) > 0):
				t.Errorf("%q; left out: %v", names, omitted)
			case len(c.want) > 1 && (len(omitted) != 1 || !strings.Contains(fmt.Sprint(omitted[0]), c.want) || !strings.Contains(omitted[0].Origin, c.file+":") || len(names) > 0):
				t.Errorf("%q; left out: %v, want %q", names, omitted, c.want)
			}
		})
	}
}

// TestWhichFileWins has the same stem and the same name in several files.
func TestWhichFileWins(t *testing.T) {
	t.Parallel()
	yaml := func(name, says string) string {
		return fmt.Sprintf("function: {name: %s, description: %s}\ncommand: [echo]", name, says)
	}
	w := newWorld(t, map[string]string{
		"p/z.yaml": yaml("first", "p"), "u/z.yaml": yaml("never", "u"), // one stem
		"p/a.yaml": yaml("same", "p"), "u/b.yaml": yaml("same", "u"), // one name (B56)
		"p/broken.yaml": "command: [", "u/broken.yaml": yaml("hidden", "u"), // broken hides too
		"u/c.yaml": yaml("manifest", "u"), "u/c.mjs": "throw new Error('a script, not a module')",
	}, "p", "u")
	scope, omitted := w.scope()
	if got, want := scope.Tools().Names(), []string{"same", "manifest", "first"}; !slices.Equal(got, want) {
		t.Errorf("the tools are %q, want %q", got, want)
	}
	if tool, _ := scope.Tools().Tool("same"); tool.Description != "p" {
		t.Errorf("the tool of %q won", tool.Description)
	}
	if len(omitted) != 2 || !strings.Contains(fmt.Sprint(omitted), "there is a tool \"same\" in ") {
		t.Errorf("left out: %v", omitted)
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]core.Hints{
		`{}`:                                   {Destructive: true, OpenWorld: true},
		`{"readOnly":true}`:                    {ReadOnly: true, OpenWorld: true},
		`{"readOnly":true,"destructive":true}`: {ReadOnly: true, OpenWorld: true},
		`{"destructive":false,"idempotent":true,"openWorld":false}`: {Idempotent: true},
	} {
		var h hints
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			t.Fatal(err)
		}
		if got := h.hints(); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	if got := (*hints)(nil).hints(); got != (core.Hints{Destructive: true, OpenWorld: true}) {
		t.Errorf("none: %+v", got)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	scope, _ := newWorld(t, nil).scope()
	for text, whole := range map[string]bool{
		"": false, "plain\n": false, `{"a":1}`: false, `[1]`: false, `{"content":"text"}`: false, `{"content":[1]}`: false,
		`{"content":[{"type":"text"}]}`: false, `{"content":[{"type":"film","text":"x"}]}`: false, `{"content":[],"isError":"no"}`: false,
		`{"content":[{"type":"image","data":"AA=="}]}`: false, `{"content":[],"structuredContent":[]}`: false, `{"content":[]`: false,
		` {"content":[]} `: true, `{"content":[{"type":"text","text":"x"}],"isError":true}`: true,
		`{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource","resource":{"uri":"a:b","text":"c"}}],"structuredContent":{"n":12345678901234567890}}`: true,
	} {
		res, err := resultOf(scope, "t", text)
		if err != nil || (res.Whole != nil) != whole {
			t.Errorf("%s: %+v, %v", text, res, err)
		} else if whole && string(res.Whole) != strings.TrimSpace(text) {
			t.Errorf("%s became %s", text, res.Whole)
		} else if !whole && res.Text() != strings.TrimSuffix(text, "\n") {
			t.Errorf("%q became %q", text, res.Text())
		}
	}
	huge, _ := rawjson.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": strings.Repeat("x", 1<<20)}}})
	if res, err := resultOf(scope, "t", string(huge)); err != nil || len(res.Whole) > 200_000 {
		t.Errorf("a huge result is %d bytes, %v", len(res.Whole), err)
	}
}

// A project's tools run only when it is trusted, and not once they have changed.
func TestProjectTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		"work/.ai-zen/tools/m.mjs":  "import fs from 'node:fs'; fs.writeFileSync('" + filepath.ToSlash(t.TempDir()) + "/ran', '');\n" + module("m", "() => 'm'"),
		"work/.ai-zen/tools/e.yaml": "function: {name: e, description: d}\ncommand: [echo, said]",
	}, []string{}...)
	scope, omitted := w.scope()
	if names := scope.Tools().Names(); len(names) > 0 || len(omitted) != 1 || !strings.Contains(omitted[0].Reason, "zen-mcp trust") {
		t.Fatalf("untrusted: %q, %v", names, omitted)
	}
	if w.printed.String() != "" {
		t.Errorf("something ran: %s", w.printed)
	}
	if _, err := w.source().places.Trust(t.Context()); err != nil {
		t.Fatal(err)
	}
	scope, omitted = w.scope()
	if names := scope.Tools().Names(); !slices.Equal(names, []string{"e", "m"}) {
		t.Fatalf("trusted: %q, %v", names, omitted)
	}
	if got, err := call(t.Context(), scope, "e", ""); err != nil || got != "said" {
		t.Errorf("%q, %v", got, err)
	}
	w.write("work/.ai-zen/tools/e.yaml", "function: {name: e, description: d}\ncommand: [echo, bad]")
	for _, name := range []string{"e", "m"} {
		if got, err := call(t.Context(), scope, name, ""); err == nil || !strings.Contains(err.Error(), "has changed since you trusted it") {
			t.Errorf("after a change %s still runs: %q, %v", name, got, err)
		}
	}
	if scope, _ := w.scope(); len(scope.Tools().Names()) > 0 {
		t.Errorf("after a change: %q", scope.Tools().Names())
	}
}

func TestDiscoveryEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	w := newWorld(t, map[string]string{"tools/a.mjs": module("a", "() => 1")})
	if _, err := core.Discover(ctx, w.source()); err == nil || err.Error() != "enough" {
		t.Errorf("%v", err)
	}
}
