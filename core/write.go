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
	"syscall"
	"time"
)

// A Staged file is the next content of a file, written beside it. Until Commit
// the old content is whole, whatever happens.
type Staged struct {
	*os.File      // the temporary file, for writing
	target   Path // where all links lead to
	temp     Path
	old      fs.FileInfo // nil when the target is new
}

// Stage begins to replace the file that p leads to, or to make it. The parent
// folder must exist. Either Commit or Discard must follow.
//
// The new file keeps mode and owner of the old one. Where that, or a rename, is
// not possible, Commit writes in place (decision 10); so it does for a file with
// several hard links, which a rename would part.
func (p Path) Stage(ctx context.Context) (*Staged, error) {
	target, old, err := p.replaceable(ctx)
	if err != nil {
		return nil, err
	}
	s := &Staged{target: target, old: old}
	mode := fs.FileMode(0o666)
	if old != nil {
		mode = 0o600 // until it has the old one's, nobody else reads it
	}
	s.temp = target.Parent().Join(fmt.Sprintf(".zen-mcp-%08x.tmp", rand.Uint32()))
	if s.File, err = s.temp.Create(ctx, mode); err != nil {
		return nil, p.explain(err)
	}
	return s, nil
}

// replaceable resolves p for writing: a regular file or nothing yet.
func (p Path) replaceable(ctx context.Context) (Path, fs.FileInfo, error) {
	target, err := p.Real(ctx)
	if err != nil {
		return p, nil, err
	}
	target.Given = p.Given
	info, err := target.Stat(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if p.slash {
			return p, nil, p.explain(errIsDir)
		}
		return target, nil, nil
	case err != nil:
		return p, nil, err
	}
	return target, info, p.explain(irregular(info))
}

// Discard gives the new content up. After Commit it does nothing.
func (s *Staged) Discard() {
	if s.File != nil {
		s.File.Close()
		s.temp.Remove(context.Background())
		s.File = nil
	}
}

// Commit makes the new content that of the file. The note, if there is one, says
// that it could not be done in one step.
func (s *Staged) Commit(ctx context.Context) (note string, err error) {
	defer s.Discard()
	if err := s.Sync(); err != nil {
		return "", s.target.explain(err)
	}
	if s.old != nil && (hardLinks(s.old) > 1 || adopt(s.File, s.old) != nil) {
		return s.inPlace(ctx)
	}
	if err := s.File.Close(); err != nil {
		return "", s.target.explain(err)
	}
	err = renameOver(ctx, s.temp, s.target)
	if err == nil {
		s.File = nil
		return "", nil
	}
	if s.old == nil {
		return "", s.target.explain(err)
	}
	if s.File, _, err = s.temp.Open(ctx); err != nil {
		return "", err
	}
	return s.inPlace(ctx)
}

// inPlace copies the new content over the old, for files that cannot be
// replaced.
func (s *Staged) inPlace(ctx context.Context) (string, error) {
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if err := overwrite(ctx, s.target, s.File); err != nil {
		return "", err
	}
	if hardLinks(s.old) > 1 {
		return "", nil // as it should be: all names still lead to one file
	}
	return "the file could not be replaced in one step and was written in place", nil
}

// overwrite writes content into the existing file at p and cuts it to length.
func overwrite(ctx context.Context, p Path, content io.Reader) error {
	return do(ctx, p, true, func(t tree, name string) error {
		f, err := t.OpenFile(name, os.O_WRONLY, 0)
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
	})
}

// renameOver renames, trying again for a moment on Windows, where a virus
// scanner or an editor may hold the target.
func renameOver(ctx context.Context, from, to Path) error {
	err := from.Rename(ctx, to)
	for try := 0; err != nil && runtime.GOOS == "windows" && try < 5; try++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond << try):
		}
		err = from.Rename(ctx, to)
	}
	return err
}

// WriteFile makes data the content of the file that p leads to, at once, and
// tells about the file afterwards. Missing parent folders are made.
func (p Path) WriteFile(ctx context.Context, data []byte) (info fs.FileInfo, note string, err error) {
	staged, err := p.Stage(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		if err = p.makeParent(ctx); err != nil {
			return nil, "", err
		}
		staged, err = p.Stage(ctx)
	}
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return p.writeInPlace(ctx, data, err)
	case err != nil:
		return nil, "", err
	}
	defer staged.Discard()
	if _, err := on(ctx, p, true, func(tree, string) (int, error) { return staged.Write(data) }); err != nil {
		return nil, "", err
	}
	if note, err = staged.Commit(ctx); err != nil {
		return nil, "", err
	}
	info, err = staged.target.Stat(ctx)
	if err == nil && info.Size() != int64(len(data)) {
		err = fmt.Errorf("%q has %d bytes after writing %d; something else writes to it", p.Given, info.Size(), len(data))
	}
	return info, note, err
}

// writeInPlace serves folders in which no file can be made: a file in them may
// still be writable.
func (p Path) writeInPlace(ctx context.Context, data []byte, cause error) (fs.FileInfo, string, error) {
	target, old, err := p.replaceable(ctx)
	if err != nil {
		return nil, "", err
	}
	if old == nil {
		return nil, "", cause
	}
	if err := overwrite(ctx, target, bytes.NewReader(data)); err != nil {
		return nil, "", err
	}
	info, err := target.Stat(ctx)
	return info, "the folder takes no new files, so the file was written in place", err
}

func (p Path) makeParent(ctx context.Context) error {
	real, err := p.Real(ctx)
	if err != nil {
		return err
	}
	parent := real.Parent()
	parent.Given = p.Parent().Given
	return parent.MkdirAll(ctx)
}
