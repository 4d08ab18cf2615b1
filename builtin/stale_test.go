package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zenmcp/core"
)

// C13, decision 11: what a client has seen of a file and somebody else has
// changed since is not overwritten.
func TestStaleWrites(t *testing.T) {
	t.Parallel()
	const refused = "has changed since you read it"
	long := strings.Repeat("x", 100)
	tests := []struct {
		name  string
		first string // call by the client; the file is "one"
		then  func(t *testing.T, file string)
		want  bool // whether the client may write
	}{
		{"never read", "", overwriteWith("two"), true},
		{"unchanged", `readFile {"path":"a"}`, nil, true},
		{"changed after a read", `readFile {"path":"a"}`, overwriteWith(long), false},
		{"same size and time", `readFile {"path":"a"}`, disguised("eno"), false},
		{"same size and time, only a part was read", `readFile {"path":"a","range":[0]}`, disguised("eno"), true},
		{"changed after a part was read", `readFile {"path":"a","range":[0]}`, overwriteWith(long), false},
		{"changed after a write", `writeFile {"path":"a","content":"uno"}`, overwriteWith(long), false},
		{"changed after an edit", `edit {"path":"a","oldText":"one","newText":"uno"}`, overwriteWith(long), false},
		{"two writes", `writeFile {"path":"a","content":"uno"}`, nil, true},
		{"read through a link", `readFile {"path":"link"}`, overwriteWith(long), false},
		{"written through a link", `writeFile {"path":"link","content":"uno"}`, nil, true},
		{"written again with the same content", `readFile {"path":"a"}`, overwriteWith("one"), true},
		{"replaced by the same content", `readFile {"path":"a"}`, replaced("one"), true},
		{"replaced", `readFile {"path":"a"}`, replaced("eno"), false},
		{"removed", `readFile {"path":"a"}`, func(t *testing.T, file string) { os.Remove(file) }, true},
		{"only touched", `readFile {"path":"a"}`, func(t *testing.T, file string) {
			if err := os.Chtimes(file, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
		}, true},
	}
	writers := map[string]string{
		"writeFile": `{"path":"a","content":"new"%s}`,
		"edit":      `{"path":"a","oldText":"n","newText":"N","isReplaceAll":true%s}`,
		"batchEdit": `{"path":"a","replacements":[{"oldText":"n","newText":"N","isReplaceAll":true}]%s}`,
	}
	for _, tt := range tests {
		for tool, args := range writers {
			t.Run(tt.name+"/"+tool, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				file := filepath.Join(dir, "a")
				write(t, file, []byte("one"))
				if err := os.Symlink("a", filepath.Join(dir, "link")); err != nil {
					t.Fatal(err)
				}
				scope := newScope(t, core.Config{}, dir)
				if name, args, _ := strings.Cut(tt.first, " "); name != "" {
					if answer, failed := callTool(t, t.Context(), scope, name, json.RawMessage(args)); failed {
						t.Fatal(answer)
					}
				}
				if tt.then != nil {
					tt.then(t, file)
				}
				before := snapshot(t, dir)
				answer, _ := callTool(t, t.Context(), scope, tool, fmt.Appendf(nil, args, ""))
				if ok := !strings.Contains(answer, refused); ok != tt.want {
					t.Fatalf("%s answers %q", tool, answer)
				}
				if tt.want {
					return
				}
				vectorUnchanged(t, before, snapshot(t, dir))
				if answer, _ := callTool(t, t.Context(), scope, tool, fmt.Appendf(nil, args, `,"force":true`)); strings.Contains(answer, refused) {
					t.Errorf("with force %s answers %q", tool, answer)
				}
				if answer, failed := callTool(t, t.Context(), scope, "writeFile", json.RawMessage(`{"path":"a","content":"last"}`)); failed && tool == "writeFile" {
					t.Errorf("after its own write: %q", answer)
				}
			})
		}
	}
}

func overwriteWith(text string) func(*testing.T, string) {
	return func(t *testing.T, file string) { write(t, file, []byte(text)) }
}

func replaced(text string) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		write(t, file+".new", []byte(text))
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
}

// disguised writes in place and puts the time back.
func disguised(text string) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, []byte(text))
		if err := os.Chtimes(file, time.Time{}, info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that was shown with U+FFFD in it is not written back so (pain 11).
func TestLossyReadIsNotWrittenBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), []byte("caf\xE9 = 1\n"))
	scope := newScope(t, core.Config{}, dir)
	steps := []struct {
		tool, args string
		failed     bool
	}{
		{"writeFile", `{"path":"a","content":"caf\u00e9 = 1\n","force":true}`, false},
		{"writeFile", `{"path":"a","content":"caf\u00e9 = 2\n"}`, false},
	}
	callTool(t, t.Context(), scope, "readFile", json.RawMessage(`{"path":"a"}`))
	for i, content := range []string{`caf\ufffd = 2`, `café`} {
		answer, failed := callTool(t, t.Context(), scope, "writeFile", fmt.Appendf(nil, `{"path":"a","content":"%s"}`, content))
		if !failed || !strings.Contains(answer, "UTF-8") {
			t.Errorf("%d: %q", i, answer)
		}
	}
	for _, s := range steps {
		if answer, failed := callTool(t, t.Context(), scope, s.tool, json.RawMessage(s.args)); failed != s.failed {
			t.Errorf("%s %s: %q", s.tool, s.args, answer)
		}
	}
}

// What a client has seen is its own: another one's write is a change.
func TestScopesSeeEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), []byte("one"))
	first := newScope(t, core.Config{}, dir)
	second, err := first.Child(first.Agent())
	if err != nil {
		t.Fatal(err)
	}
	callTool(t, t.Context(), first, "readFile", json.RawMessage(`{"path":"a"}`))
	args := json.RawMessage(`{"path":"a","content":"two"}`)
	if answer, failed := callTool(t, t.Context(), second, "writeFile", args); failed {
		t.Fatal(answer)
	}
	if answer, failed := callTool(t, t.Context(), second, "edit", json.RawMessage(`{"path":"a","oldText":"two","newText":"three"}`)); failed {
		t.Fatal(answer)
	}
	if answer, failed := callTool(t, t.Context(), first, "writeFile", args); !failed {
		t.Errorf("another client's edit was overwritten: %s", answer)
	}
}

func TestSeenFilesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	scope := newScope(t, core.Config{}, dir)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := seenBy(scope)
	for i := range maxSeen + 100 {
		path, err := scope.Path(fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		seen.note(path, info, nil, false)
	}
	if n := len(seen.files); n != maxSeen {
		t.Errorf("%d files are remembered, want %d", n, maxSeen)
	}
}
