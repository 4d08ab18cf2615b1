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
	"strings"
	"syscall"
	"testing"
)

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
