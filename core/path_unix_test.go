//go:build unix

package core

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// A world is a folder with two roots, in and in2, and what lies outside, out. The
// roots hold links of all sorts.
type world struct {
	base string
}

func newWorld(t testing.TB) world {
	t.Helper()
	w := world{realDir(t)}
	for _, dir := range []string{"in/d", "in/empty", "in2/sub", "out/dir/d"} {
		if err := os.MkdirAll(filepath.Join(w.base, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"in/a.txt": "A", "in/d/f": "F", "in2/b.txt": "B", "in2/sub/c": "C", "out/secret.txt": "S", "out/dir/x": "X", "out/dir/d/y": "Y",
	} {
		if err := os.WriteFile(filepath.Join(w.base, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	w.link(t, map[string]string{
		"rel": "a.txt", "abs": w.base + "/in/a.txt", "abs-dir": w.base + "/in/d", "rel-dir": "d",
		"chain1": "chain2", "chain2": "chain3", "chain3": w.base + "/in/rel",
		"dots": "d/../a.txt", "dots-dir": "abs-dir/../d", "down-up": "../in/d/../a.txt",
		"new": "made", "new-abs": w.base + "/in/made-abs", "nowhere": "missing/../a.txt", "loop1": "loop2", "loop2": "loop1",
		"two": w.base + "/in2/b.txt", "two-rel": "../in2/b.txt", "two-dir": "../in2", "two-sub": "two-dir/sub",
	})
	return w
}

// link makes links in the first root.
func (w world) link(t testing.TB, targets map[string]string) {
	t.Helper()
	for name, target := range targets {
		if err := os.Symlink(target, filepath.Join(w.base, "in", name)); err != nil {
			t.Fatal(err)
		}
	}
}

// scope works in the first root. Without roots nothing is confined.
func (w world) scope(t testing.TB, roots ...string) *Scope {
	t.Helper()
	var confined *Roots
	if len(roots) > 0 {
		var dirs []string
		for _, r := range roots {
			dirs = append(dirs, filepath.Join(w.base, r))
		}
		confined = openRoots(t, dirs...)
	}
	s, err := NewScope(&Env{}, AgentDefinition{}, filepath.Join(w.base, "in"), confined)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tree lists everything in the world: names with modes, targets and contents.
func (w world) tree(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{} // with BASE for the name of this world
	err := filepath.WalkDir(w.base, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " " + strings.ReplaceAll(target, w.base, "BASE")
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		}
		rel, err := filepath.Rel(w.base, path)
		all[filepath.ToSlash(rel)] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (w world) read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.base, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A pathMethod is a method of Path that reaches for the disk.
type pathMethod struct {
	call func(context.Context, Path) error
	self bool // is about the path itself, not about what a link leads to
}

var pathMethods = map[string]pathMethod{
	"Stat":      {call: func(ctx context.Context, p Path) error { _, err := p.Stat(ctx); return err }},
	"Lstat":     {self: true, call: func(ctx context.Context, p Path) error { _, err := p.Lstat(ctx); return err }},
	"Real":      {call: func(ctx context.Context, p Path) error { _, err := p.Real(ctx); return err }},
	"ReadFile":  {call: func(ctx context.Context, p Path) error { _, _, err := p.ReadFile(ctx); return err }},
	"ReadHead":  {call: func(ctx context.Context, p Path) error { _, _, err := p.ReadHead(ctx, 10); return err }},
	"ReadDir":   {call: func(ctx context.Context, p Path) error { _, err := p.ReadDir(ctx); return err }},
	"Readlink":  {self: true, call: func(ctx context.Context, p Path) error { _, err := p.Readlink(ctx); return err }},
	"Mkdir":     {self: true, call: func(ctx context.Context, p Path) error { return p.Mkdir(ctx) }},
	"MkdirAll":  {call: func(ctx context.Context, p Path) error { return p.MkdirAll(ctx) }},
	"Remove":    {self: true, call: func(ctx context.Context, p Path) error { return p.Remove(ctx) }},
	"RemoveAll": {self: true, call: func(ctx context.Context, p Path) error { return p.RemoveAll(ctx) }},
	"Symlink":   {self: true, call: func(ctx context.Context, p Path) error { return p.Symlink(ctx, "x") }},
	"Chmod":     {call: func(ctx context.Context, p Path) error { return p.Chmod(ctx, 0o640) }},
	"Resemble": {self: true, call: func(ctx context.Context, p Path) error {
		info, err := os.Stat(os.TempDir())
		if err != nil {
			return err
		}
		return p.Resemble(ctx, info)
	}},
	"Open": {call: func(ctx context.Context, p Path) error {
		f, _, err := p.Open(ctx)
		if err == nil {
			f.Close()
		}
		return err
	}},
	"OpenFolder": {call: func(ctx context.Context, p Path) error {
		f, err := p.OpenFolder(ctx)
		if err == nil {
			f.Close()
		}
		return err
	}},
	"Create": {self: true, call: func(ctx context.Context, p Path) error {
		f, err := p.Create(ctx, 0o666)
		if err == nil {
			f.Close()
		}
		return err
	}},
	"Append": {call: func(ctx context.Context, p Path) error {
		f, err := p.Append(ctx)
		if err == nil {
			f.Close()
		}
		return err
	}},
	"Rename": {self: true, call: func(ctx context.Context, p Path) error {
		other, err := p.scope.Path("renamed")
		if err != nil {
			return err
		}
		return p.Rename(ctx, other)
	}},
	"Rename to it": {self: true, call: func(ctx context.Context, p Path) error {
		other, err := p.scope.Path("a.txt")
		if err != nil {
			return err
		}
		return other.Rename(ctx, p)
	}},
	"Stage": {call: func(ctx context.Context, p Path) error {
		s, err := p.Stage(ctx)
		if err != nil {
			return err
		}
		_, err = s.Commit(ctx)
		return err
	}},
	"WriteFile": {call: func(ctx context.Context, p Path) error { _, _, err := p.WriteFile(ctx, []byte("written")); return err }},
	"Lock": {call: func(ctx context.Context, p Path) error {
		unlock, err := p.Lock(ctx)
		if err == nil {
			unlock()
		}
		return err
	}},
}

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
		"a.txt", "rel", "abs", "d", "abs-dir", "abs-dir/f", "abs-dir/none/deep", "chain1", "new", "new-abs", "none", "nowhere", "loop1", "abs/x", "abs-dir/",
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

// TestPathForms checks what Path, Join, Parent and Base make of names.
func TestPathForms(t *testing.T) {
	t.Parallel()
	s, err := NewScope(&Env{}, AgentDefinition{}, "/w/dir", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ given, abs, base, parentGiven, parentAbs string }{
		{"a", "/w/dir/a", "a", ".", "/w/dir"},
		{"./a", "/w/dir/a", "a", ".", "/w/dir"},
		{"a/b", "/w/dir/a/b", "b", "a", "/w/dir/a"},
		{"a/b/", "/w/dir/a/b", "b", "a", "/w/dir/a"},
		{"a/../b", "/w/dir/b", "b", ".", "/w/dir"},
		{"../b", "/w/b", "b", "..", "/w"},
		{".", "/w/dir", "dir", "/w", "/w"},
		{"..", "/w", "w", "/", "/"},
		{"/x/y", "/x/y", "y", "/x", "/x"},
		{"/", "/", "/", "/", "/"},
		{"a b/ü", "/w/dir/a b/ü", "ü", "a b", "/w/dir/a b"},
	} {
		p := mustPath(t, s, c.given)
		if p.Given != c.given || p.Abs != c.abs || p.Base() != c.base {
			t.Errorf("Path(%q) is %q, %q with base %q", c.given, p.Given, p.Abs, p.Base())
		}
		if up := p.Parent(); up.Given != c.parentGiven || up.Abs != c.parentAbs {
			t.Errorf("the parent of %q is %q, %q, want %q, %q", c.given, up.Given, up.Abs, c.parentGiven, c.parentAbs)
		}
	}
	if p := mustPath(t, s, "a/").Join("b"); p.Given != "a/b" || p.Abs != "/w/dir/a/b" || p.name() != "w/dir/a/b" {
		t.Errorf("Join gives %+v", p)
	}
	for given, want := range map[string]string{"": "empty", "a\x00b": "NUL", strings.Repeat("x", 1<<20) + "\x00": "NUL"} {
		if _, err := s.Path(given); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("Path(%.10q) gave %v, want %q", given, err, want)
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

// TestTrailingSlash checks that a slash at the end means a directory, the same
// confined or not.
func TestTrailingSlash(t *testing.T) {
	t.Parallel()
	file, link := syscall.ENOTDIR, errors.New("is a link")
	worlds := [2]world{newWorld(t), newWorld(t)}
	untouched := worlds[0].tree(t)
	for _, c := range []struct {
		method, given string
		want          error // nil for success
	}{
		{"Stat", "a.txt/", file}, {"Lstat", "a.txt/", file}, {"ReadFile", "a.txt/", file}, {"Open", "a.txt/", file},
		{"ReadDir", "a.txt/", file}, {"Remove", "a.txt/", file}, {"RemoveAll", "a.txt/", file}, {"Rename", "a.txt/", file},
		{"WriteFile", "a.txt/", file}, {"Stage", "a.txt/", file}, {"Chmod", "a.txt/", file}, {"Readlink", "rel/", link},
		{"Stat", "rel/", file}, {"Remove", "rel/", link}, {"RemoveAll", "rel/", link}, {"Rename", "rel/", link},
		{"Stat", "rel-dir/", nil}, {"Lstat", "rel-dir/", nil}, {"ReadDir", "rel-dir/", nil}, {"Real", "rel-dir/", nil},
		{"Remove", "rel-dir/", link}, {"RemoveAll", "rel-dir/", link}, {"Rename", "rel-dir/", link},
		{"RemoveAll", "abs-dir/", link}, {"Rename", "abs-dir/", link}, {"Stat", "abs-dir/", nil}, {"ReadDir", "abs-dir/", nil},
		{"Stat", "d/", nil}, {"Lstat", "d/", nil}, {"ReadDir", "d/", nil}, {"RemoveAll", "d/", nil}, {"Rename", "d/", nil}, {"Remove", "empty/", nil},
		{"ReadFile", "d/", syscall.EISDIR}, {"WriteFile", "d/", syscall.EISDIR}, {"Mkdir", "d/", fs.ErrExist}, {"MkdirAll", "d/", nil},
		{"Mkdir", "made/", nil}, {"MkdirAll", "made/deep/", nil}, {"Create", "made/", syscall.EISDIR}, {"Symlink", "made/", syscall.EISDIR},
		{"WriteFile", "made/", syscall.EISDIR}, {"Stage", "made/", syscall.EISDIR}, {"Rename to it", "made/", syscall.EISDIR},
		{"Stat", "made/", fs.ErrNotExist}, {"Remove", "made/", fs.ErrNotExist}, {"Rename", "made/", fs.ErrNotExist},
	} {
		for i, roots := range [][]string{nil, {"in"}} {
			w := worlds[i]
			err := pathMethods[c.method].call(t.Context(), mustPath(t, w.scope(t, roots...), c.given))
			ok := errors.Is(err, c.want) || c.want == link && err != nil && strings.Contains(err.Error(), link.Error())
			if !ok || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", c.given)) {
				t.Errorf("%s of %q with roots %q gave %v, want %v", c.method, c.given, roots, err, c.want)
			}
			if maps.Equal(w.tree(t), untouched) {
				continue
			}
			if err != nil {
				t.Errorf("%s of %q with roots %q failed and changed something", c.method, c.given, roots)
			}
			worlds[i] = newWorld(t)
		}
	}
}

func TestRename(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		want     error
		at       string // where the file is then
	}{
		{"a.txt", "b", nil, "in/b"},
		{"a.txt", "d/f", nil, "in/d/f"},
		{"a.txt", "abs-dir/g", nil, "in/d/g"},
		{"abs-dir/f", "g", nil, "in/g"},
		{"a.txt", "rel", nil, "in/rel"}, // replaces the link, not what it leads to
		{"a.txt", "none/b", fs.ErrNotExist, "in/a.txt"},
		{"none", "b", fs.ErrNotExist, "in/a.txt"},
		{"a.txt", "two-dir/a", syscall.EXDEV, "in/a.txt"},
		{"two-dir/b.txt", "b", syscall.EXDEV, "in2/b.txt"},
		{"two-dir/b.txt", "two-sub/b", nil, "in2/sub/b"}, // within the other root
		{"a.txt", "d", nil, ""},
	} {
		w := newWorld(t)
		s := w.scope(t, "in", "in2")
		err := mustPath(t, s, c.from).Rename(t.Context(), mustPath(t, s, c.to))
		switch {
		case c.at == "": // onto a directory: the system's own word
			if err == nil {
				t.Errorf("%s replaced the directory %s", c.from, c.to)
			}
		case !errors.Is(err, c.want):
			t.Errorf("%s to %s gave %v, want %v", c.from, c.to, err, c.want)
		default:
			if info, err := os.Lstat(filepath.Join(w.base, c.at)); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s to %s: there is no file at %s: %v", c.from, c.to, c.at, err)
			}
		}
	}
	w := newWorld(t)
	s := w.scope(t, "in")
	err := mustPath(t, s, "a.txt").Rename(t.Context(), mustPath(t, s, "dd/b"))
	if want := `"dd/b": no such file or directory; there is no "dd"; did you mean "d"?`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestUnicodeForms finds names that are stored decomposed, as macOS does, by
// their composed form and the other way round.
func TestUnicodeForms(t *testing.T) {
	t.Parallel()
	const composed, decomposed = "\u00e9\u30b8.txt", "e\u0301\u30b7\u3099.txt"
	for _, roots := range [][]string{nil, {"in"}} {
		for stored, asked := range map[string]string{composed: decomposed, decomposed: composed} {
			w := newWorld(t)
			folder := strings.TrimSuffix(stored, ".txt")
			if err := errors.Join(
				os.WriteFile(filepath.Join(w.base, "in", stored), []byte("old"), 0o666),
				os.Mkdir(filepath.Join(w.base, "in", folder), 0o777),
				os.WriteFile(filepath.Join(w.base, "in", folder, stored), []byte("deep"), 0o666),
			); err != nil {
				t.Fatal(err)
			}
			s := w.scope(t, roots...)
			p := mustPath(t, s, asked)
			if data, _, err := p.ReadFile(t.Context()); err != nil || string(data) != "old" {
				t.Errorf("ReadFile of the other form gave %q, %v", data, err)
			}
			deep := mustPath(t, s, strings.TrimSuffix(asked, ".txt")+"/"+asked)
			if data, _, err := deep.ReadFile(t.Context()); err != nil || string(data) != "deep" {
				t.Errorf("ReadFile below the other form gave %q, %v", data, err)
			}
			if _, _, err := p.WriteFile(t.Context(), []byte("new")); err != nil || w.read(t, "in/"+stored) != "new" {
				t.Errorf("WriteFile of the other form: %v, %q", err, w.read(t, "in/"+stored))
			}
			if err := p.Rename(t.Context(), mustPath(t, s, "d/moved")); err != nil || w.read(t, "in/d/moved") != "new" {
				t.Errorf("Rename of the other form: %v", err)
			}
			if err := deep.Remove(t.Context()); err != nil {
				t.Errorf("Remove of the other form: %v", err)
			}
			if _, err := p.Stat(t.Context()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Stat of what is gone gave %v", err)
			}
			if _, _, err := p.WriteFile(t.Context(), []byte("again")); err != nil || w.read(t, "in/"+asked) != "again" {
				t.Errorf("a new file does not have the name that was asked for: %v", err)
			}
		}
	}
}

func TestPathErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fifo := filepath.Join(w.base, "in", "pipe")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, roots := range [][]string{nil, {"in"}} {
		s := w.scope(t, roots...)
		for _, c := range []struct{ method, given, want string }{
			{"ReadFile", "A.TXT", `"A.TXT": no such file or directory; did you mean "a.txt"?`},
			{"ReadFile", "./d/g", `"./d/g": no such file or directory`},
			{"Stat", "dd/f", `"dd/f": no such file or directory; there is no "dd"; did you mean "d"?`},
			{"Stat", "nothing/like/it", `"nothing/like/it": no such file or directory; there is no "nothing"`},
			{"Stat", w.base + "/in/emty", `"` + w.base + `/in/emty": no such file or directory; did you mean "` + w.base + `/in/empty"?`},
			{"ReadFile", "a.txt/b", `"a.txt/b": a part of the path is a file, not a directory`},
			{"ReadFile", "d", `"d": is a directory, not a file`},
			{"ReadFile", "pipe", `"pipe": is a named pipe, not a regular file`},
			{"Open", "pipe", `"pipe": is a named pipe, not a regular file`},
			{"WriteFile", "pipe", `"pipe": is a named pipe, not a regular file`},
			{"WriteFile", "d", `"d": is a directory, not a file`},
			{"ReadDir", "pipe", `"pipe": is not a directory`},
			{"Remove", "a.txt/", `"a.txt/": is not a directory`},
			{"Stat", "abs/x", `"abs/x": a part of the path is a file, not a directory`},
			{"Mkdir", "d", `"d": file exists`},
			{"Remove", "d", `"d": directory not empty`},
			{"Remove", "rel-dir/", `"rel-dir/" is a link; leave the slash at the end off to mean the link itself`},
			{"Create", "made/", `"made/" is the name of a directory, and a file is needed; leave the slash at the end off`},
		} {
			err := pathMethods[c.method].call(t.Context(), mustPath(t, s, c.given))
			if err == nil || err.Error() != c.want {
				t.Errorf("%s with roots %q:\n got %v\nwant %s", c.method, roots, err, c.want)
			}
		}
		long := strings.Repeat("x", 1<<20)
		if _, err := mustPath(t, s, long).Stat(t.Context()); err == nil || len(err.Error()) > 1000 {
			t.Errorf("the error for an absurd path has %d bytes", len(fmt.Sprint(err)))
		}
	}
	free := w.scope(t)
	if _, _, err := mustPath(t, free, "/dev/zero").ReadFile(t.Context()); err == nil || !strings.Contains(err.Error(), "is a device") {
		t.Errorf("ReadFile of a device gave %v", err)
	}
}

// TestReadLimit has a sparse file that says it is a terabyte.
func TestReadLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.Truncate(filepath.Join(w.base, "in", "a.txt"), 1<<40); err != nil {
		t.Fatal(err)
	}
	p := mustPath(t, w.scope(t, "in"), "a.txt")
	if _, _, err := p.ReadFile(t.Context()); err == nil || !strings.Contains(err.Error(), `"a.txt" has 1099511627776 bytes`) {
		t.Errorf("ReadFile gave %v", err)
	}
	if data, info, err := p.ReadHead(t.Context(), 3); err != nil || string(data) != "A\x00\x00" || info.Size() != 1<<40 {
		t.Errorf("ReadHead gave %q, %v", data, err)
	}
	f, _, err := p.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 2)
	if n, err := io.ReadFull(p.Reader(t.Context(), f), b); err != nil || string(b[:n]) != "A\x00" {
		t.Errorf("Reader gave %q, %v", b[:n], err)
	}
}

// TestProtected spells the places that must stay in many ways.
func TestProtected(t *testing.T) {
	w := newWorld(t)
	home := filepath.Join(w.base, "in", "empty", "home")
	if err := os.Mkdir(home, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	if err := os.Symlink(w.base, filepath.Join(w.base, "in", "top")); err != nil {
		t.Fatal(err)
	}
	cwd, root, homeText := "the working directory", "a root of this server", "the home directory"
	for _, c := range []struct{ given, free, confined string }{
		{".", cwd, cwd},
		{w.base + "/in", cwd, cwd},
		{"d/..", cwd, cwd},
		{"top/in", cwd, cwd},
		{"top/in/", cwd, cwd},
		{"..", cwd, cwd},
		{"top/", cwd, cwd},
		{"/", cwd, "-"},
		{"empty", homeText, homeText},
		{"empty/home", homeText, homeText},
		{"top/in/empty", homeText, homeText},
		{"two-dir/", "", root},
		{w.base + "/in2", "", root},
		{"top", "", ""},     // the link alone
		{"two-dir", "", ""}, // likewise
		{"d", "", ""},
		{"a.txt", "", ""},
		{"empty/home/x", "", ""},
		{"none", "", ""},
	} {
		for name, s := range map[string]*Scope{"free": w.scope(t), "confined": w.scope(t, "in", "in2", ".")} {
			want := c.free
			if name == "confined" {
				want = c.confined
			}
			if want == "-" {
				continue
			}
			err := mustPath(t, s, c.given).Protected(t.Context())
			if (want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprintf("%q", c.given))) {
				t.Errorf("%s: %q is protected by %v, want %q", name, c.given, err, want)
			}
		}
	}
}

// TestLockIdentity checks that all spellings of a file have one lock.
func TestLockIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := &Env{}
	one, err := NewScope(env, AgentDefinition{}, w.base+"/in", openRoots(t, w.base+"/in", w.base+"/in2"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewScope(env, AgentDefinition{}, w.base+"/in2", nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := mustPath(t, one, "two").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, p := range []Path{mustPath(t, one, "two-rel"), mustPath(t, one, w.base+"/in2/b.txt"), mustPath(t, other, "b.txt"), mustPath(t, other, "../in/two")} {
		real, err := p.Real(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := real.Lock(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%q is another lock: %v", p.Given, err)
		}
	}
	unlock()
	if unlock, err = mustPath(t, other, "b.txt").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	unlock()
}
