package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"zenmcp/core"
)

// walkFor prepares a walk in dir and collects what it finds.
func walkFor(t *testing.T, dir, pattern string, exclude []string) (*walk, *paths) {
	t.Helper()
	return walkIn(t, newScope(t, core.Config{}, dir), pattern, exclude)
}

func walkIn(t *testing.T, scope *core.Scope, pattern string, exclude []string) (*walk, *paths) {
	t.Helper()
	sel, err := selectPaths(t.Context(), scope, "", pattern, exclude)
	if err != nil {
		t.Fatal(err)
	}
	found := new(paths)
	return &walk{selection: sel, found: found.add}, found
}

func mustRun(t *testing.T, k *walk, found *paths) []string {
	t.Helper()
	how, err := k.run(t.Context(), &core.Call{})
	if err != nil || how != (walked{}) {
		t.Fatalf("run = %+v, %v", how, err)
	}
	if n := k.open.Load(); n != 0 {
		t.Errorf("%d folders are still open", n)
	}
	all, _ := found.sorted()
	return all
}

// A plain implementation must find the same paths in random trees.
func TestWalkLikePlainMatching(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			dir := t.TempDir()
			names := []string{"a", "b", "ab", "a.go", "b.go", ".a", ".b.go", "é", "x-y"}
			name := func() string { return names[rnd.IntN(len(names))] }
			for range 60 {
				path := filepath.Join(dir, name(), name(), name(), name())
				for range rnd.IntN(4) {
					path = filepath.Dir(path)
				}
				if path == dir || len(path) < len(dir) {
					continue
				}
				if os.MkdirAll(filepath.Dir(path), 0o777) == nil && rnd.IntN(3) > 0 {
					os.WriteFile(path, nil, 0o666) // where a folder is, it stays one
				}
			}
			scope := newScope(t, core.Config{}, dir)
			segs := []string{"**", "**", "*", "a", "b", "*.go", "?", "[ab]*", "a*", ".*", "*a*", "é", "**"}
			for range 60 {
				parts := make([]string, 1+rnd.IntN(4))
				for i := range parts {
					parts[i] = segs[rnd.IntN(len(segs))]
				}
				pattern := strings.Join(parts, "/")
				k, found := walkIn(t, scope, pattern, []string{})
				if got, want := mustRun(t, k, found), plainGlob(t, dir, pattern); !slices.Equal(got, want) {
					t.Errorf("%s:\n got %q\nwant %q", pattern, got, want)
				}
			}
		})
	}
}

// plainGlob tries every path below dir, and asks that names with a dot in front
// meet a segment with one.
func plainGlob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	all := []string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))
		if plainMatch(strings.Split(pattern, "/"), strings.Split(rel, "/"), d.IsDir()) {
			all = append(all, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func plainMatch(pattern, path []string, folder bool) bool {
	dotted := func(name string) bool { return name[0] == '.' }
	switch {
	case len(pattern) == 0:
		return len(path) == 0
	case pattern[0] == "**" && len(pattern) == 1:
		return !slices.ContainsFunc(path, dotted) && (len(path) > 0 || folder)
	case pattern[0] == "**":
		return plainMatch(pattern[1:], path, folder) ||
			len(path) > 0 && !dotted(path[0]) && plainMatch(pattern, path[1:], folder)
	case len(path) == 0 || dotted(path[0]) && !dotted(pattern[0]):
		return false
	}
	ok, err := doublestar.Match(pattern[0], path[0])
	return ok && err == nil && plainMatch(pattern[1:], path[1:], folder)
}

// More folders than may be kept open are opened by their paths.
func TestWalkDeepTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const depth = maxOpen + 60
	deep := dir
	for range depth {
		for _, name := range []string{"a", "b"} {
			if err := os.Mkdir(filepath.Join(deep, name), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		deep = filepath.Join(deep, "a")
	}
	k, found := walkFor(t, dir, "**/b", nil)
	if got := mustRun(t, k, found); len(got) != depth {
		t.Errorf("%d paths, want %d", len(got), depth)
	}
}

// batches of one folder go to all workers and hold every entry once.
func TestWalkBatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const files = 100
	for i := range files {
		write(t, filepath.Join(dir, "d", fmt.Sprintf("%03d", i)), nil)
	}
	k, found := walkFor(t, dir, "d/*", nil)
	k.batch = 7
	most := 0
	var mu sync.Mutex
	k.found = func(w *worker, in *folder, entries []entry) bool {
		mu.Lock()
		most = max(most, len(entries))
		mu.Unlock()
		return found.add(w, in, entries)
	}
	if got := mustRun(t, k, found); len(got) != files || most != 7 {
		t.Errorf("%d paths in batches of up to %d", len(got), most)
	}
}

// hooked reads a folder with a word before each of its names.
func hooked(before func(name string) error) func(*core.Folder, []byte, func(string, fs.FileMode) bool) error {
	return func(f *core.Folder, buf []byte, visit func(string, fs.FileMode) bool) error {
		var entries []entry
		err := f.Read(buf, func(name string, typ fs.FileMode) bool {
			entries = append(entries, entry{name, typ})
			return true
		})
		for _, e := range entries {
			if err == nil {
				err = before(e.name)
			}
			if err != nil || !visit(e.name, e.typ) {
				break
			}
		}
		return err
	}
}

// A folder that does not answer ends the walk with an error that names it; a
// cancelled walk does not wait for it.
func TestWalkStuck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x", "away", "stuck"), nil)
	write(t, filepath.Join(dir, "x", "here", "f"), nil)
	run := func(t *testing.T, ctx context.Context) (files []string, how walked, err error) {
		k, found := walkFor(t, dir, "**/f", nil)
		release := make(chan struct{})
		k.read = hooked(func(name string) error {
			if name == "stuck" {
				<-release
			}
			return nil
		})
		how, err = k.run(ctx, &core.Call{})
		files, _ = found.sorted()
		close(release)
		<-k.done
		if n := k.open.Load(); n != 0 {
			t.Errorf("%d folders are still open", n)
		}
		return files, how, err
	}
	t.Run("deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			_, _, err := run(t, t.Context())
			if err == nil || !strings.Contains(err.Error(), filepath.Join("x", "away")) {
				t.Errorf("error = %v; want one that names x/away", err)
			}
			if took := time.Since(begin); took < core.PathDeadline || took > core.PathDeadline+2*time.Second {
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k, found := walkFor(t, dir, "**/f", nil)
			begin := time.Now()
			k.read = hooked(func(name string) error {
				for name == "stuck" && !k.stopped.Load() { // slow, and never quiet
					time.Sleep(time.Second)
					k.mu.Lock()
					for _, w := range k.running {
						w.turns++
					}
					k.mu.Unlock()
				}
				return nil
			})
			how, err := k.run(t.Context(), &core.Call{})
			if files, _ := found.sorted(); err != nil || how != (walked{late: true}) || len(files) != 1 {
				t.Errorf("%q, %+v, %v; want a part", files, how, err)
			}
			if took := time.Since(begin); took < maxWalk*time.Second || took > maxWalk*time.Second+lastCall {
				t.Errorf("took %v", took)
			}
			<-k.done
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			begin := time.Now()
			files, how, err := run(t, ctx)
			if err != nil || !how.aborted || !slices.Equal(files, []string{"x/here/f"}) {
				t.Errorf("%q, %+v, %v; want what was found before", files, how, err)
			}
			if late := time.Since(begin) - 3*time.Second; late > 100*time.Millisecond {
				t.Errorf("ended %v after it was cancelled", late)
			}
		})
	})
}

// Folders that cannot be read are counted; where the walk begins they are errors.
func TestWalkUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a", "f"), nil)
	write(t, filepath.Join(dir, "b", "bad"), nil)
	bad := hooked(func(name string) error {
		if name == "bad" {
			return syscall.EIO
		}
		return nil
	})
	k, found := walkFor(t, dir, "*/*", nil)
	k.read = bad
	how, err := k.run(t.Context(), &core.Call{})
	all, _ := found.sorted()
	if err != nil || how.unreadable != 1 || !errors.Is(how.firstError, syscall.EIO) || !slices.Equal(all, []string{"a/f"}) {
		t.Errorf("%q, %+v, %v; want a/f and one unreadable folder", all, how, err)
	}
	k, _ = walkFor(t, dir, "b/*", nil)
	k.read = bad
	if _, err := k.run(t.Context(), &core.Call{}); !errors.Is(err, syscall.EIO) {
		t.Errorf("error = %v, want EIO", err)
	}
}
