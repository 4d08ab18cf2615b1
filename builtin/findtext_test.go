package builtin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zenmcp/core"
)

// searched is the answer of findText in either of its forms.
type searched struct {
	Aborted      bool
	TotalMatches int
	Truncated    bool
	Skipped      map[string]int
	Note         string
	Results      []fileHits
	plain        bool // it was the list alone
}

func callFindText(t testing.TB, ctx context.Context, scope *core.Scope, args map[string]any) (searched, bool) {
	t.Helper()
	text, failed := callTool(t, ctx, scope, "findText", mustJSON(t, args))
	var s searched
	if strings.HasPrefix(text, "[") {
		s.plain = true
		decodeStrict(t, []byte(text), &s.Results)
	} else if strings.HasPrefix(text, "{") {
		decodeStrict(t, []byte(text), &s)
	} else {
		t.Fatalf("answer %q", text)
	}
	return s, failed
}

// lines lists hits as file:line.
func (s searched) lines() []string {
	all := []string{}
	for _, f := range s.Results {
		for _, h := range f.Matches {
			all = append(all, fmt.Sprintf("%s:%d", f.File, h.Line))
		}
	}
	return all
}

// A tree is files by path.
func writeTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range files {
		write(t, filepath.Join(dir, path), []byte(content))
	}
	return dir
}

func TestFindTextSaysWhatItSkipped(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x\n", maxFileSize/2) + "token\n"
	dir := writeTree(t, map[string]string{
		"a.txt": "nothing\n", "gen/a.txt": "token\n", "gen/b.bin": "token\x00\n", "big.log": big, ".gitignore": "gen/\n",
	})
	scope := newScope(t, core.Config{}, dir)
	tests := []struct {
		name    string
		args    map[string]any
		lines   []string
		skipped map[string]int
	}{
		{"an ignore file of git hides nothing", map[string]any{"pattern": "**/*"}, []string{"gen/a.txt:1"}, map[string]int{"binary": 1, "tooBig": 1}},
		{"no hits", map[string]any{"pattern": "**/*.{bin,log}"}, nil, map[string]int{"binary": 1, "tooBig": 1}},
		{"nothing selected", map[string]any{"pattern": "*.go"}, nil, map[string]int{}},
		{"nothing skipped", map[string]any{"pattern": "a.txt"}, nil, nil},
		{"in a folder", map[string]any{"path": "gen", "pattern": "a.txt"}, []string{"a.txt:1"}, nil},
		{"a file as path, whatever the pattern", map[string]any{"path": "gen/a.txt", "pattern": "*.go"}, []string{"gen/a.txt:1"}, nil},
		{"a binary file as path", map[string]any{"path": "gen/b.bin", "pattern": "*"}, nil, map[string]int{"binary": 1}},
		{"a big file as path", map[string]any{"path": "big.log", "pattern": "*"}, []string{fmt.Sprintf("big.log:%d", maxFileSize/2+1)}, nil},
		{"unless there is a limit", map[string]any{"path": "big.log", "pattern": "*", "maxFileSize": maxFileSize}, nil, map[string]int{"tooBig": 1}},
		{"a greater limit", map[string]any{"pattern": "*", "maxFileSize": 1 << 40}, []string{fmt.Sprintf("big.log:%d", maxFileSize/2+1)}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.args["text"] = "token"
			got, failed := callFindText(t, t.Context(), scope, tt.args)
			if failed || !slices.Equal(got.lines(), tt.lines) || fmt.Sprint(got.Skipped) != fmt.Sprint(tt.skipped) || got.plain != (tt.skipped == nil) {
				t.Errorf("%v gives %v %+v, want %v skipped %v", tt.args, failed, got, tt.lines, tt.skipped)
			}
			if none := strings.Contains(got.Note, `"**/*.go"`); none != (tt.name == "nothing selected") {
				t.Errorf("%v gives the note %q", tt.args, got.Note)
			}
		})
	}
}

func TestFindTextErrors(t *testing.T) {
	t.Parallel()
	dir := writeTree(t, map[string]string{"a.txt": "a\n"})
	scope := newScope(t, core.Config{}, dir)
	tests := []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"pattern": "*"}, "text, or regex"},
		{map[string]any{"pattern": "*", "text": "a\nb"}, "line break"},
		{map[string]any{"pattern": "*", "regex": "("}, "JavaScript"},
		{map[string]any{"pattern": "*", "regex": strings.Repeat("a", maxRegexLength+1)}, "10000"},
		{map[string]any{"pattern": "*", "regex": strings.Repeat("(", maxRegexLength)}, "JavaScript"},
		{map[string]any{"pattern": "*", "text": "a", "maxMatches": 0}, "at least 1"},
		{map[string]any{"pattern": "*", "text": "a", "path": "a.tx"}, `did you mean "a.txt"`},
		{map[string]any{"pattern": "!(a)", "text": "a"}, "exclude"},
		{map[string]any{"pattern": "*", "query": "a", "text": "a"}, ""},
	}
	for _, tt := range tests {
		text, failed := callTool(t, t.Context(), scope, "findText", mustJSON(t, tt.args))
		if failed != (tt.want != "") || !strings.Contains(text, tt.want) {
			t.Errorf("%.100v gives %v %q, want %q", tt.args, failed, text, tt.want)
		}
	}
}

// The first hits are the same ones whatever the workers did.
func TestFindTextStopsEarlyInOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	files := map[string]string{}
	for range 400 {
		path := fmt.Sprintf("%c/%c-%d.txt", 'a'+rune(r.IntN(5)), 'a'+rune(r.IntN(20)), r.IntN(9))
		if r.IntN(3) == 0 {
			path = fmt.Sprintf("%c", 'a'+rune(r.IntN(5))) + "." + path
		}
		content := strings.Repeat("x\nhit\n", r.IntN(5))
		if r.IntN(5) == 0 {
			content += "\x00"
		}
		files[path] = content
	}
	scope := newScope(t, core.Config{}, writeTree(t, files))
	whole, _ := callFindText(t, t.Context(), scope, map[string]any{"pattern": "**/*", "text": "hit", "maxMatches": 100_000})
	all := whole.lines()
	if len(all) < 300 || whole.Truncated || !slices.IsSortedFunc(whole.Results, func(a, b fileHits) int { return strings.Compare(a.File, b.File) }) {
		t.Fatalf("%d hits, %+v", len(all), whole)
	}
	for _, limit := range []int{1, 2, 17, 200, len(all) - 1, len(all)} {
		want := -1
		for range 5 {
			got, _ := callFindText(t, t.Context(), scope, map[string]any{"pattern": "**/*", "text": "hit", "maxMatches": limit})
			if !slices.Equal(got.lines(), all[:limit]) || got.Truncated != (limit < len(all)) || got.TotalMatches != limit {
				t.Errorf("the first %d of %d hits are %v", limit, len(all), got)
			}
			if n := got.Skipped["binary"]; want >= 0 && n != want {
				t.Errorf("%d binary files before hit %d, and %d the next time", want, limit, n)
			} else {
				want = n
			}
		}
	}
}

func TestFindTextKeepsInsideRoots(t *testing.T) {
	t.Parallel()
	outside := writeTree(t, map[string]string{"secret.txt": "token\n"})
	dir := writeTree(t, map[string]string{"in.txt": "token\n"})
	for name, target := range map[string]string{"file.txt": filepath.Join(outside, "secret.txt"), "folder": outside, "gone.txt": "nowhere", "in-too.txt": "in.txt"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	scope := newScope(t, core.Config{}, dir, dir)
	got, _ := callFindText(t, t.Context(), scope, map[string]any{"pattern": "**/*", "text": "token"})
	if !slices.Equal(got.lines(), []string{"in-too.txt:1", "in.txt:1"}) || got.Skipped["unreadable"] != 2 {
		t.Errorf("inside the roots there is %+v", got)
	}
	for _, args := range []map[string]any{
		{"path": "folder", "pattern": "*"}, {"path": "file.txt", "pattern": "*"}, {"path": outside, "pattern": "*"},
		{"pattern": "../*/secret.txt"}, {"pattern": "folder/*"},
	} {
		args["text"] = "token"
		if text, failed := callTool(t, t.Context(), scope, "findText", mustJSON(t, args)); !failed || strings.Contains(text, "secret.txt\",\"matches") {
			t.Errorf("%v gives %q", args, text)
		}
	}
}

// Files that are not read at once give the same hits, wherever the blocks end.
func TestFindTextStreams(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	var b strings.Builder
	b.WriteString("\ufefftoken first\r\n")
	for b.Len() < searchBlock+100_000 {
		b.WriteString(strings.Repeat("é", r.IntN(200)))
		if r.IntN(50) == 0 {
			b.WriteString("token")
		}
		b.WriteString(strings.Repeat("z", r.IntN(3)*1000) + "\r\n")
	}
	b.WriteString(strings.Repeat("y", searchBlock+10) + "token")
	data := b.String()
	scope := newScope(t, core.Config{}, writeTree(t, map[string]string{"big.txt": data}))
	for _, args := range []map[string]any{{"text": "token"}, {"regex": `y?token`}, {"text": "token", "path": "big.txt"}} {
		args["pattern"], args["maxFileSize"], args["maxMatches"], args["maxLineLength"] = "*", 1<<30, 1_000_000, 10
		want := []string{}
		for i, line := range strings.SplitAfter(data, "\n") {
			if strings.Contains(line, "token") {
				want = append(want, fmt.Sprintf("big.txt:%d", i+1))
			}
		}
		if got, _ := callFindText(t, t.Context(), scope, args); len(want) < 10 || !slices.Equal(got.lines(), want) {
			t.Errorf("%v gives %d lines, want %d", args["regex"], len(got.lines()), len(want))
		}
	}
}

func TestFindTextLimitsBacktracking(t *testing.T) {
	t.Parallel()
	hard := strings.Repeat("x", 60) + "\n"
	scope := newScope(t, core.Config{}, writeTree(t, map[string]string{"a.txt": hard, "b.txt": "xxy\n"}))
	args := map[string]any{"pattern": "*", "regex": `^(?:(?=x)x+x+)+(?=y)`}
	got, failed := callFindText(t, t.Context(), scope, args)
	if failed || got.Skipped["tooSlow"] != 1 || !slices.Equal(got.lines(), []string{"b.txt:1"}) {
		t.Errorf("%v gives %v %+v", args, failed, got)
	}

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	got, failed = callFindText(t, ctx, scope, map[string]any{"path": "a.txt", "pattern": "*", "regex": args["regex"]})
	if took := time.Since(begin); failed || !got.Aborted || took > time.Second/2 {
		t.Errorf("cancelled after %v: %v %+v", took, failed, got)
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text     string
		from, to int
		limit    int
		want     string
	}{
		{"abc", 0, 1, 3, "abc"},
		{"abcd", 0, 1, 3, "abc…"},
		{"abcd", 3, 4, 3, "…bcd"},
		{"abcdefghij", 5, 6, 3, "…efg…"},
		{"ééééé", 4, 6, 2, "…éé…"},
		{"abcdef", 1, 6, 3, "…bcd…"},
		{"abcdef", 6, 6, 3, "…def"},
		{"abc", 1, 2, 0, "…"},
		{"abc", 3, 3, 0, "…"},
		{"", 0, 0, 0, ""},
	}
	for _, tt := range tests {
		if got, _ := excerpt([]byte(tt.text), tt.from, tt.to, tt.limit); got != tt.want {
			t.Errorf("excerpt(%q, %d, %d, %d) = %q, want %q", tt.text, tt.from, tt.to, tt.limit, got, tt.want)
		}
	}
}

// An automaton with more states than are kept still finds everything.
func TestLineDFABeginsAnew(t *testing.T) {
	t.Parallel()
	e, err := regexExpression(`[ab]*a[ab]{14}[cd]`)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 8))
	data := make([]byte, 100_000)
	for i := range data {
		data[i] = "ab"[r.IntN(2)]
		if i%40 == 39 {
			data[i] = "c\n"[r.IntN(2)]
		}
	}
	want := []int{}
	for i, line := range strings.Split(string(data), "\n") {
		if e.re.MatchString(line) {
			want = append(want, i+1)
		}
	}
	f := e.finder()
	got := []int{}
	for from, n := 0, 0; ; {
		line, ok, err := f.next(data, from)
		if err != nil || !ok {
			break
		}
		n += strings.Count(string(data[from:line.start]), "\n") + 1
		got, from = append(got, n), line.end+1
	}
	if !slices.Equal(got, want) || len(want) == 0 || f.dfa.resets == 0 {
		t.Errorf("%d lines, want %d; began anew %d times", len(got), len(want), f.dfa.resets)
	}
}

// A search that is ended does not read a big file to its end.
func TestFileSearcherStops(t *testing.T) {
	t.Parallel()
	expr, err := textExpression("token")
	if err != nil {
		t.Fatal(err)
	}
	s := newFileSearcher(expr, 10, 10, 0)
	asked := 0
	s.goesOn = func() bool { asked++; return asked < 3 }
	if err := s.stream(endless{}); err != nil || asked != 3 {
		t.Errorf("asked %d times, then %v", asked, err)
	}
}

// endless is a file without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "x\n"[i%2]
	}
	return len(p), nil
}
