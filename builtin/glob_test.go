package builtin

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zenmcp/core"
)

func TestExpandBraces(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want []string
	}{
		{"a", []string{"a"}},
		{"{a,b}c", []string{"ac", "bc"}},
		{"{a,{b,c}}{1,2}", []string{"a1", "a2", "b1", "b2", "c1", "c2"}},
		{"x{,y}", []string{"x", "xy"}},
		{"{a/b,c}/*", []string{"a/b/*", "c/*"}},
		{"{1..3}", []string{"1", "2", "3"}},
		{"{3..1}", []string{"3", "2", "1"}},
		{"{08..10}", []string{"08", "09", "10"}},
		{"{-1..1}", []string{"-1", "0", "1"}},
		{"{a..c}", []string{"a", "b", "c"}},
		{"{0..10..5}", []string{"0", "5", "10"}},
		{"{10..0..-5}", []string{"10", "5", "0"}},
		{"{1..3,x}", []string{"1..3", "x"}},
		{"{a}", []string{"{a}"}},
		{"{}", []string{"{}"}},
		{"{1..}", []string{"{1..}"}},
		{"{1..9999999999}", []string{"{1..9999999999}"}},
		{"{1..3..0}", []string{"{1..3..0}"}},
		{"{a,b", []string{"{a,b"}},
		{"a}{b,c}", []string{"a}b", "a}c"}},
		{"{x{a,b}", []string{"{xa", "{xb"}},
		{`\{a,b}`, []string{`\{a,b}`}},
		{`{a\,b,c}`, []string{`a\,b`, "c"}},
	}
	for _, tt := range tests {
		if got, err := expandBraces(tt.text); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%q = %q, %v; want %q", tt.text, got, err, tt.want)
		}
	}
	for _, text := range []string{"{1..2000}", "{1..100}{1..100}", strings.Repeat("{a,b}", 30)} {
		if got, err := expandBraces(text); err == nil {
			t.Errorf("%q gives %d patterns; want a refusal", text, len(got))
		}
	}
}

func TestSegments(t *testing.T) {
	t.Parallel()
	tests := []struct{ segment, match, miss string }{
		{"a.go", "a.go", "aXgo a.go2 .a.go"},
		{"*", "a é a.b", ".a"},
		{"*.go", "a.go .go.go", "a.goo .a.go"},
		{"a*", "a abc", "ba"},
		{"a*a", "aa aba", "a ab"},
		{"**.go", "a.go", "a.c"},
		{"*a*b*", "ab xaxbx", "ba"},
		{"?", "a é 😀", "ab .a"},
		{"[a-c]x", "ax bx", "dx x"},
		{"[!a-c]x", "dx éx", "ax x"},
		{"[^a]", "b", "a"},
		{"[]a]", "] a", "b"},
		{"[!]a]", "b", "] a"},
		{"[[]", "[", "]"},
		{"[a-]", "a -", "b"},
		{`[\]]`, "]", `\`},
		{"[ab", "[ab", "a b"},
		{"*[ab", "x[ab", "xa"},
		{"{a", "{a", "a"},
		{"*{a}?", "{a}b x{a}b", "ab"},
		{`\*`, "*", "a"},
		{`\[x\]*`, "[x] [x]y", "x"},
		{`a\`, `a\`, "a"},
		{`\.a`, ".a", "a"},
		{".*", ".a .git", "a"},
		{"[.]a", "", ".a"},
		{"!a", "!a", "b"},
		{"#a", "#a", "a"},
		{"(a)", "(a)", "a"},
	}
	for _, tt := range tests {
		s, err := parseSegment(tt.segment)
		if err != nil {
			t.Errorf("%q: %v", tt.segment, err)
			continue
		}
		for _, name := range strings.Fields(tt.match) {
			if strings.HasPrefix(name, ".") && !strings.HasPrefix(strings.TrimPrefix(tt.segment, `\`), ".") {
				continue
			}
			if !s.matches(name) {
				t.Errorf("%q does not match %q", tt.segment, name)
			}
		}
		for _, name := range strings.Fields(tt.miss) {
			if s.matches(name) {
				t.Errorf("%q matches %q", tt.segment, name)
			}
		}
	}
}

func globTree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "w")
	for _, file := range []string{
		"a.txt", "sub/b.txt", "sub/deep/c.txt", "sub/.hid/d.txt", "other/b.txt", "[x]/y.txt",
		"node_modules/m/e.txt", "lib/build/f.txt", "lib/build.txt", "../outside/o.txt",
	} {
		write(t, filepath.Join(dir, file), nil)
	}
	for link, target := range map[string]string{"ln": "sub", "other/ln": "../sub", "other/away": "../../outside", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runGlob answers with the paths, or with the text of an error.
func runGlob(t *testing.T, scope *core.Scope, args map[string]any) ([]string, string) {
	t.Helper()
	answer, failed := callTool(t, t.Context(), scope, "glob", mustJSON(t, args))
	if failed {
		return nil, answer
	}
	var files []string
	if err := json.Unmarshal([]byte(answer), &files); err == nil {
		return files, ""
	}
	var partial partialGlob
	if err := json.Unmarshal([]byte(answer), &partial); err != nil {
		t.Fatalf("answer %q", answer)
	}
	return partial.Files, partial.Note
}

func TestGlob(t *testing.T) {
	t.Parallel()
	dir := globTree(t)
	slash := filepath.ToSlash(dir)
	scope := newScope(t, core.Config{}, dir)
	type list = []string
	tests := []struct {
		args map[string]any
		want list
	}{
		{map[string]any{"pattern": "../outside/*"}, list{"../outside/o.txt"}},
		{map[string]any{"pattern": "../*/b.txt", "path": "sub"}, list{"../other/b.txt", "../sub/b.txt"}},
		{map[string]any{"pattern": "../**/b.txt", "path": "sub", "exclude": list{"../other"}}, list{"../sub/b.txt"}},
		{map[string]any{"pattern": "../**/e.txt", "path": "sub"}, list{}},
		{map[string]any{"pattern": "*/../a.txt"}, list{"a.txt"}},
		{map[string]any{"pattern": slash + "/*.txt"}, list{slash + "/a.txt"}},
		{map[string]any{"pattern": slash + "/**/e.txt"}, list{}},
		{map[string]any{"pattern": slash + "/s*/b.txt", "path": "other"}, list{slash + "/sub/b.txt"}},
		{map[string]any{"pattern": "."}, list{}},
		{map[string]any{"pattern": ".."}, list{}},
		{map[string]any{"pattern": "./sub/"}, list{"sub"}},
		{map[string]any{"pattern": "sub/**/"}, list{"sub", "sub/deep"}},
		{map[string]any{"pattern": "a.txt/*"}, list{}},
		{map[string]any{"pattern": "gone/**"}, list{}},
		{map[string]any{"pattern": "{sub,sub/**,s*/*.txt}"}, list{"sub", "sub/b.txt", "sub/deep", "sub/deep/c.txt"}},
		{map[string]any{"pattern": "{sub/deep/*,**/c.txt}"}, list{"sub/deep/c.txt"}},
		{map[string]any{"pattern": `\[x\]/*`}, list{"[x]/y.txt"}},
		{map[string]any{"pattern": `\[x]/*`}, list{"[x]/y.txt"}},
		{map[string]any{"pattern": "**/.hid/*"}, list{"sub/.hid/d.txt"}},
		{map[string]any{"pattern": "sub/**", "exclude": list{"sub/deep/**"}}, list{"sub", "sub/b.txt"}},
		{map[string]any{"pattern": "sub/*", "exclude": list{"sub/deep/**"}}, list{"sub/b.txt", "sub/deep"}},
		{map[string]any{"pattern": "**/.hid/*", "exclude": list{"sub/**"}}, list{}},
		{map[string]any{"pattern": "lib/*", "exclude": list{"lib/build/"}}, list{"lib/build.txt"}},
		{map[string]any{"pattern": "**/f.txt", "exclude": list{"**/build/"}}, list{}},
		{map[string]any{"pattern": "**/f.txt", "exclude": list{slash + "/lib"}}, list{}},
		{map[string]any{"pattern": "lib/build/f.txt", "exclude": list{"lib"}}, list{}},
		{map[string]any{"pattern": "node_modules/m/*"}, list{}},
		{map[string]any{"pattern": "node_modules/m/*", "exclude": list{}}, list{"node_modules/m/e.txt"}},
		{map[string]any{"pattern": "node_modules/m/*", "exclude": list{""}}, list{}},
		{map[string]any{"pattern": "*", "path": "ln"}, list{"b.txt", "deep"}},
		{map[string]any{"pattern": "**/ln/*.txt"}, list{"ln/b.txt", "other/ln/b.txt"}},
		{map[string]any{"pattern": "*/ln/**"}, list{"other/ln", "other/ln/b.txt", "other/ln/deep", "other/ln/deep/c.txt"}},
		{map[string]any{"pattern": "*/ln/**", "exclude": list{"other/ln/deep"}}, list{"other/ln", "other/ln/b.txt"}},
		{map[string]any{"pattern": "*/a.txt/**"}, list{}},
		{map[string]any{"pattern": "loop"}, list{"loop"}},
	}
	for _, tt := range tests {
		if got, note := runGlob(t, scope, tt.args); note != "" || !slices.Equal(got, tt.want) {
			t.Errorf("%v = %q, %q; want %q", tt.args, got, note, tt.want)
		}
	}
	for args, want := range map[string]string{
		`{"pattern":"**/../x"}`:                `take it out`,
		`{"pattern":"[b-"}`:                    ``,
		`{"pattern":"a\u0000"}`:                `NUL`,
		`{"pattern":"*","exclude":["!(a)"]}`:   `exclude`,
		`{"pattern":"*","path":"gone"}`:        `"gone"`,
		`{"pattern":"*","path":"a.txt"}`:       `"a.txt"`,
		`{"pattern":"loop/*"}`:                 `loop`,
		`{"pattern":"*","excludes":["a"]}`:     `"exclude"`,
		`{"pattern":"{1..5000}"}`:              `wildcard`,
		`{"pattern":"*(a|b)"}`:                 `{a,b}`,
		`{"pattern":"x","path":"sub/../gone"}`: `"sub/../gone"`,
	} {
		answer, failed := callTool(t, t.Context(), scope, "glob", json.RawMessage(args))
		if failed != (want != "") || !strings.Contains(answer, want) {
			t.Errorf("%s = %q, %v; want an error with %q", args, answer, failed, want)
		}
	}
}

func TestGlobInRoots(t *testing.T) {
	t.Parallel()
	dir := globTree(t)
	scope := newScope(t, core.Config{}, dir, dir)
	for _, pattern := range []string{"../outside/*", "other/away/*", "other/away/o.txt", filepath.ToSlash(filepath.Dir(dir)) + "/outside/*", "/*"} {
		if got, note := runGlob(t, scope, map[string]any{"pattern": pattern}); got != nil || !strings.Contains(note, "outside") {
			t.Errorf("%s = %q, %q; want a refusal", pattern, got, note)
		}
	}
	if got, note := runGlob(t, scope, map[string]any{"pattern": "*/away/*"}); len(got) != 0 || !strings.Contains(note, "1 folder") {
		t.Errorf("a link outside behind a wildcard = %q, %q; want it counted", got, note)
	}
	if got, note := runGlob(t, scope, map[string]any{"pattern": "**/b.txt"}); note != "" || !slices.Equal(got, []string{"other/b.txt", "sub/b.txt"}) {
		t.Errorf("inside = %q, %q", got, note)
	}
	second := filepath.Join(filepath.Dir(dir), "outside")
	if err := os.Symlink(second, filepath.Join(dir, "second")); err != nil {
		t.Fatal(err)
	}
	both := newScope(t, core.Config{}, dir, dir, second)
	for _, pattern := range []string{"../outside/*", "second/*"} {
		if got, note := runGlob(t, both, map[string]any{"pattern": pattern}); note != "" || len(got) != 1 {
			t.Errorf("%s into the other root = %q, %q", pattern, got, note)
		}
	}
}

func TestGlobCancelled(t *testing.T) {
	t.Parallel()
	scope := newScope(t, core.Config{}, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answer, failed := callTool(t, ctx, scope, "glob", json.RawMessage(`{"pattern":"**"}`))
	if want := `{"aborted":true,"files":[]}`; failed || answer != want {
		t.Errorf("%q, %v; want %q", answer, failed, want)
	}
}

func TestGlobKeepsBounds(t *testing.T) {
	t.Parallel()
	found := new(paths)
	in := &folder{path: strings.Repeat("x", 1<<20) + "/"}
	for n := range 1000 {
		if !found.add(nil, in, []entry{{name: "a"}}) {
			if all, full := found.sorted(); n != maxGlob>>20-1 || !full || len(all) != 1 {
				t.Errorf("ended after %d paths, full %v", n, full)
			}
			return
		}
	}
	t.Error("no end")
}

// FuzzPattern reads any text as a pattern, and takes any name literally when
// every character of it is escaped.
func FuzzPattern(f *testing.F) {
	for _, text := range []string{"**/*.go", "{a,b{1..3}}/[!x-]", `\[a\]`, "[[:alpha:]]", "!(a)", "../x/**/", "{,}{,}", "[]a]*?", "a[", `\`, "//a//b/.."} {
		f.Add(text, "a.go")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		if patterns, err := parsePattern(text); err == nil && name != "" {
			for _, p := range patterns {
				var nodes []*node
				if len(p.segs) > 0 {
					insert(&nodes, p.segs, p.dirs)
				}
				want := link(nodes)
				for range 3 {
					_, want = step(want, name, fs.ModeDir)
				}
			}
		}
		if name == "" || name == "." || name == ".." || len(name) > 1000 || strings.ContainsAny(name, "/\x00") {
			return
		}
		var escaped strings.Builder
		for i := range len(name) {
			if name[i] < 0x80 {
				escaped.WriteByte('\\')
			}
			escaped.WriteByte(name[i])
		}
		patterns, err := parsePattern(escaped.String())
		if err != nil || len(patterns) != 1 || len(patterns[0].segs) != 1 {
			t.Fatalf("%q = %v, %v", escaped.String(), patterns, err)
		}
		if s := patterns[0].segs[0]; s.kind != exact || !s.matches(name) {
			t.Errorf("%q does not match %q", escaped.String(), name)
		}
	})
}
