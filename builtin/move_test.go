package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zenmcp/core"
)

// lay makes files below dir: "path" is a file with its path as content, "path/"
// a folder, "path > target" a link, "path |" a named pipe.
func lay(t testing.TB, dir string, entries ...string) {
	t.Helper()
	for _, e := range entries {
		link, target, isLink := strings.Cut(e, " > ")
		pipe, isPipe := strings.CutSuffix(e, " |")
		var err error
		switch {
		case isLink:
			write(t, filepath.Join(dir, link), nil)
			err = errors.Join(os.Remove(filepath.Join(dir, link)), os.Symlink(target, filepath.Join(dir, link)))
		case isPipe:
			err = mkfifo(filepath.Join(dir, pipe))
		case strings.HasSuffix(e, "/"):
			err = os.MkdirAll(filepath.Join(dir, e), 0o777)
		default:
			write(t, filepath.Join(dir, e), []byte(e))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// laid lists what is below dir in the notation of lay; a file with a content
// other than its path is "path = content".
func laid(t *testing.T, dir string) []string {
	t.Helper()
	all := []string{}
	for path, s := range snapshot(t, dir) {
		switch {
		case s.kind == fs.ModeDir:
			path += "/"
		case s.kind == fs.ModeSymlink:
			path += " > " + s.data
		case s.kind == fs.ModeNamedPipe:
			path += " |"
		case s.data != path:
			path += " = " + s.data
		}
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

// A moving is a call in in/w, one of the roots being in and the other x.
type moving struct {
	name    string
	tool    string
	files   []string
	args    map[string]any
	refused string   // what the error says; then nothing changes
	want    []string // without the folders in, in/w and x
}

func movings() []moving {
	type args = map[string]any
	return []moving{
		{"copy to the other root", "copy", []string{"in/w/a"}, args{"src": "a", "dest": "../../x/n/b"}, "", []string{"in/w/a", "x/n/", "x/n/b = in/w/a"}},
		{"copy a link that leads up", "copy", []string{"in/a", "in/w/l > ../a"}, args{"src": "l", "dest": "m"}, "", []string{"in/a", "in/w/l > ../a", "in/w/m > ../a"}},
		{"copy a tree with links", "copy", []string{"in/w/d/f", "in/w/d/l > f", "in/w/d/s/up > ..", "in/w/d/gone > nowhere"}, args{"src": "d", "dest": "e", "recursive": true}, "",
			[]string{"in/w/d/", "in/w/d/f", "in/w/d/gone > nowhere", "in/w/d/l > f", "in/w/d/s/", "in/w/d/s/up > ..",
				"in/w/e/", "in/w/e/f = in/w/d/f", "in/w/e/gone > nowhere", "in/w/e/l > f", "in/w/e/s/", "in/w/e/s/up > .."}},
		{"copy what a link with a slash leads to", "copy", []string{"in/w/d/f", "in/w/l > d"}, args{"src": "l/", "dest": "e", "recursive": true}, "", []string{"in/w/d/", "in/w/d/f", "in/w/e/", "in/w/e/f = in/w/d/f", "in/w/l > d"}},
		{"copy over a link", "copy", []string{"in/w/a", "in/w/t", "in/w/l > t"}, args{"src": "a", "dest": "l"}, "", []string{"in/w/a", "in/w/l = in/w/a", "in/w/t"}},
		{"copy over a link that leads out", "copy", []string{"in/w/a", "out/t", "in/w/l > ../../out/t"}, args{"src": "a", "dest": "l"}, "", []string{"in/w/a", "in/w/l = in/w/a", "out/", "out/t"}},
		{"copy below a link that leads out", "copy", []string{"in/w/a", "out/", "in/w/l > ../../out"}, args{"src": "a", "dest": "l/b"}, "outside", nil},
		{"merge where a link leads out", "copy", []string{"in/w/d/s/f", "out/", "in/w/e/s > ../../../out"}, args{"src": "d", "dest": "e", "recursive": true}, "is a link", nil},
		{"copy into itself", "copy", []string{"in/w/d/f"}, args{"src": "d", "dest": "d/s/e", "recursive": true}, "into itself", nil},
		{"copy into itself by a link", "copy", []string{"in/w/d/f", "in/w/l > d"}, args{"src": "d", "dest": "l/e", "recursive": true}, "into itself", nil},
		{"copy onto itself", "copy", []string{"in/w/d/f"}, args{"src": "d", "dest": "../w/d", "recursive": true}, "into itself", nil},
		{"copy onto the same file", "copy", []string{"in/w/a"}, args{"src": "a", "dest": "./a"}, "same file", nil},
		{"copy a file onto a directory", "copy", []string{"in/w/a", "in/w/d/"}, args{"src": "a", "dest": "d"}, filepath.Join("d", "a"), nil},
		{"copy a file to a directory that is not there", "copy", []string{"in/w/a"}, args{"src": "a", "dest": "n/d/"}, filepath.Join("n", "d", "a"), nil},
		{"copy a directory onto a file", "copy", []string{"in/w/a", "in/w/d/"}, args{"src": "d", "dest": "a", "recursive": true}, "is a file", nil},
		{"copy a directory plainly", "copy", []string{"in/w/d/"}, args{"src": "d", "dest": "e"}, "recursive: true", nil},
		{"copy the contents of a folder up", "copy", []string{"in/w/d/s/f"}, args{"src": "d/s", "dest": "d", "recursive": true}, "", []string{"in/w/d/", "in/w/d/f = in/w/d/s/f", "in/w/d/s/", "in/w/d/s/f"}},
		{"copy from outside", "copy", []string{"out/t"}, args{"src": "../../out/t", "dest": "a"}, "outside", nil},
		{"copy a link from in to what is outside", "copy", []string{"out/t", "in/w/l > ../../out"}, args{"src": "l/t", "dest": "a"}, "outside", nil},

		{"move a file to the other root", "rename", []string{"in/w/a"}, args{"oldPath": "a", "newPath": "../../x/b"}, "", []string{"x/b = in/w/a"}},
		{"move onto a file", "rename", []string{"in/w/a", "x/b"}, args{"oldPath": "a", "newPath": "../../x/b"}, "", []string{"x/b = in/w/a"}},
		{"move a link", "rename", []string{"in/w/l > ../nowhere", "x/b"}, args{"oldPath": "l", "newPath": "../../x/b"}, "", []string{"x/b > ../nowhere"}},
		{"move a tree", "rename", []string{"in/w/d/f", "in/w/d/s/l > ../f", "in/w/d/e/"}, args{"oldPath": "d", "newPath": "../../x/d"}, "", []string{"x/d/", "x/d/e/", "x/d/f = in/w/d/f", "x/d/s/", "x/d/s/l > ../f"}},
		{"move onto an empty directory", "rename", []string{"in/w/d/f", "x/d/"}, args{"oldPath": "d", "newPath": "../../x/d"}, "", []string{"x/d/", "x/d/f = in/w/d/f"}},
		{"move onto an empty directory nearby", "rename", []string{"in/w/d/f", "in/w/e/"}, args{"oldPath": "d", "newPath": "e"}, "", []string{"in/w/e/", "in/w/e/f = in/w/d/f"}},
		{"move a directory onto itself", "rename", []string{"in/w/d/"}, args{"oldPath": "d", "newPath": "./d"}, "", []string{"in/w/d/"}},
		{"move onto a full directory", "rename", []string{"in/w/d/f", "x/d/g"}, args{"oldPath": "d", "newPath": "../../x/d"}, "not empty", nil},
		{"move onto a full directory nearby", "rename", []string{"in/w/d/f", "in/w/e/g"}, args{"oldPath": "d", "newPath": "e"}, "not empty", nil},
		{"move what cannot be copied", "rename", []string{"in/w/d/a", "in/w/d/p |"}, args{"oldPath": "d", "newPath": "../../x/d"}, "named pipe", nil},
		{"move to a folder that is not there", "rename", []string{"in/w/a"}, args{"oldPath": "a", "newPath": "../../x/n/b"}, "no such", nil},
		{"move a folder into itself", "rename", []string{"in/w/d/f"}, args{"oldPath": "d", "newPath": "d/e"}, "into itself", nil},
		{"move a file onto a directory", "rename", []string{"in/w/a", "in/w/d/"}, args{"oldPath": "a", "newPath": "d"}, filepath.Join("d", "a"), nil},
		{"move a directory onto a file", "rename", []string{"in/w/a", "in/w/d/"}, args{"oldPath": "d", "newPath": "a"}, "is a file", nil},
		{"move out", "rename", []string{"in/w/a", "out/"}, args{"oldPath": "a", "newPath": "../../out/a"}, "outside", nil},
		{"move the working directory", "rename", []string{"in/w/a"}, args{"oldPath": ".", "newPath": "../z"}, "working directory", nil},
		{"move the parent", "rename", []string{"in/w/a"}, args{"oldPath": "..", "newPath": "../../x/z"}, "working directory", nil},
		{"move onto a root", "rename", []string{"in/w/d/"}, args{"oldPath": "d", "newPath": "../../x"}, "root", nil},

		{"remove a tree with links", "rm", []string{"out/f", "in/w/d/a/b/c", "in/w/d/l > ../../../out", "in/w/d/s > .", "in/w/k"}, args{"path": "d", "recursive": true}, "", []string{"in/w/k", "out/", "out/f"}},
		{"remove in the other root", "rm", []string{"x/d/f"}, args{"path": "../../x/d/", "recursive": true}, "", []string{}},
		{"remove a link with a slash", "rm", []string{"in/w/d/f", "in/w/l > d"}, args{"path": "l/", "recursive": true}, "slash", nil},
		{"remove a pipe", "rm", []string{"in/w/p |"}, args{"path": "p"}, "", []string{}},
		{"remove below a link that leads out", "rm", []string{"out/f", "in/w/l > ../../out"}, args{"path": "l/f"}, "outside", nil},
		{"remove the working directory", "rm", []string{"in/w/f"}, args{"path": "../w", "recursive": true}, "working directory", nil},
		{"remove the working directory by a link", "rm", []string{"in/w/f", "in/l > w"}, args{"path": "../l/.", "recursive": true}, "", []string{"in/w/f"}},
		{"remove a root", "rm", []string{"x/f"}, args{"path": "../../x", "recursive": true}, "root", nil},
	}
}

// TestMoving calls copy, rename and rm and looks at everything afterwards. Between
// roots rename copies and deletes.
func TestMoving(t *testing.T) {
	t.Parallel()
	for _, tt := range movings() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			lay(t, base, "in/w/", "x/")
			lay(t, base, tt.files...)
			before := laid(t, base)
			scope := newScope(t, core.Config{}, filepath.Join(base, "in", "w"), filepath.Join(base, "in"), filepath.Join(base, "x"))
			answer, failed := callTool(t, t.Context(), scope, tt.tool, mustJSON(t, tt.args))
			after := laid(t, base)
			if tt.refused != "" {
				if !failed || !strings.Contains(answer, tt.refused) || !slices.Equal(before, after) {
					t.Errorf("%q, %v, left %q; want a refusal with %q and %q", answer, failed, after, tt.refused, before)
				}
				return
			}
			want := append(tt.want, "in/", "in/w/", "x/")
			slices.Sort(want)
			if failed || answer != "success" || !slices.Equal(after, want) {
				t.Errorf("%q, %v:\n got %q\nwant %q", answer, failed, after, want)
			}
		})
	}
}

func TestModesAndTimes(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	lay(t, base, "in/d/f", "in/d/ro/f", "x/")
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	modes := map[string]fs.FileMode{"d/f": 0o640, "d/ro/f": 0o751, "d/ro": 0o555, "d": 0o700}
	for name, mode := range modes {
		path := filepath.Join(base, "in", name)
		if err := errors.Join(os.Chmod(path, mode), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // so that it can be removed
		for _, name := range []string{"in/d/ro", "in/e/ro", "x/d/ro"} {
			os.Chmod(filepath.Join(base, name), 0o700)
		}
	})
	scope := newScope(t, core.Config{}, filepath.Join(base, "in"), filepath.Join(base, "in"), filepath.Join(base, "x"))
	check := func(in string, wantTime bool) {
		t.Helper()
		for name, mode := range modes {
			info, err := os.Stat(filepath.Join(base, in, strings.TrimPrefix(name, "d")))
			if err != nil || info.Mode().Perm() != mode || info.ModTime().Equal(old) != wantTime {
				t.Errorf("%s%s: %v, %v; want mode %v, old time %v", in, name, info, err, mode, wantTime)
			}
		}
	}
	if answer, failed := callTool(t, t.Context(), scope, "copy", []byte(`{"src":"d","dest":"e","recursive":true}`)); failed {
		t.Fatal(answer)
	}
	check("in/e", false)
	if os.Geteuid() != 0 { // others cannot empty a folder that they may not write
		if err := os.Chmod(filepath.Join(base, "in/d/ro"), 0o755); err != nil {
			t.Fatal(err)
		}
		modes["d/ro"] = 0o755
	}
	if answer, failed := callTool(t, t.Context(), scope, "rename", []byte(`{"oldPath":"d","newPath":"../x/d"}`)); failed {
		t.Fatal(answer)
	}
	check("x/d", true)
}

// Copying over a file with several names must not part them.
func TestCopyKeepsHardLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lay(t, dir, "a", "b")
	if err := os.Link(filepath.Join(dir, "b"), filepath.Join(dir, "c")); err != nil {
		t.Fatal(err)
	}
	scope := newScope(t, core.Config{}, dir)
	if answer, failed := callTool(t, t.Context(), scope, "copy", []byte(`{"src":"a","dest":"b"}`)); failed {
		t.Fatal(answer)
	}
	if got, want := laid(t, dir), []string{"a", "b = a", "c = a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if answer, failed := callTool(t, t.Context(), scope, "copy", []byte(`{"src":"b","dest":"c"}`)); !failed || !strings.Contains(answer, "same file") {
		t.Errorf("%q, %v", answer, failed)
	}
}

// A copy of more than one piece is whole, and one that is cancelled leaves no
// part of a file behind.
func TestCopyLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := slices.Repeat([]byte("0123456789abcdef"), 20<<20/16)
	write(t, filepath.Join(dir, "long"), long)
	scope := newScope(t, core.Config{}, dir)
	if answer, failed := callTool(t, t.Context(), scope, "copy", []byte(`{"src":"long","dest":"new"}`)); failed {
		t.Fatal(answer)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "new")); err != nil || !slices.Equal(got, long) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	src, dest := mustPath(t, scope, "long"), mustPath(t, scope, "part")
	ctx, cancel := context.WithCancel(t.Context())
	c := copier{steps: new(steps)}
	go func() {
		for c.steps.moves.Load() < 3 {
			if ctx.Err() != nil {
				return
			}
		}
		cancel()
	}()
	err := c.copy(ctx, src, dest)
	cancel()
	left := slices.Sorted(maps.Keys(snapshot(t, dir)))
	if whole := slices.Equal(left, []string{"long", "new", "part"}); err == nil != whole || err != nil && !slices.Equal(left, []string{"long", "new"}) {
		t.Errorf("%v left %q", err, left)
	}
}

func mustPath(t testing.TB, scope *core.Scope, given string) core.Path {
	t.Helper()
	path, err := scope.Path(given)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// When what was moved cannot be removed at its old place, nothing is lost and the
// answer says so.
func TestRemoveStopsAtErrors(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Log("root may remove everything; only cancelling is tried")
	}
	dir := t.TempDir()
	lay(t, dir, "d/a", "d/b/c")
	scope := newScope(t, core.Config{}, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answer, failed := callTool(t, ctx, scope, "rm", []byte(`{"path":"d","recursive":true}`))
	if got := laid(t, dir); !failed || !slices.Equal(got, []string{"d/", "d/a", "d/b/", "d/b/c"}) {
		t.Errorf("%q, %v left %q", answer, failed, got)
	}
	if os.Geteuid() == 0 {
		return
	}
	locked := filepath.Join(dir, "d", "b")
	if err := os.Chmod(locked, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(locked, 0o755)
	answer, failed = callTool(t, t.Context(), scope, "rm", []byte(`{"path":"d","recursive":true}`))
	if !failed || !strings.Contains(answer, filepath.Join("d", "b", "c")) {
		t.Errorf("%q, %v; want an error that names d/b/c", answer, failed)
	}
}

func TestAttend(t *testing.T) {
	t.Parallel()
	t.Run("stuck", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			begin := time.Now()
			err := attend(t.Context(), &core.Call{}, "copied", func(ctx context.Context, s *steps) error {
				s.done()
				if err := s.next(ctx, "far/away"); err != nil {
					return err
				}
				<-release
				return s.next(ctx, "not any more")
			})
			if took := time.Since(begin); took < core.PathDeadline || took > core.PathDeadline+2*time.Second {
				t.Errorf("took %v", took)
			}
			if err == nil || !strings.Contains(err.Error(), "far/away") || !strings.Contains(err.Error(), "1 file copied") {
				t.Errorf("error = %v", err)
			}
			close(release)
		})
	})
	t.Run("slow and cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 58500*time.Millisecond)
			defer cancel()
			var reports []string
			call := &core.Call{Progress: func(p core.Progress) { reports = append(reports, fmt.Sprint(p.Done, ": ", p.Message)) }}
			err := attend(ctx, call, "removed", func(ctx context.Context, s *steps) error {
				for {
					if err := s.next(ctx, "x"); err != nil {
						return err
					}
					select {
					case <-time.After(4 * time.Second):
						s.done()
					case <-ctx.Done():
					}
				}
			})
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "14 files removed") {
				t.Errorf("error = %v", err)
			}
			// Whether there is time for one more at the end is the scheduler's to say.
			if len(reports) < 15 || len(reports) > 16 || reports[1] != "3: 1 file removed" {
				t.Errorf("%d reports: %q", len(reports), reports)
			}
		})
	})
}

func TestSleepReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var done []float64
		call := &core.Call{Arguments: []byte(`{"ms":3500}`), Progress: func(p core.Progress) {
			if p.Total != 3.5 {
				t.Errorf("total %v", p.Total)
			}
			done = append(done, p.Done)
		}}
		begin := time.Now()
		res, err := sleep().Run(t.Context(), call)
		if err != nil || res.IsError || time.Since(begin) != 3500*time.Millisecond || !slices.Equal(done, []float64{1, 2, 3}) {
			t.Errorf("%v, %v after %v, reports %v", res, err, time.Since(begin), done)
		}
	})
}
