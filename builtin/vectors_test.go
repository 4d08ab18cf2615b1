package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"zenmcp/core"
)

// TestVectors runs testdata/vectors/TOOL.json: tables of calls, what they answer
// and what they leave on disk. A vector is amended where a decision differs from
// what was recorded; its "decision" says so. Fields that nothing here checks are
// refused, so that a copied vector cannot pass by being ignored.
func TestVectors(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/vectors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var table struct {
				Tool     string
				Confined bool // run it with a root as well as without
				Server   map[string]vectorRoute
				Cases    []json.RawMessage
			}
			decodeStrict(t, data, &table)
			base := ""
			if table.Server != nil {
				base = serveRoutes(t, table.Server)
			}
			for _, raw := range table.Cases {
				raw = bytes.ReplaceAll(raw, []byte("{{BASE}}"), []byte(base))
				runVector(t, table.Tool, raw, false)
				if table.Confined {
					runVector(t, table.Tool, raw, true)
				}
			}
		})
	}
}

// A vector is one call. {{ROOT}} anywhere in it is a fresh directory.
type vector struct {
	ID, Name string

	Why, Bug, Note, Decision string // for the reader

	Requires string         // root, linux, unix or a case-sensitive file system
	Setup    []vectorEntry  // what lies in ROOT before the call
	Many     *vectorFiles   `json:"setupGenerated"`
	Cwd      string         // the working directory, below ROOT
	EnvCwd   string         // the working directory, literally
	Args     map[string]any // "xRepeat": {text, count} is a long x
	NoArgs   bool           // the call has no arguments at all
	Config   core.Config
	Abort    string // "before the call" or "N ms after the start"
	Want     vectorWant
}

// vectorFiles are count empty files, numbered from From.
type vectorFiles struct {
	Path        string // with a verb for the number
	Count, From int
}

type vectorWant struct {
	Outcome string // text, json, error (a message for the model); throws is the same as error
	Error   *bool  // whether the call failed; nil: as the outcome says

	Text       *string
	TextLength int    // in code points
	TextSHA256 string // of the UTF-8 text
	NonEmpty   bool
	Contains   []string // what the answer says somewhere

	// JSON is the answer. A text may be {length, head, tail} of it, "number" is
	// any number, and null stands for a text that is the local system's own.
	JSON           json.RawMessage
	WordingKeys    []string // keys that hold prose: present, and not compared
	StderrNonEmpty bool
	Order          string // "set": lists in any order

	FS         json.RawMessage // "unchanged", or all that is in ROOT afterwards
	Eventually bool            // a child process makes FS so, within ten seconds
}

func decodeStrict(t testing.TB, data []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%.200s: %v", data, err)
	}
}

func runVector(t *testing.T, tool string, raw json.RawMessage, confined bool) {
	var head struct {
		ID, Requires string
		Args         struct{ Path any }
	}
	if err := json.Unmarshal(raw, &head); err != nil || head.ID == "" {
		t.Fatalf("a vector without id: %.200s", raw)
	}
	if path, _ := head.Args.Path.(string); confined && filepath.IsAbs(path) || !satisfied(t, head.Requires) {
		return
	}
	name := head.ID
	if confined {
		name += "-confined"
	}
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		var v vector
		decodeStrict(t, bytes.ReplaceAll(raw, []byte("{{ROOT}}"), bytes.Trim(mustJSON(t, root), `"`)), &v)
		usual := v.prepare(t, root)
		before := snapshot(t, root)
		answer, failed := v.call(t, tool, root, confined)
		v.Want.check(t, answer, failed)
		check := func() error { return v.Want.checkFS(before, snapshot(t, root), usual) }
		err := check()
		for deadline := time.Now().Add(10 * time.Second); err != nil && v.Want.Eventually && time.Now().Before(deadline); err = check() {
			<-time.After(10 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("%v\nthe answer was %.300q", err, answer)
		}
	})
}

// satisfied reports whether a vector can run here.
func satisfied(t *testing.T, requires string) bool {
	switch requires {
	case "":
		return true
	case "root":
		return os.Geteuid() == 0
	case "unix":
		return runtime.GOOS != "windows"
	case "linux":
		return runtime.GOOS == "linux"
	case "case-sensitive file system":
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a"), nil)
		_, err := os.Stat(filepath.Join(dir, "A"))
		return err != nil
	}
	t.Fatalf("unknown requirement %q", requires)
	return false
}

// prepare makes the files and returns the mode that a new file gets here.
func (v *vector) prepare(t *testing.T, root string) fs.FileMode {
	t.Helper()
	for _, e := range v.Setup {
		e.make(t, root)
	}
	if v.Many != nil {
		for i := range v.Many.Count {
			write(t, filepath.Join(root, fmt.Sprintf(v.Many.Path, v.Many.From+i)), nil)
		}
	}
	probe := filepath.Join(t.TempDir(), "probe")
	write(t, probe, nil)
	info, err := os.Stat(probe)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

// call runs the tool as a client would reach it, through the three phases.
func (v *vector) call(t *testing.T, tool, root string, confined bool) (answer string, failed bool) {
	t.Helper()
	dir := filepath.Join(root, v.Cwd)
	if v.EnvCwd != "" {
		dir = v.EnvCwd
	}
	var roots []string
	if confined {
		roots = append(roots, root)
	}
	scope := newScope(t, v.Config, dir, roots...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if v.Abort == "before the call" {
		cancel()
	} else if v.Abort != "" {
		var ms int
		if _, err := fmt.Sscanf(v.Abort, "%d ms after the start", &ms); err != nil {
			t.Fatalf("abort %q: %v", v.Abort, err)
		}
		defer time.AfterFunc(time.Duration(ms)*time.Millisecond, cancel).Stop()
	}
	var args json.RawMessage
	if !v.NoArgs {
		for name, value := range v.Args {
			if long, ok := strings.CutSuffix(name, "Repeat"); ok {
				var r vectorRepeat
				decodeStrict(t, mustJSON(t, value), &r)
				delete(v.Args, name)
				v.Args[long] = r.Prefix + strings.Repeat(r.Text, r.Count) + r.Suffix
			}
		}
		args = mustJSON(t, v.Args)
	}
	return callTool(t, ctx, scope, tool, args)
}

func (w *vectorWant) check(t *testing.T, answer string, failed bool) {
	t.Helper()
	switch w.Outcome {
	case "text":
		if w.Text == nil && w.TextLength == 0 && !w.NonEmpty && len(w.Contains) == 0 {
			t.Error("the vector says nothing about the text")
		}
	case "json":
		w.checkJSON(t, answer)
	case "error", "throws":
		if !failed || answer == "" {
			t.Errorf("failed = %v, answer %.300q; want an error", failed, answer)
		}
	default:
		t.Fatalf("unknown outcome %q", w.Outcome)
	}
	if want := w.Outcome == "error" || w.Outcome == "throws" || w.Error != nil && *w.Error; failed != want {
		t.Errorf("failed = %v, want %v; the answer was %.300q", failed, want, answer)
	}
	if w.Text != nil && answer != *w.Text {
		t.Errorf("answer %.300q, want %.300q", answer, *w.Text)
	}
	if n := utf8.RuneCountInString(answer); w.TextLength != 0 && n != w.TextLength {
		t.Errorf("the answer has %d code points, want %d", n, w.TextLength)
	}
	if w.TextSHA256 != "" && sha(answer) != w.TextSHA256 {
		t.Errorf("the answer is not the expected one: %.300q", answer)
	}
	if w.NonEmpty && answer == "" {
		t.Error("the answer is empty")
	}
	for _, part := range w.Contains {
		if !strings.Contains(answer, part) {
			t.Errorf("the answer %.500q does not say %q", answer, part)
		}
	}
}

func (w *vectorWant) checkJSON(t *testing.T, answer string) {
	t.Helper()
	var got, want any
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("the answer is not JSON: %.300q", answer)
	}
	if err := json.Unmarshal(w.JSON, &want); err != nil {
		t.Fatalf("want.json: %v", err)
	}
	if w.StderrNonEmpty {
		if text, _ := got.(map[string]any)["stderr"].(string); text == "" {
			t.Error("stderr is empty")
		}
	}
	for _, key := range w.WordingKeys {
		removeKey(want, key)
		if !removeKey(got, key) {
			t.Errorf("the answer %.300s says nothing under %q", answer, key)
		}
	}
	if !matches(want, got, w.Order == "set") {
		t.Errorf("answer %.500s, want %.500s", answer, w.JSON)
	}
}

// removeKey removes a key everywhere in v and reports whether it held prose.
func removeKey(v any, key string) (found bool) {
	switch v := v.(type) {
	case map[string]any:
		text, _ := v[key].(string)
		found = text != ""
		delete(v, key)
		for _, inner := range v {
			found = removeKey(inner, key) || found
		}
	case []any:
		for _, inner := range v {
			found = removeKey(inner, key) || found
		}
	}
	return found
}

// matches compares JSON values as [vectorWant.JSON] describes it.
func matches(want, got any, set bool) bool {
	switch got := got.(type) {
	case map[string]any:
		want, ok := want.(map[string]any)
		if !ok || len(want) != len(got) {
			return false
		}
		for key, w := range want {
			if g, ok := got[key]; !ok || !matches(w, g, set) {
				return false
			}
		}
		return true
	case []any:
		want, ok := want.([]any)
		return ok && len(want) == len(got) && matchList(want, got, set)
	case float64:
		return want == "number" || want == got
	case string:
		if long, ok := want.(map[string]any); ok {
			head, _ := long["head"].(string)
			tail, _ := long["tail"].(string)
			return long["length"] == float64(utf8.RuneCountInString(got)) &&
				strings.HasPrefix(got, head) && strings.HasSuffix(got, tail)
		}
		return want == nil || want == got
	}
	return want == got
}

func matchList(want, got []any, set bool) bool {
	rest := slices.Clone(got)
	for _, w := range want {
		i := 0
		if set {
			i = slices.IndexFunc(rest, func(g any) bool { return matches(w, g, set) })
		}
		if i < 0 || !matches(w, rest[i], set) {
			return false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return true
}

// The harness itself must be able to fail.
func TestVectorMatching(t *testing.T) {
	t.Parallel()
	tests := []struct {
		want, got string
		set, ok   bool
	}{
		{`{"a":1}`, `{"a":1}`, false, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false, false},
		{`{"a":1}`, `{"a":"1"}`, false, false},
		{`[1,2]`, `[2,1]`, false, false},
		{`[1,2]`, `[2,1]`, true, true},
		{`[1,1]`, `[1,2]`, true, false},
		{`{"pid":"number"}`, `{"pid":7}`, false, true},
		{`{"pid":"number"}`, `{"pid":"7"}`, false, false},
		{`{"exitCode":null}`, `{"exitCode":0}`, false, false},
		{`{"stderr":null}`, `{"stderr":"sh: no"}`, false, true},
		{`{"stdout":{"length":3,"head":"é","tail":"c"}}`, `{"stdout":"ébc"}`, false, true},
		{`{"stdout":{"length":4,"head":"é","tail":"c"}}`, `{"stdout":"ébc"}`, false, false},
	}
	for _, tt := range tests {
		var want, got any
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tt.got), &got); err != nil {
			t.Fatal(err)
		}
		if ok := matches(want, got, tt.set); ok != tt.ok {
			t.Errorf("matches(%s, %s, %v) = %v", tt.want, tt.got, tt.set, ok)
		}
	}
	v := map[string]any{"failed": []any{map[string]any{"reason": "x", "n": 1.0}}}
	if !removeKey(v, "reason") || removeKey(v, "reason") {
		t.Error("removeKey does not tell whether the key was there")
	}
	if !reflect.DeepEqual(v, map[string]any{"failed": []any{map[string]any{"n": 1.0}}}) {
		t.Errorf("removeKey left %v", v)
	}
}
