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

// folderWorld makes files and links in and outside of a root.
func folderWorld(t *testing.T) (scope *Scope, inside, outside string) {
	t.Helper()
	top := t.TempDir()
	outside, inside = filepath.Join(top, "outside"), filepath.Join(top, "inside")
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
			t.Fatal(err)
		}
	}
	roots, err := OpenRoots([]string{inside})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { roots.Close() })
	scope, err = NewScope(&Env{}, AgentDefinition{}, inside, roots)
	if err != nil {
		t.Fatal(err)
	}
	return scope, inside, outside
}

// openFolderAt opens what a path leads to.
func openFolderAt(t *testing.T, scope *Scope, given string) (*Folder, error) {
	t.Helper()
	p, err := scope.Path(given)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := p.OpenFolder(t.Context())
	if err == nil {
		t.Cleanup(func() { folder.Close() })
	}
	return folder, err
}

func TestFolder(t *testing.T) {
	t.Parallel()
	scope, _, _ := folderWorld(t)
	folder, err := openFolderAt(t, scope, ".")
	if err != nil {
		t.Fatal(err)
	}
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
}

func TestFolderFollowsNothing(t *testing.T) {
	t.Parallel()
	scope, _, _ := folderWorld(t)
	folder, err := openFolderAt(t, scope, ".")
	if err != nil {
		t.Fatal(err)
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
	if _, err := openFolderAt(t, scope, "dir"); err != nil {
		t.Error("a link that is named is followed:", err)
	}
	for _, given := range []string{"away", "up"} {
		if _, err := openFolderAt(t, scope, given); err == nil || !strings.Contains(err.Error(), "outside") {
			t.Errorf("OpenFolder(%q) = %v, want a refusal", given, err)
		}
	}
	if _, err := openFolderAt(t, scope, "empty"); err == nil {
		t.Error("a file was opened as a folder")
	}
}

func TestFolderRemove(t *testing.T) {
	t.Parallel()
	scope, inside, outside := folderWorld(t)
	folder, err := openFolderAt(t, scope, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sub", "..", "sub/file", "../outside/secret", "missing", ""} {
		if err := folder.Remove(name); err == nil {
			t.Errorf("Remove(%q) removed it", name)
		}
	}
	if err := os.Remove(filepath.Join(inside, "sub", "file")); err != nil {
		t.Fatal(err)
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
	folder := openedFolder(t, dir)
	var seen []string
	err := folder.Read(make([]byte, 4096), func(name string, _ fs.FileMode) bool {
		seen = append(seen, name)
		return len(seen) < 2
	})
	if err != nil || len(seen) != 2 || slices.Contains(seen, "") {
		t.Errorf("Read = %q, %v; want two names", seen, err)
	}
}

func openedFolder(t *testing.T, dir string) *Folder {
	t.Helper()
	scope, err := NewScope(&Env{}, AgentDefinition{}, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := openFolderAt(t, scope, ".")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}
