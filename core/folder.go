package core

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrTooBig says that a file holds more bytes than the caller takes.
var ErrTooBig = errors.New("the file is too big")

// OpenFolder opens the folder that p leads to, for a walk. Links on the way are
// followed, inside the roots.
//
// A [Folder] has what walks through thousands of folders need and [Path] does
// not: what is in it is reached by its name alone, in one system call each, with
// no goroutine to watch the time. Whoever walks watches it, see [PathDeadline].
// Names that lead away (links, "..") are never followed, so what lies below a
// folder inside the roots is inside the roots, whatever happens meanwhile.
func (p Path) OpenFolder(ctx context.Context) (*Folder, error) {
	return on(ctx, p, true, openFolder)
}

// readInto reads to the end, or to limit. One byte more than size is asked for,
// so that a file that did not grow is known to be at its end.
func readInto(r io.Reader, buf []byte, size, limit int64) ([]byte, error) {
	if int64(cap(buf)) <= size {
		buf = make([]byte, 0, max(size+1, 512))
	}
	buf = buf[:0]
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		case int64(len(buf)) > limit:
			return nil, ErrTooBig
		case size > 0 && int64(len(buf)) == size:
			return buf, nil
		case len(buf) == cap(buf):
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// single refuses what is not one name in a folder.
func single(name string) error {
	if name == "" || name == ".." || strings.ContainsAny(name, "/"+string(filepath.Separator)) {
		return &fs.PathError{Op: "open", Path: name, Err: syscall.EINVAL}
	}
	return nil
}
