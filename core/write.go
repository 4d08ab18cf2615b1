package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// A Staged file is the next content of a file, written beside it. Until Commit
// the old content is whole, whatever happens.
type Staged struct {
	*os.File // the temporary file, for writing

	target Path        // where all links lead to
	temp   string      // the temporary file's name below the target's root
	old    fs.FileInfo // nil when the target is new
	over   atomic.Bool // the temporary file is gone
}

// Stage begins to replace the file that p leads to, or to make it. The parent
// folder must exist. Either Commit or Discard must follow.
//
// The new file keeps mode and owner of the old one. Where that, or a rename, is
// not possible, Commit writes in place (decision 10); so it does for a file with
// several hard links, which a rename would part. A file that may not be written
// is not replaced either.
func (p Path) Stage(ctx context.Context) (*Staged, error) {
	return within(ctx, p, PathDeadline, func() (*Staged, error) {
		s, err := p.replaceable()
		if err != nil {
			return nil, err
		}
		if err = s.create(); err != nil {
			return nil, err
		}
		return s, nil
	})
}

// replaceable resolves p for writing: a regular file that may be written, or
// nothing yet.
func (p Path) replaceable() (*Staged, error) {
	target, err := p.resolve(true)
	if err != nil {
		return nil, err
	}
	s := &Staged{target: target}
	s.old, err = target.root.tree.Stat(target.name())
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.slash:
		return nil, p.directory()
	case errors.Is(err, fs.ErrNotExist):
		s.old = nil
		return s, nil
	case err == nil:
		err = irregular(s.old)
	}
	if err != nil {
		return nil, err
	}
	if s.old.Mode()&0o200 != 0 {
		return s, nil
	}
	// Read-only, which a rename would not care about, though not for root.
	f, err := target.root.tree.OpenFile(target.name(), os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return s, f.Close()
}

// create makes the temporary file.
func (s *Staged) create() (err error) {
	mode := fs.FileMode(0o666)
	if s.old != nil {
		mode = 0o600 // until it has the old one's, nobody else reads it
	}
	s.temp = s.target.Parent().Join(fmt.Sprintf(".zen-mcp-%08x.tmp", rand.Uint32())).rel
	s.File, err = s.target.root.tree.OpenFile(s.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	return err
}

// Discard gives the new content up. After Commit it does nothing.
func (s *Staged) Discard() {
	if !s.over.Load() {
		within(context.Background(), s.target, PathDeadline, func() (struct{}, error) { s.discard(); return struct{}{}, nil })
	}
}

func (s *Staged) discard() {
	if s != nil && s.File != nil && s.over.CompareAndSwap(false, true) {
		s.File.Close()
		s.target.root.tree.Remove(s.temp)
	}
}

// Writer writes to the temporary file, each time within the deadline. After an
// error what it was given may still be in use.
func (s *Staged) Writer(ctx context.Context) io.Writer { return guardedWriter{ctx, s} }

type guardedWriter struct {
	ctx context.Context
	s   *Staged
}

func (w guardedWriter) Write(b []byte) (int, error) {
	return within(w.ctx, w.s.target, PathDeadline, func() (int, error) { return w.s.File.Write(b) })
}

// Commit makes the new content that of the file. The note, if there is one, says
// that it could not be done in one step. When ctx ends while the content is still
// on its way to the disk, the file is as it was.
func (s *Staged) Commit(ctx context.Context) (note string, err error) {
	defer s.Discard()
	size, err := s.Seek(0, io.SeekEnd)
	if err != nil {
		return "", s.target.explain(err)
	}
	Waits(ctx)
	sync := func() (struct{}, error) { return struct{}{}, s.Sync() }
	if _, err = within(ctx, s.target, patience(size), sync); err != nil {
		return "", err
	}
	// From here on it is done or refused, but not given up half way.
	return within(context.WithoutCancel(ctx), s.target, patience(size), s.replace)
}

// replace puts the new file in the old one's place, or its content into it.
func (s *Staged) replace() (note string, err error) {
	defer s.discard()
	if s.old != nil && hardLinks(s.old) > 1 {
		return "", s.inPlace() // so that all names still lead to one file
	}
	if s.old == nil || adopt(s.File, s.old) == nil {
		s.File.Close() // Windows moves no open file
		if err = renameOver(s.target.root.tree, s.temp, s.target.rel); err == nil {
			s.over.Store(true)
			return "", nil
		}
		if s.old == nil {
			return "", err
		}
	}
	return "the file could not be replaced in one step and was written in place", s.inPlace()
}

// inPlace copies the new content over the old, for files that cannot be
// replaced.
func (s *Staged) inPlace() error {
	content, err := s.target.root.tree.OpenFile(s.temp, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer content.Close()
	return s.overwrite(content)
}

// overwrite writes content into the old file and cuts it to length.
func (s *Staged) overwrite(content io.Reader) error {
	f, err := s.target.root.tree.OpenFile(s.target.name(), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, content)
	if err == nil {
		err = f.Truncate(n)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// renameOver renames, trying again for a moment on Windows, where a virus
// scanner or an editor may hold the target.
func renameOver(t tree, from, to string) error {
	err := t.Rename(from, to)
	for try := 0; err != nil && runtime.GOOS == "windows" && try < 5; try++ {
		time.Sleep(20 * time.Millisecond << try)
		err = t.Rename(from, to)
	}
	return err
}

// WriteFile makes data the content of the file that p leads to, at once, and
// tells about the file afterwards. Missing parent folders are made. It replaces
// the file as [Path.Stage] and [Staged.Commit] do, but writes in place as well
// where the folder takes no new files.
func (p Path) WriteFile(ctx context.Context, data []byte) (info fs.FileInfo, note string, err error) {
	deadline := patience(int64(len(data)))
	WaitsBriefly(ctx) // for the disk
	s, err := within(ctx, p, deadline, func() (*Staged, error) { return p.stageData(data) })
	if err != nil {
		return nil, "", err
	}
	type written struct {
		info fs.FileInfo
		note string
	}
	w, err := within(context.WithoutCancel(ctx), p, deadline, func() (w written, err error) {
		if s.File != nil {
			w.note, err = s.replace()
		} else {
			w.note, err = "the folder takes no new files, so the file was written in place", s.overwrite(bytes.NewReader(data))
		}
		if err == nil {
			w.info, err = s.target.root.tree.Stat(s.target.name())
		}
		return w, err
	})
	if err == nil && w.info.Size() != int64(len(data)) {
		err = p.refuse("has %d bytes after writing %d; something else writes to it", w.info.Size(), len(data))
	}
	return w.info, w.note, err
}

// stageData brings data to the disk beside the target. Without a temporary file
// in the result the folder takes none, and the target can be written.
func (p Path) stageData(data []byte) (*Staged, error) {
	s, err := p.replaceable()
	if err != nil {
		return nil, err
	}
	err = s.create()
	if errors.Is(err, fs.ErrNotExist) && s.old == nil {
		parent := s.target.Parent()
		if err = parent.root.tree.MkdirAll(parent.rel, 0o777); err == nil {
			err = s.create()
		}
	}
	if s.old != nil && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err = s.Write(data); err == nil {
		err = s.Sync()
	}
	if err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}
