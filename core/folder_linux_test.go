package core

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// File systems that tell no types with the names must give the same ones.
func TestFolderTypes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o666),
		os.Mkdir(filepath.Join(dir, "dir"), 0o777),
		os.Symlink("dir", filepath.Join(dir, "link")),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o666),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	folder := openedFolder(t, dir)
	want := map[string]fs.FileMode{"file": 0, "dir": fs.ModeDir, "link": fs.ModeSymlink, "fifo": fs.ModeNamedPipe, "gone": fs.ModeIrregular}
	for name, typ := range want {
		if got := folder.typeOf(name, unix.DT_UNKNOWN); got != typ {
			t.Errorf("%s is %v, want %v", name, got, typ)
		}
	}
}
