package core

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
)

// MaxReadFile is the size in bytes up to which [Path.ReadFile] reads a file into
// memory. A sparse file can claim to have any size.
const MaxReadFile = 256 << 20

// Open opens a regular file for reading (decision 7). Anything else is an error:
// opening a pipe or a device could wait for ever. Reads of the file itself have
// no deadline; see [Path.Reader].
func (p Path) Open(ctx context.Context) (*os.File, fs.FileInfo, error) {
	o, err := on(ctx, p, true, openRegular)
	return o.File, o.info, err
}

type opened struct {
	*os.File
	info fs.FileInfo
}

func openRegular(t tree, name string) (opened, error) {
	// Looked at before it is opened, because opening alone has effects on what is
	// no file, and after, because it can have changed in between; not blocking
	// for the same reason.
	info, err := t.Stat(name)
	if err == nil {
		err = irregular(info)
	}
	if err != nil {
		return opened{}, err
	}
	f, err := t.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return opened{}, err
	}
	if info, err = f.Stat(); err == nil {
		err = irregular(info)
	}
	if err != nil {
		f.Close()
		return opened{}, err
	}
	return opened{f, info}, nil
}

// Reader reads from a file that p has opened, each time within the deadline. It
// is for one goroutine.
func (p Path) Reader(ctx context.Context, f *os.File) io.Reader {
	return &guardedReader{ctx: ctx, p: p, f: f}
}

type guardedReader struct {
	ctx context.Context
	p   Path
	f   *os.File
	buf []byte // of its own, since a read that is given up may still write to it
}

func (r *guardedReader) Read(b []byte) (int, error) {
	if len(r.buf) < len(b) {
		r.buf = make([]byte, len(b))
	}
	buf := r.buf[:len(b)]
	n, err := within(r.ctx, r.p, PathDeadline, func() (int, error) {
		n, err := r.f.Read(buf)
		if err == io.EOF { // which is no error to be worded
			return 0, nil
		}
		return n, err
	})
	switch {
	case err != nil:
		r.buf = nil
	case n == 0 && len(b) > 0:
		err = io.EOF
	}
	return copy(b, buf[:n]), err
}

// ReadFile reads a regular file whole, if it has no more than [MaxReadFile].
func (p Path) ReadFile(ctx context.Context) ([]byte, fs.FileInfo, error) {
	return p.read(ctx, math.MaxInt64)
}

// ReadHead reads a regular file, but no more than its first limit bytes.
func (p Path) ReadHead(ctx context.Context, limit int64) ([]byte, fs.FileInfo, error) {
	return p.read(ctx, limit)
}

func (p Path) read(ctx context.Context, limit int64) ([]byte, fs.FileInfo, error) {
	type read struct {
		data []byte
		info fs.FileInfo
	}
	r, err := on(ctx, p, true, func(t tree, name string) (read, error) {
		f, err := openRegular(t, name)
		if err != nil {
			return read{}, err
		}
		defer f.Close()
		size := min(limit, f.info.Size())
		if size > MaxReadFile {
			return read{}, p.refuse("has %d bytes; at most %d can be read at once", f.info.Size(), MaxReadFile)
		}
		data, err := readSized(io.LimitReader(f, limit), size)
		return read{data, f.info}, err
	})
	return r.data, r.info, err
}

// readSized is io.ReadAll with a first buffer of the expected size. Pseudo files
// of size 0 have content too.
func readSized(r io.Reader, size int64) ([]byte, error) {
	data := make([]byte, 0, max(size+1, 512))
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) > MaxReadFile {
			return nil, errors.New("does not end")
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// ReadDir lists a folder, sorted by name in byte order.
func (p Path) ReadDir(ctx context.Context) ([]fs.DirEntry, error) {
	return on(ctx, p, true, func(t tree, name string) ([]fs.DirEntry, error) {
		f, err := openDir(t, name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		entries, err := f.ReadDir(-1)
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return entries, err
	})
}

// openDir opens a folder. The slash has the system refuse anything else before
// it is opened.
func openDir(t tree, name string) (*os.File, error) {
	return t.OpenFile(strings.TrimSuffix(name, "/")+"/", os.O_RDONLY, 0)
}
