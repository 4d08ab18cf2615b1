package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"zenmcp/core/rawjson"
)

// budgetScope is a confined client of a server that keeps files, with one tool
// that answers with the result.
func budgetScope(t *testing.T, limit int, output Output, res *Result, err error) (*Scope, Tool) {
	t.Helper()
	tool := fakeTool("talk", "")
	tool.Output = output
	tool.Run = func(context.Context, *Call) (*Result, error) { return res, err }
	source := fake{caps: capabilities(KindTool, "talk"), makes: func([]Capability) []Tool { return []Tool{tool} }}
	catalog, e := Discover(t.Context(), source)
	if e != nil {
		t.Fatal(e)
	}
	env := &Env{StateDir: filepath.Join(realDir(t), "state")}
	env.Update(Config{MaxToolOutput: &limit}, catalog)
	dir := realDir(t)
	s, e := NewScope(env, AgentDefinition{Permissions: AllowAll()}, dir, openRoots(t, dir))
	if e != nil {
		t.Fatal(e)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	bound, ok := s.Tools().Tool("talk")
	if !ok {
		t.Fatal("the tool is not published")
	}
	return s, bound
}

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "line %d é\n", i)
	}
	return b.String()
}

var fileName = regexp.MustCompile(`"?(/[^"\\]*outputs[^"\\]*)`)

// wholeFile reads the one file that a cut answer names, through the scope.
func wholeFile(t *testing.T, s *Scope, answer string) string {
	t.Helper()
	found := fileName.FindStringSubmatch(answer)
	if found == nil {
		t.Fatalf("no file is named in %.300q", answer)
	}
	p, err := s.Path(found[1])
	if err != nil {
		t.Fatal(err)
	}
	data, info, err := p.ReadFile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("the file has mode %v", mode)
		}
		if dir, err := os.Stat(filepath.Dir(found[1])); err != nil || dir.Mode().Perm() != 0o700 {
			t.Errorf("its folder: %v, %v", dir.Mode(), err)
		}
	}
	return string(data)
}

func TestBudgetOfText(t *testing.T) {
	t.Parallel()
	long := numbered(0, 1000)
	oneLine := strings.Repeat("é", 5000)
	tests := map[string]struct {
		text           string
		output         Output
		prefix, suffix string
		note           string // "" when the answer is the text
	}{
		"within":            {numbered(0, 50), OutputLong, "", "", ""},
		"exactly":           {strings.Repeat("é", 1000), OutputLong, "", "", ""},
		"one over":          {strings.Repeat("é", 1001), OutputLong, "ééé", "]\n", "1001 characters in 1 line."},
		"head":              {long, OutputLong, "line 0 é\nline 1 é\n", "]\n", "characters in 1000 lines"},
		"a short tool":      {long, OutputShort, "line 0 é\nline 1 é\n", "]\n", "characters in 1000 lines"},
		"head and tail":     {long, OutputLog, "line 0 é\n", "line 998 é\nline 999 é\n", "characters in 1000 lines"},
		"one line":          {oneLine, OutputLong, "ééé", "]\n", "5000 characters in 1 line."},
		"one line, log":     {oneLine, OutputLog, "ééé", "ééé", "5000 characters in 1 line."},
		"no line end":       {numbered(0, 300) + "end", OutputLog, "line 0", "\nend", "in 301 lines"},
		"looks like a list": {"[" + long, OutputLong, "[line 0", "]\n", "in 1000 lines"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, tool := budgetScope(t, 1000, tt.output, TextResult(tt.text), nil)
			res, err := tool.Run(t.Context(), &Call{})
			if err != nil {
				t.Fatal(err)
			}
			answer := res.Text()
			if tt.note == "" {
				if answer != tt.text {
					t.Errorf("a text within the budget was changed: %.100q", answer)
				}
				return
			}
			if n := utf8.RuneCountInString(answer); n > 1000 || n < 800 {
				t.Errorf("the answer has %d code points", n)
			}
			if !utf8.ValidString(answer) || !strings.HasPrefix(answer, tt.prefix) || !strings.HasSuffix(answer, tt.suffix) || !strings.Contains(answer, tt.note) {
				t.Errorf("the answer is %q", answer)
			}
			if whole := wholeFile(t, s, answer); whole != tt.text {
				t.Errorf("the file holds %d bytes, %.100q", len(whole), whole)
			}
			checkHint(t, tt.text, answer)
		})
	}
}

var rangeHint = regexp.MustCompile(`range \[(\d+),(\d+),(\d+),(-?\d+)\]`)

// checkHint checks that reading on begins where the head ends.
func checkHint(t *testing.T, whole, answer string) {
	t.Helper()
	hint := rangeHint.FindStringSubmatch(answer)
	if hint == nil {
		t.Fatalf("the answer says no range: %q", answer)
	}
	var line, column int
	fmt.Sscan(hint[1]+" "+hint[2], &line, &column)
	lines := strings.SplitAfter(whole, "\n")
	head := strings.Join(lines[:line], "") + string([]rune(lines[line])[:column])
	if !strings.HasPrefix(answer, head) || !strings.HasPrefix(strings.TrimPrefix(answer[len(head):], "\n"), "[cut") {
		t.Errorf("range %v does not go on where the answer stops", hint[0])
	}
}

func TestBudgetOfJSON(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf("file-%d\n", i))
	}
	list := string(mustMarshal(t, names))
	object := string(mustMarshal(t, map[string]any{"results": names, "totalMatches": 500, "truncated": false, "note": "3 skipped"}))
	said := string(mustMarshal(t, map[string]any{"output": numbered(0, 1000), "code": 3}))

	t.Run("list", func(t *testing.T) {
		t.Parallel()
		answer, whole := shortJSON(t, list)
		if answer["total"] != 500.0 || answer["truncated"] != true {
			t.Errorf("answer %v", answer)
		}
		checkEntries(t, answer, whole, names)
	})
	t.Run("object", func(t *testing.T) {
		t.Parallel()
		answer, whole := shortJSON(t, object)
		if answer["totalMatches"] != 500.0 || answer["truncated"] != true || !strings.HasPrefix(answer["note"].(string), "3 skipped; ") {
			t.Errorf("answer %v", answer)
		}
		checkEntries(t, answer, whole, names)
	})
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		answer, whole := shortJSON(t, said)
		if answer["code"] != 3.0 || !strings.HasPrefix(answer["output"].(string), "line 0 é\n") {
			t.Errorf("answer %v", answer)
		}
		if whole != numbered(0, 1000) {
			t.Errorf("the file holds %.100q", whole)
		}
	})
	t.Run("nothing to cut", func(t *testing.T) {
		t.Parallel()
		many := map[string]any{}
		for i := range 300 {
			many[fmt.Sprint(i)] = i
		}
		text := string(mustMarshal(t, many))
		s, tool := budgetScope(t, 1000, OutputLong, TextResult(text), nil)
		res, err := tool.Run(t.Context(), &Call{})
		if err != nil {
			t.Fatal(err)
		}
		if n := utf8.RuneCountInString(res.Text()); n > 1000 || wholeFile(t, s, res.Text()) != text {
			t.Errorf("%d code points: %q", n, res.Text())
		}
	})
}

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := rawjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func shortJSON(t *testing.T, text string) (answer map[string]any, whole string) {
	t.Helper()
	s, tool := budgetScope(t, 1000, OutputLong, TextResult(text), nil)
	res, err := tool.Run(t.Context(), &Call{})
	if err != nil {
		t.Fatal(err)
	}
	if n := utf8.RuneCountInString(res.Text()); n > 1000 || n < 800 {
		t.Errorf("the answer has %d code points", n)
	}
	if err := json.Unmarshal([]byte(res.Text()), &answer); err != nil {
		t.Fatalf("%v: %s", err, res.Text())
	}
	named := answer["note"]
	if named == nil {
		named = answer["output"]
	}
	return answer, wholeFile(t, s, named.(string))
}

// checkEntries checks the entries that are shown, that the file is the same JSON
// as the whole, and that the named line of it holds the first entry that is not.
func checkEntries(t *testing.T, answer map[string]any, whole string, names []string) {
	t.Helper()
	shown := answer["results"].([]any)
	for i, e := range shown {
		if e != names[i] {
			t.Fatalf("entry %d is %q", i, e)
		}
	}
	if !json.Valid([]byte(whole)) {
		t.Errorf("the file is not JSON: %.200q", whole)
	}
	hint := rangeHint.FindStringSubmatch(answer["note"].(string))
	if hint == nil {
		t.Fatalf("no range in %q", answer["note"])
	}
	var line int
	fmt.Sscan(hint[1], &line)
	want := string(mustMarshal(t, names[len(shown)]))
	if got := strings.Split(whole, "\n")[line]; strings.TrimSuffix(got, ",") != want {
		t.Errorf("line %d is %q, want %q", line, got, want)
	}
}

func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	res := &Result{IsError: true, Blocks: []Block{
		Text("small"), Image{MIMEType: "image/png", Data: make([]byte, 5000)}, Text(numbered(0, 1000)), Text(strings.Repeat("x", 9000)),
	}}
	before := slices.Clone(res.Blocks)
	_, tool := budgetScope(t, 2000, OutputLong, res, nil)
	got, err := tool.Run(t.Context(), &Call{})
	if err != nil {
		t.Fatal(err)
	}
	if n := utf8.RuneCountInString(got.Text()); n > 2000+2 || n < 1700 || !got.IsError {
		t.Errorf("%d code points, error %v", n, got.IsError)
	}
	if got.Blocks[0] != Text("small") || len(got.Blocks) != 4 || res.Blocks[2] != before[2] {
		t.Error("what is short was cut, or the tool's own result was changed")
	}
}

func TestBudgetOfErrors(t *testing.T) {
	t.Parallel()
	_, tool := budgetScope(t, 1000, OutputShort, nil, fmt.Errorf("%s: %w", strings.Repeat("x", 5000), fs.ErrNotExist))
	_, err := tool.Run(t.Context(), &Call{})
	if n := utf8.RuneCountInString(err.Error()); n != 1000 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an error of %d code points: %.50q", n, err)
	}
}

func TestNothingIsKeptWithoutAStateDirectory(t *testing.T) {
	t.Parallel()
	s, tool := budgetScope(t, 1000, OutputLong, TextResult(numbered(0, 1000)), nil)
	s.env.StateDir = ""
	res, err := tool.Run(t.Context(), &Call{})
	if err != nil || !strings.Contains(res.Text(), "not kept") || utf8.RuneCountInString(res.Text()) > 1000 {
		t.Errorf("%v, %v", res, err)
	}
}

// What is in a file already is not kept once more, and reading goes on there.
func TestBudgetOfAFile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		at   Place
	}{
		"lines":       {numbered(0, 1000), Place{"a b", 0, 0}},
		"later lines": {numbered(0, 1000), Place{"a b", 2000, 3}},
		"in one line": {strings.Repeat("é", 5000), Place{"a b", 7, 100}},
		"not as JSON": {`["` + strings.Repeat("é", 5000) + `"]`, Place{"a b", 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := TextResult(tt.text)
			res.From = &tt.at
			s, tool := budgetScope(t, 1000, OutputLong, res, nil)
			res, err := tool.Run(t.Context(), &Call{})
			if err != nil || !strings.Contains(res.Text(), `"a b"`) {
				t.Fatalf("%v, %v", res, err)
			}
			// The hint counts from the beginning of the file, of which text is a part.
			whole := strings.Repeat("\n", tt.at.Line) + strings.Repeat(" ", tt.at.Column)
			checkHint(t, whole+tt.text, whole+res.Text())
			if utf8.RuneCountInString(res.Text()) > 1000 {
				t.Error("the answer is over the budget")
			}
			if files, err := os.ReadDir(s.env.outputDir()); len(files) > 0 {
				t.Errorf("a copy was kept: %v, %v", files, err)
			}
		})
	}
}

func TestManyTextsBecomeOne(t *testing.T) {
	t.Parallel()
	res := &Result{Blocks: []Block{Text(""), Image{MIMEType: "image/png"}}}
	for i := range 100 {
		res.Blocks = append(res.Blocks, Text(fmt.Sprintf("text %d %s", i, strings.Repeat("x", 90))))
	}
	s, tool := budgetScope(t, 5, OutputLong, res, nil) // taken as 1000
	got, err := tool.Run(t.Context(), &Call{})
	if err != nil {
		t.Fatal(err)
	}
	text := got.Text()
	if n := utf8.RuneCountInString(text); n > 1000 || n < 800 || len(got.Blocks) != 2 || !strings.HasPrefix(text, "text 0 x") {
		t.Errorf("%d blocks, %d code points: %q", len(got.Blocks), n, text)
	}
	if whole := wholeFile(t, s, text); strings.Count(whole, "\n") != 99 {
		t.Errorf("the file holds %d lines", strings.Count(whole, "\n")+1)
	}
}

func TestMetaAnnouncesTheBudget(t *testing.T) {
	t.Parallel()
	for output, want := range map[Output]any{OutputShort: nil, OutputLong: 7777, OutputLog: 7777} {
		if _, tool := budgetScope(t, 7777, output, nil, nil); tool.Meta["anthropic/maxResultSizeChars"] != want {
			t.Errorf("output %d: %v", output, tool.Meta)
		}
	}
}

// One client's files are no other client's, and a link out of the folder leads
// nowhere.
func TestOutputsArePrivate(t *testing.T) {
	t.Parallel()
	s, _ := budgetScope(t, 1000, OutputLong, nil, nil)
	file, err := s.KeepOutput("x.txt", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	run := child(t, s, AgentDefinition{})
	if _, err := run.Path(file); err != nil {
		t.Errorf("a run of the client cannot read it: %v", err)
	}
	other, err := NewScope(s.env, AgentDefinition{}, s.Dir(), s.roots)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.KeepOutput("y.txt", nil); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Path(file); err == nil {
		t.Error("another client can read it")
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(file), "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	p, err := s.Path(link)
	if err == nil {
		_, _, err = p.ReadFile(t.Context())
	}
	if err == nil {
		t.Error("a link led out of the folder")
	}
}

func TestOldOutputsAreRemoved(t *testing.T) {
	t.Parallel()
	s, _ := budgetScope(t, 1000, OutputLong, nil, nil)
	old, err := s.KeepOutput("old.txt", nil)
	if err != nil {
		t.Fatal(err)
	}
	yesterday := time.Now().Add(-outputLifetime - time.Hour)
	dir := filepath.Dir(old)
	for _, path := range []string{old, dir} {
		if err := os.Chtimes(path, yesterday, yesterday); err != nil {
			t.Fatal(err)
		}
	}
	fresh, err := s.KeepOutput("fresh.txt", nil) // within the hour nothing is swept
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err != nil {
		t.Fatal(err)
	}
	s.env.sweepOutputs(time.Now().Add(2 * time.Hour))
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old file is there: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("the fresh file is gone: %v", err)
	}
	s.env.sweepOutputs(time.Now().Add(100 * time.Hour))
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty folder is there: %v", err)
	}
	again, err := s.KeepOutput("again.txt", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Path(again); err != nil {
		t.Error(err)
	}
}

func TestFitWhole(t *testing.T) {
	t.Parallel()
	long := numbered(0, 500)
	entries := strings.Split(strings.TrimSpace(long), "\n")
	image := `{"type":"image","data":"` + strings.Repeat("A", 5000) + `","mimeType":"image/png"}`
	text := func(s string) string { return `{"type":"text","text":` + string(quote(s)) + `,"x":1.0}` }
	resource := `{"type":"resource","resource":{"uri":"a:b","text":` + string(quote(long)) + `,"big":12345678901234567890}}`
	structured := string(mustMarshal(t, map[string]any{"list": entries}))
	tests := map[string]struct {
		whole string
		same  bool
		has   []string
		not   []string
	}{
		"within":     {`{ "content" : [` + text("x") + `] , "n": 1.0}`, true, nil, nil},
		"image":      {`{"content":[` + image + `]}`, true, nil, nil},
		"text":       {`{"content":[` + text("ok") + `,` + image + `,` + text(long) + `],"n":1.0}`, false, []string{text("ok"), image, `"x":1.0`, `"n":1.0`, "[cut"}, nil},
		"resource":   {`{"content":[` + resource + `]}`, false, []string{`"big":12345678901234567890`, "[cut"}, nil},
		"many":       {`{"content":[` + strings.Repeat(text(long)+",", 9) + image + `]}`, false, []string{image, "[cut", "in 4508 lines"}, nil},
		"repeated":   {`{"content":[` + text(structured) + `],"structuredContent":` + structured + `}`, false, []string{`\"truncated\":true`}, []string{"structuredContent"}},
		"structured": {`{"content":[],"structuredContent":` + structured + `,"isError":true}`, false, []string{`\"truncated\":true`, `"isError":true`}, []string{"structuredContent"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := budgetScope(t, 1000, OutputLong, nil, nil)
			got, err := s.FitWhole("call_mcp_tool", json.RawMessage(tt.whole))
			if err != nil || !json.Valid(got) {
				t.Fatalf("%v: %s", err, got)
			}
			if (string(got) == tt.whole) != tt.same {
				t.Errorf("same = %v: %.500s", !tt.same, got)
			}
			for _, part := range tt.has {
				if !strings.Contains(string(got), part) {
					t.Errorf("%.60q is missing in %.1500s", part, got)
				}
			}
			for _, part := range tt.not {
				if strings.Contains(string(got), part) {
					t.Errorf("%q is still there", part)
				}
			}
			if !tt.same && len(got) > 2500+len(image) {
				t.Errorf("%d bytes are left", len(got))
			}
		})
	}
	if _, err := newScope(t, &Env{}).FitWhole("x", json.RawMessage(strings.Repeat("[", 40000))); err == nil {
		t.Error("what is no result was taken")
	}
}

func TestLevel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sizes       []int
		limit, want int
	}{
		{[]int{100}, 10, 10},
		{[]int{5, 100}, 20, 15},
		{[]int{100, 100}, 20, 10},
		{[]int{0, 3, 100, 100}, 23, 10},
	} {
		if got := level(tt.sizes, tt.limit); got != tt.want {
			t.Errorf("level(%v, %d) = %d, want %d", tt.sizes, tt.limit, got, tt.want)
		}
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("a\nb\nc", 2, true)
	f.Add(strings.Repeat("é\n\x00\xff", 200), 500, false)
	f.Fuzz(func(t *testing.T, text string, limit int, log bool) {
		limit %= 3000
		all := ExtentOf(text)
		all.File = "/state/outputs/x"
		if limit < 300 || all.Chars <= limit {
			return
		}
		output := OutputLong
		if log {
			output = OutputLog
		}
		for name, cost := range map[string]Cost{"plain": PlainCost, "json": JSONCost} {
			got := Excerpt(text, text, all, limit, output, cost)
			if n := Weigh(got, cost); n > limit {
				t.Errorf("%s: an excerpt of %d costs %d", name, limit, n)
			}
			if n := utf8.RuneCount(rawjson.AppendString(nil, got)); name == "json" && n > limit+2 {
				t.Errorf("as JSON it has %d code points, limit %d", n, limit)
			}
		}
	})
}
