package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"zenmcp/core"
)

// C14: fifty edits of one file at once, by two clients that have not read it.
func TestParallelEdits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	var before, want strings.Builder
	for i := range 50 {
		fmt.Fprintf(&before, "T%02d\n", i)
		fmt.Fprintf(&want, "done %02d\n", i)
	}
	write(t, file, []byte(before.String()))
	if err := os.Symlink("a", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	scope := newScope(t, core.Config{}, dir)
	var calls sync.WaitGroup
	for i := range 50 {
		calls.Go(func() {
			path := []string{"a", "link"}[i%2]
			args := mustJSON(t, map[string]any{"path": path, "oldText": fmt.Sprintf("T%02d", i), "newText": fmt.Sprintf("done %02d", i)})
			if answer, failed := callTool(t, t.Context(), scope, "edit", args); failed {
				t.Errorf("%s: %s", args, answer)
			}
		})
	}
	calls.Wait()
	if got, err := os.ReadFile(file); err != nil || string(got) != want.String() {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

// C06: mode and link stay, whichever tool writes.
func TestModeAndLinkStay(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o755, 0o600} {
		dir := t.TempDir()
		file, link := filepath.Join(dir, "run.sh"), filepath.Join(dir, "l")
		write(t, file, []byte("one two\n"))
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("run.sh", link); err != nil {
			t.Fatal(err)
		}
		scope := newScope(t, core.Config{}, dir)
		for _, path := range []string{"run.sh", "l"} {
			for _, call := range [][2]string{
				{"edit", `{"path":%q,"oldText":"one","newText":"1"}`},
				{"batchEdit", `{"path":%q,"replacements":[{"oldText":"two","newText":"2"}]}`},
				{"writeFile", `{"path":%q,"content":"one two\n"}`},
			} {
				if answer, failed := callTool(t, t.Context(), scope, call[0], fmt.Appendf(nil, call[1], path)); failed {
					t.Fatalf("%s %s: %s", call[0], path, answer)
				}
				if info, err := os.Stat(file); err != nil || info.Mode() != mode {
					t.Errorf("after %s of %s: mode %v, want %v, %v", call[0], path, info.Mode(), mode, err)
				}
				if target, err := os.Readlink(link); err != nil || target != "run.sh" {
					t.Errorf("after %s of %s the link leads to %q, %v", call[0], path, target, err)
				}
			}
		}
	}
}

// C15: nothing outside a root is read or made through a link in it.
func TestLinksOutOfRoot(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	write(t, filepath.Join(elsewhere, "x"), []byte("secret"))
	for link, target := range map[string]string{"out": elsewhere, "d": filepath.Join(elsewhere, "d"), "x": filepath.Join(elsewhere, "x")} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, elsewhere)
	scope := newScope(t, core.Config{}, dir, dir)
	for _, path := range []string{"out/x", "out/new", "d", "x", filepath.Join(elsewhere, "x"), "../" + filepath.Base(elsewhere) + "/x"} {
		for _, call := range [][2]string{
			{"readFile", `{"path":%q}`},
			{"readFile", `{"path":%q,"range":[0]}`},
			{"writeFile", `{"path":%q,"content":"x"}`},
			{"edit", `{"path":%q,"oldText":"secret","newText":"x"}`},
			{"batchEdit", `{"path":%q,"replacements":[{"oldText":"secret","newText":"x"}]}`},
		} {
			answer, failed := callTool(t, t.Context(), scope, call[0], fmt.Appendf(nil, call[1], path))
			if !failed || strings.Contains(answer, "secret") {
				t.Errorf("%s %s: %s", call[0], path, answer)
			}
		}
	}
	vectorUnchanged(t, before, snapshot(t, elsewhere))
}

func vectorUnchanged(t *testing.T, before, after map[string]fileState) {
	t.Helper()
	if err := (&vectorWant{FS: []byte(`"unchanged"`)}).checkFS(before, after, 0); err != nil {
		t.Error(err)
	}
}
