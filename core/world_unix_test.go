//go:build unix

package core

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
