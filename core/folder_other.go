//go:build !linux

package core

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// A Folder is an open folder. Its methods may be called at the same time, except
// for Read, and none after Close.
type Folder struct{ root *os.Root }

func openFolder(t tree, name string) (*Folder, error) {
	root, err := t.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Folder{root}, nil
}

// Close releases the folder.
func (f *Folder) Close() error {
	if f == nil {
		return nil
	}
	return f.root.Close()
}

// Folder opens the folder of that name; a link is an error.
func (f *Folder) Folder(name string) (*Folder, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	return openFolder(f.root, name)
}

// Remove removes the file, link or empty folder of that name.
func (f *Folder) Remove(name string) error {
	if err := single(name); err != nil {
		return err
	}
	return f.root.Remove(name)
}

// Read calls visit with the name and type of everything in the folder, in no
// order, until visit returns false. The buffer is not needed on this system.
func (f *Folder) Read(_ []byte, visit func(name string, typ fs.FileMode) bool) error {
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(1024)
		for _, e := range entries {
			if !visit(e.Name(), e.Type()) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ReadFile reads the regular file of that name whole, into buf if that is large
// enough, and returns its content. A link is an error; a file of more than limit
// bytes is not read, and the error is [ErrTooBig].
func (f *Folder) ReadFile(name string, buf []byte, limit int64) ([]byte, error) {
	file, size, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size > limit {
		return nil, ErrTooBig
	}
	return readInto(file, buf, size, limit)
}

// Open opens the regular file of that name for reading, and tells its size in bytes.
// A link is an error.
func (f *Folder) Open(name string) (file io.ReadCloser, size int64, err error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, &fs.PathError{Op: "read", Path: name, Err: syscall.EINVAL}
	}
	opened, err := f.root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	return opened, info.Size(), nil
}
