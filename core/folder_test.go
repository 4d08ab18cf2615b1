package core

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFolder(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	outside, inside := filepath.Join(top, "outside"), filepath.Join(top, "inside")
	for name, text := range map[string]string{
		outside + "/secret": "secret", inside + "/sub/file": "content", inside + "/empty": "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"away": outside, "up": "..", "file": "sub/file", "dir": "sub"} {
		if err := os.Symlink(target, filepath.Join(inside, name)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	roots, err := OpenRoots([]string{inside})
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	scope, err := NewScope(&Env{}, AgentDefinition{}, inside, roots)
	if err != nil {
		t.Fatal(err)
	}
	open := func(given string) (*Folder, error) {
		p, err := scope.Path(given)
		if err != nil {
			t.Fatal(err)
		}
		return p.OpenFolder(t.Context())
	}
	folder, err := open(".")
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()

	got := map[string]fs.FileMode{}
	err = folder.Read(make([]byte, 4096), func(name string, typ fs.FileMode) bool {
		got[name] = typ
		return true
	})
	want := map[string]fs.FileMode{"sub": fs.ModeDir, "empty": 0, "away": fs.ModeSymlink,
		"up": fs.ModeSymlink, "file": fs.ModeSymlink, "dir": fs.ModeSymlink}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("Read = %v, %v; want %v", got, err, want)
	}

	sub, err := folder.Folder("sub")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if data, err := sub.ReadFile("file", nil, 100); err != nil || string(data) != "content" {
		t.Errorf("ReadFile = %q, %v", data, err)
	}
	buf := make([]byte, 0, 64)
	if data, err := sub.ReadFile("file", buf, 7); err != nil || string(data) != "content" || &data[0] != &buf[:1][0] {
		t.Errorf("ReadFile into a buffer = %q, %v; want it to use the buffer", data, err)
	}
	if data, err := folder.ReadFile("empty", nil, 0); err != nil || len(data) != 0 {
		t.Errorf("ReadFile of an empty file = %q, %v", data, err)
	}
	if _, err := sub.ReadFile("file", nil, 6); !errors.Is(err, ErrTooBig) {
		t.Errorf("ReadFile over the limit = %v", err)
	}
	for _, name := range []string{"away", "up", "file", "dir", "..", "sub/file", "../outside", "missing"} {
		if f, err := folder.Folder(name); err == nil {
			f.Close()
			t.Errorf("Folder(%q) opened", name)
		}
		if data, err := folder.ReadFile(name, nil, 100); err == nil {
			t.Errorf("ReadFile(%q) = %q", name, data)
		}
	}

	linked, err := open("dir")
	if err != nil {
		t.Fatal("a link that is named is followed:", err)
	}
	linked.Close()
	for _, given := range []string{"away", "up"} {
		if f, err := open(given); err == nil || !strings.Contains(err.Error(), "outside") {
			f.Close()
			t.Errorf("OpenFolder(%q) = %v, want a refusal", given, err)
		}
	}
	if f, err := open("empty"); err == nil {
		f.Close()
		t.Error("a file was opened as a folder")
	}

	for _, name := range []string{"sub", "..", "sub/file", "../outside/secret", "missing", ""} {
		if err := folder.Remove(name); err == nil {
			t.Errorf("Remove(%q) removed it", name)
		}
	}
	if err := sub.Remove("file"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"sub", "away", "up", "file", "empty"} {
		if err := folder.Remove(name); err != nil {
			t.Errorf("Remove(%q): %v", name, err)
		}
	}
	if left, err := os.ReadDir(inside); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v; want dir", left, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "secret")); err != nil {
		t.Error("a link was followed:", err)
	}
}

func TestFolderReadStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	scope, err := NewScope(&Env{}, AgentDefinition{}, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := scope.Path(".")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := p.OpenFolder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	var seen []string
	err = folder.Read(make([]byte, 4096), func(name string, _ fs.FileMode) bool {
		seen = append(seen, name)
		return len(seen) < 2
	})
	if err != nil || len(seen) != 2 || slices.Contains(seen, "") {
		t.Errorf("Read = %q, %v; want two names", seen, err)
	}
}
