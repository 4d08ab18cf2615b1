//go:build unix

package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestConfinement tries every way out of the roots with every method: all are
// refused in words that name the path and the roots, and nothing anywhere
// changes.
func TestConfinement(t *testing.T) {
	t.Parallel()
	for method := range reflect.TypeFor[Path]().Methods() {
		_, known := pathMethods[method.Name]
		disk := method.Type.NumIn() > 1 && method.Type.In(1) == reflect.TypeFor[context.Context]()
		if disk && !known && method.Name != "Reader" && method.Name != "Protected" {
			t.Errorf("Path.%s is not tested here", method.Name)
		}
	}
	w := newWorld(t)
	w.link(t, map[string]string{
		"out-rel": "../out/secret.txt", "out-abs": w.base + "/out/secret.txt", "out-new": w.base + "/out/new", "out-new-rel": "../out/new",
		"out-dir": w.base + "/out/dir", "out-dir-rel": "../out/dir", "out-dots": "d/../../out/secret.txt", "out-top": "../../../../../../../../../etc",
		"out-chain": "out-chain2", "out-chain2": "out-chain3", "out-chain3": "../out/secret.txt",
		"out-back": "../out/back", "../out/back": w.base + "/in/a.txt", // and inside again
	})
	s := w.scope(t, "in", "in2")
	before := w.tree(t)
	below := []string{"out-dir/x", "out-dir/none", "out-dir-rel/x", "out-dir-rel/d/y", "out-top/passwd", "./out-dir/x", "d/../out-dir/x", w.base + "/in/out-dir/x"}
	direct := []string{"out-rel", "out-abs", "out-new", "out-new-rel", "out-dots", "out-chain", "out-back", "out-top", "out-dir/", "out-dir-rel"}
	for name, method := range pathMethods {
		given := slices.Clone(below)
		if !method.self {
			given = append(given, direct...)
		}
		for _, g := range given {
			p, err := s.Path(g)
			if err == nil {
				err = method.call(t.Context(), p)
			}
			if err == nil || !strings.Contains(err.Error(), "outside") || !strings.Contains(err.Error(), fmt.Sprintf("%q", g)) || !strings.Contains(err.Error(), w.base+"/in2") {
				t.Errorf("%s of %q: %v, want a refusal that names it and the roots", name, g, err)
			}
		}
	}
	for _, g := range []string{"..", "../out/secret.txt", w.base + "/out/secret.txt", "/", "/etc/passwd", w.base + "/in/../out", w.base + "/inside", w.base + "/in3", "d/../../out"} {
		if p, err := s.Path(g); err == nil || !strings.Contains(err.Error(), "outside") {
			t.Errorf("Path(%q) gave %q and %v", g, p.Abs, err)
		}
	}
	if after := w.tree(t); !maps.Equal(before, after) {
		t.Errorf("something changed:\n%v\n%v", before, after)
	}
}

// TestLinksInside reads over links that stay inside; confined or not, they lead
// to the same.
func TestLinksInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := map[string]string{
		"a.txt": "in/a.txt", "rel": "in/a.txt", "abs": "in/a.txt", "abs-dir/f": "in/d/f", "rel-dir/f": "in/d/f",
		"abs-dir/../a.txt": "in/a.txt", "chain1": "in/a.txt", "dots": "in/a.txt", "dots-dir/f": "in/d/f", "down-up": "in/a.txt",
		"two": "in2/b.txt", "two-rel": "in2/b.txt", "two-dir/b.txt": "in2/b.txt", "two-sub/c": "in2/sub/c",
		w.base + "/in/two-sub/c": "in2/sub/c", w.base + "/in2/b.txt": "in2/b.txt", "../in/a.txt": "in/a.txt", "../in2/b.txt": "in2/b.txt",
	}
	for name, s := range map[string]*Scope{"confined": w.scope(t, "in", "in2"), "free": w.scope(t), "roots in each other": w.scope(t, "in/d", "in", "in2")} {
		for given, want := range files {
			p := mustPath(t, s, given)
			data, info, err := p.ReadFile(t.Context())
			if err != nil || string(data) != w.read(t, want) || info.Size() != int64(len(data)) {
				t.Errorf("%s: ReadFile(%q) gave %q and %v, want what is in %s", name, given, data, err, want)
			}
			if real, err := p.Real(t.Context()); err != nil || real.Abs != filepath.Join(w.base, want) {
				t.Errorf("%s: Real(%q) is %q, %v", name, given, real.Abs, err)
			}
		}
		for _, given := range []string{"abs-dir", "rel-dir", "dots-dir", "abs-dir/"} {
			entries, err := mustPath(t, s, given).ReadDir(t.Context())
			if err != nil || len(entries) != 1 || entries[0].Name() != "f" {
				t.Errorf("%s: ReadDir(%q) gave %v and %v", name, given, entries, err)
			}
		}
		for _, given := range []string{"loop1", "loop1/x"} {
			for _, method := range []string{"Stat", "ReadFile", "WriteFile", "ReadDir", "Real"} {
				err := pathMethods[method].call(t.Context(), mustPath(t, s, given))
				if !errors.Is(err, syscall.ELOOP) || !strings.Contains(err.Error(), fmt.Sprintf("%q", given)) {
					t.Errorf("%s: %s of %q gave %v, want the error for a loop", name, method, given, err)
				}
			}
		}
		for _, method := range []string{"Stat", "ReadFile", "WriteFile", "Lock"} {
			if err := pathMethods[method].call(t.Context(), mustPath(t, s, "nowhere")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s of a link that comes back out of nowhere gave %v", name, method, err)
			}
		}
	}
}

// TestConfinedLikeFree does the same in two worlds, with roots and without: the
// answers and what the worlds look like afterwards must be equal.
func TestConfinedLikeFree(t *testing.T) {
	t.Parallel()
	givens := []string{
		"rel", "abs", "d", "abs-dir", "abs-dir/f", "abs-dir/none/deep", "new-abs", "nowhere", "loop1", "abs/x",
	}
	free, confined := newWorld(t), newWorld(t)
	untouched := free.tree(t)
	try := func(w world, call func(context.Context, Path) error, given string, roots ...string) (string, map[string]string) {
		err := call(t.Context(), mustPath(t, w.scope(t, roots...), given))
		return strings.ReplaceAll(fmt.Sprint(err), w.base, "BASE"), w.tree(t)
	}
	for name, method := range pathMethods {
		for _, given := range givens {
			want, wantTree := try(free, method.call, given)
			got, gotTree := try(confined, method.call, given, "in")
			if got != want {
				t.Errorf("%s of %q:\nconfined %s\nfree     %s", name, given, got, want)
			}
			for _, file := range slices.Sorted(maps.Keys(wantTree)) {
				if gotTree[file] != wantTree[file] {
					t.Errorf("%s of %q: %s is %q confined, %q free", name, given, file, gotTree[file], wantTree[file])
				}
			}
			if len(gotTree) != len(wantTree) {
				t.Errorf("%s of %q leaves %d files confined, %d free", name, given, len(gotTree), len(wantTree))
			}
			if !maps.Equal(gotTree, untouched) || !maps.Equal(wantTree, untouched) {
				free, confined = newWorld(t), newWorld(t)
			}
		}
	}
}

// TestLinkedRoot has a root that is given by a link.
func TestLinkedRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := filepath.Join(w.base, "link")
	if err := os.Symlink(filepath.Join(w.base, "in"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(link+"/d/f", filepath.Join(w.base, "in", "by-link")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{link, filepath.Join(w.base, "in")} {
		s, err := NewScope(&Env{}, AgentDefinition{}, dir, openRoots(t, link))
		if err != nil {
			t.Fatal(err)
		}
		for given, want := range map[string]string{
			"a.txt": "A", link + "/a.txt": "A", w.base + "/in/a.txt": "A", "abs": "A", "by-link": "F", link + "/abs-dir/f": "F",
		} {
			if data, _, err := mustPath(t, s, given).ReadFile(t.Context()); err != nil || string(data) != want {
				t.Errorf("in %s: ReadFile(%q) gave %q, %v", dir, given, data, err)
			}
		}
	}
	// A working directory that is spelled over a link outside is inside all the same.
	s, err := NewScope(&Env{}, AgentDefinition{}, filepath.Join(link, "d"), openRoots(t, filepath.Join(w.base, "in")))
	if err != nil || s.Dir() != filepath.Join(w.base, "in", "d") {
		t.Errorf("the working directory is %q, %v", s.Dir(), err)
	}
}

func TestRootRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.scope(t, "in")
	if err := os.RemoveAll(filepath.Join(w.base, "in")); err != nil {
		t.Fatal(err)
	}
	for name, method := range pathMethods {
		err := method.call(t.Context(), mustPath(t, s, "a.txt"))
		if name == "Real" || name == "Lock" || name == "RemoveAll" { // for which a file need not be there
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `"a.txt"`) {
			t.Errorf("%s gave %v", name, err)
		}
	}
}

func TestOpenRoots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, dir := range []string{"", w.base + "/none", w.base + "/in/a.txt"} {
		if r, err := OpenRoots([]string{w.base + "/in", dir}); err == nil {
			t.Errorf("%q was taken for a root: %v", dir, r.List())
		} else if dir != "" && !strings.Contains(err.Error(), fmt.Sprintf("%q", dir)) {
			t.Errorf("the error for %q does not name it: %v", dir, err)
		}
	}
	for _, dirs := range [][]string{nil, {"/"}, {w.base + "/in", "/"}, {"/.."}} {
		if r, err := OpenRoots(dirs); err != nil || r.List() != nil {
			t.Errorf("%q confines to %v, %v", dirs, r.List(), err)
		}
	}
}
