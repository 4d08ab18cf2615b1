package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/text/unicode/norm"
)

// PathDeadline is how long one operation on a path may take. A network share or
// a cloud placeholder can block a system call for minutes; the call then ends
// with an error that names the path, and the server goes on.
const PathDeadline = 10 * time.Second

// A Path is a place in the file system as one scope may reach it. All file
// access of the tools goes through it: it knows the working directory and keeps
// inside the roots. Its errors name the path as it was given.
type Path struct {
	Given string // as the caller wrote it
	Abs   string // absolute and clean, for people and for results

	scope *Scope
	root  *root
	rel   string // below the root
	slash bool   // written with a slash at its end: must be a directory
	real  bool   // what Real gave: the links in it have been followed
}

// Path resolves a path as a tool is given it. Relative paths belong to the
// working directory; they are cleaned lexically, so that a/../b is b. An empty
// path is an error, and so is one outside the roots.
func (s *Scope) Path(given string) (Path, error) {
	switch {
	case given == "":
		return Path{}, errors.New(`the path is empty; "." is the working directory`)
	case strings.ContainsRune(given, 0):
		return Path{}, fmt.Errorf("%q: a path cannot hold a NUL character", given)
	}
	abs := given
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(s.dir, given)
	}
	abs = filepath.Clean(abs)
	root, rel, ok := s.roots.locate(abs)
	if !ok {
		root, rel, ok = s.outputs().locate(abs)
	}
	if !ok {
		return Path{}, s.roots.outside(given)
	}
	last := given[len(given)-1]
	return Path{Given: given, Abs: abs, scope: s, root: root, rel: rel,
		slash: rel != "." && (last == '/' || os.IsPathSeparator(last))}, nil
}

// Join is the path of a name below p.
func (p Path) Join(name string) Path {
	p.Given = filepath.Join(p.Given, name)
	p.Abs = filepath.Join(p.Abs, name)
	p.rel = filepath.Join(p.rel, name)
	p.slash, p.real = false, false
	return p
}

// Parent is the folder that p is in; a root's parent is the root.
func (p Path) Parent() Path {
	if p.rel == "." {
		return p
	}
	p.Given, p.Abs, p.rel, p.slash = filepath.Dir(p.Given), filepath.Dir(p.Abs), filepath.Dir(p.rel), false
	return p
}

// Base is the last element of the path.
func (p Path) Base() string { return filepath.Base(p.Abs) }

// Protected reports why p must not be removed or moved: it is, or holds, the
// working directory, a root or the user's home (decision 6), under whichever
// spelling.
func (p Path) Protected(ctx context.Context) error {
	real, err := p.parentReal(ctx)
	if err != nil {
		return err
	}
	holds := func(dir string) bool {
		resolved, err := filepath.EvalSymlinks(dir)
		return inside(dir, p.Abs) || inside(dir, real.Abs) || err == nil && inside(resolved, real.Abs)
	}
	home, _ := os.UserHomeDir()
	switch {
	case holds(p.scope.dir):
		return fmt.Errorf("%q is or holds the working directory; name what is in it instead", p.Given)
	case p.rel == "." || slices.ContainsFunc(p.scope.roots.List(), holds):
		return fmt.Errorf("%q is or holds a root of this server; name what is in it instead", p.Given)
	case home != "" && holds(filepath.Clean(home)):
		return fmt.Errorf("%q is or holds the home directory; name what is in it instead", p.Given)
	}
	return nil
}

// inside reports whether a clean absolute path is dir or lies below it.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// Lock takes the lock of the file that p leads to, which serialises
// read-modify-write over all scopes.
func (p Path) Lock(ctx context.Context) (unlock func(), err error) {
	real, err := p.Real(ctx)
	if err != nil {
		return nil, err
	}
	return p.scope.env.files.lock(ctx, real.Abs)
}

// Stat describes what p leads to, links followed.
func (p Path) Stat(ctx context.Context) (fs.FileInfo, error) {
	return on(ctx, p, true, func(t tree, name string) (fs.FileInfo, error) { return t.Stat(name) })
}

// Lstat describes p itself, even if it is a link.
func (p Path) Lstat(ctx context.Context) (fs.FileInfo, error) {
	if p.slash {
		return p.Stat(ctx)
	}
	return on(ctx, p, false, func(t tree, name string) (fs.FileInfo, error) { return t.Lstat(name) })
}

// Open opens a regular file for reading. Anything else is an error: opening a
// pipe or a device could wait for ever. Reads of the file itself have no
// deadline; see [Path.Reader].
func (p Path) Open(ctx context.Context) (*os.File, fs.FileInfo, error) {
	o, err := on(ctx, p, true, openRegular)
	return o.File, o.info, err
}

type opened struct {
	*os.File
	info fs.FileInfo
}

func openRegular(t tree, name string) (opened, error) {
	if info, err := t.Stat(name); err != nil || !info.Mode().IsRegular() {
		return opened{}, errors.Join(err, irregular(info))
	}
	// Not blocking, in case that it became a pipe since.
	f, err := t.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return opened{}, err
	}
	info, err := f.Stat()
	if err == nil {
		err = irregular(info)
	}
	if err != nil {
		f.Close()
		return opened{}, err
	}
	return opened{f, info}, nil
}

// Reader reads from a file that p has opened, each time within the deadline.
func (p Path) Reader(ctx context.Context, f *os.File) io.Reader {
	return guardedReader{ctx, p, f}
}

type guardedReader struct {
	ctx context.Context
	p   Path
	f   *os.File
}

func (r guardedReader) Read(b []byte) (int, error) {
	n, err := within(r.ctx, r.p, func() (int, error) {
		n, err := r.f.Read(b)
		if err == io.EOF { // which is no error to be worded
			return 0, nil
		}
		return n, err
	})
	if n == 0 && err == nil && len(b) > 0 {
		err = io.EOF
	}
	return n, err
}

// ReadFile reads a regular file whole.
func (p Path) ReadFile(ctx context.Context) ([]byte, fs.FileInfo, error) {
	return p.ReadHead(ctx, math.MaxInt64)
}

// ReadHead reads a regular file, but no more than its first limit bytes.
func (p Path) ReadHead(ctx context.Context, limit int64) ([]byte, fs.FileInfo, error) {
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
		data, err := readSized(io.LimitReader(f, limit), min(limit, f.info.Size()))
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
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// ReadDir lists a folder, sorted by name in byte order.
func (p Path) ReadDir(ctx context.Context) ([]fs.DirEntry, error) {
	return on(ctx, p, true, func(t tree, name string) ([]fs.DirEntry, error) {
		entries, err := readDir(t, name)
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return entries, err
	})
}

// Readlink returns the target of a link as it is written.
func (p Path) Readlink(ctx context.Context) (string, error) {
	return on(ctx, p, false, func(t tree, name string) (string, error) { return t.Readlink(name) })
}

// Mkdir makes a folder whose parent exists.
func (p Path) Mkdir(ctx context.Context) error {
	return do(ctx, p, false, func(t tree, name string) error { return t.Mkdir(name, 0o777) })
}

// MkdirAll makes a folder and its parents. One that exists is fine.
func (p Path) MkdirAll(ctx context.Context) error {
	return do(ctx, p, true, func(t tree, name string) error { return t.MkdirAll(name, 0o777) })
}

// Remove removes a file, a link (never its target) or an empty folder.
func (p Path) Remove(ctx context.Context) error {
	return do(ctx, p, false, func(t tree, name string) error { return t.Remove(name) })
}

// RemoveAll removes p and everything in it. Links in it are removed, not
// followed.
func (p Path) RemoveAll(ctx context.Context) error {
	return do(ctx, p, false, func(t tree, name string) error { return t.RemoveAll(name) })
}

// Symlink makes p a link to target.
func (p Path) Symlink(ctx context.Context, target string) error {
	return do(ctx, p, false, func(t tree, name string) error { return t.Symlink(target, name) })
}

// Chmod sets the mode of what p leads to.
func (p Path) Chmod(ctx context.Context, mode fs.FileMode) error {
	return do(ctx, p, true, func(t tree, name string) error { return t.Chmod(name, mode) })
}

// Create opens a new file for writing and reading; one that exists is an error.
func (p Path) Create(ctx context.Context, mode fs.FileMode) (*os.File, error) {
	return on(ctx, p, false, func(t tree, name string) (*os.File, error) {
		return t.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	})
}

// Rename moves p to another place as rename(2) does. Between two roots, as
// between two file systems, the error is syscall.EXDEV.
func (p Path) Rename(ctx context.Context, to Path) error {
	if p.root.real != to.root.real {
		return p.explain(syscall.EXDEV)
	}
	from, err := p.parentReal(ctx)
	if err != nil {
		return err
	}
	if to, err = to.parentReal(ctx); err != nil {
		return err
	}
	err = do(ctx, from, false, func(t tree, name string) error { return t.Rename(name, to.name()) })
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := from.Lstat(ctx); e == nil { // it is the target's folder that is missing
			return to.explain(fs.ErrNotExist)
		}
	}
	return err
}

// parentReal is p when its folder lies in the root without detours, else p below
// its folder's real place.
func (p Path) parentReal(ctx context.Context) (Path, error) {
	return on(ctx, p, false, func(tree, string) (Path, error) { return p.resolve(false) })
}

// Real is the place that p leads to when all links are followed. What does not
// exist yet is part of the result as it is written, so that a link to nowhere
// leads to the file it would make.
func (p Path) Real(ctx context.Context) (Path, error) {
	if p.real {
		return p, nil
	}
	return on(ctx, p, true, func(tree, string) (Path, error) {
		real, err := p.resolve(true)
		real.real = err == nil
		return real, err
	})
}

// name is what the tree is asked for. The slash at the end is kept, since it
// makes the system insist on a directory.
func (p Path) name() string {
	if p.slash {
		return p.rel + string(filepath.Separator)
	}
	return p.rel
}

func do(ctx context.Context, p Path, follow bool, op func(tree, string) error) error {
	_, err := on(ctx, p, follow, func(t tree, name string) (struct{}, error) { return struct{}{}, op(t, name) })
	return err
}

// on runs one operation within the deadline. When the path as written does not
// do, it is resolved and tried once more: os.Root refuses absolute links even
// where they lead into a root, and a name may be stored in another Unicode form.
func on[T any](ctx context.Context, p Path, follow bool, op func(tree, string) (T, error)) (T, error) {
	return within(ctx, p, func() (T, error) {
		v, err := op(p.root.tree, p.name())
		if escapes(err) || errors.Is(err, fs.ErrNotExist) && !ascii(p.rel) {
			real, e := p.resolve(follow)
			if e != nil {
				return v, e
			}
			if real.rel != p.rel || real.root != p.root {
				return op(real.root.tree, real.name())
			}
		}
		return v, err
	})
}

// within runs op and waits for it, for the end of ctx, or for the deadline. An
// operation that does not come back keeps its goroutine and nothing else.
func within[T any](ctx context.Context, p Path, op func() (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := op()
		done <- outcome{v, p.explain(err)}
	}()
	timer := time.NewTimer(PathDeadline)
	defer timer.Stop()
	var err error
	select {
	case o := <-done:
		return o.v, o.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = fmt.Errorf("%q did not answer within %v; is it on a disk that is away?", p.Given, PathDeadline)
	}
	go func() {
		if c, ok := any((<-done).v).(io.Closer); ok {
			c.Close()
		}
	}()
	var zero T
	return zero, err
}

// maxLinks is how many links one path may lead over, as on Linux.
const maxLinks = 40

// resolve follows the links in p by hand, the last element only if follow. It
// decides nothing about safety: what it returns is opened through the root.
func (p Path) resolve(follow bool) (Path, error) {
	root, cur := p.root, "."
	rest := strings.Split(filepath.ToSlash(p.rel), "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && cur == ".":
			return p, p.scope.roots.outside(p.Given)
		case name == "..":
			cur = filepath.Dir(cur)
			continue
		}
		next := filepath.Join(cur, name)
		info, err := root.tree.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			if other := sameName(root.tree, cur, name); other != "" {
				rest = append([]string{other}, rest...)
				continue
			}
			cur = filepath.Join(append([]string{next}, rest...)...)
			break
		}
		if err != nil {
			return p, err
		}
		if info.Mode()&fs.ModeSymlink == 0 || len(rest) == 0 && !follow && !p.slash {
			cur = next
			continue
		}
		if links++; links > maxLinks {
			return p, errors.New("too many levels of links")
		}
		target, err := root.tree.Readlink(next)
		if err != nil {
			return p, err
		}
		if filepath.IsAbs(target) {
			var ok bool
			if root, target, ok = p.scope.roots.locate(filepath.Clean(target)); !ok {
				return p, p.scope.roots.outside(p.Given)
			}
			cur = "."
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	p.root, p.rel = root, cur
	p.Abs = filepath.Join(root.real, cur)
	return p, nil
}

// sameName looks for a name in a folder that is the same text in another
// Unicode form, as macOS stores names.
func sameName(t tree, dir, name string) string {
	if ascii(name) {
		return ""
	}
	entries, err := readDir(t, dir)
	if err != nil {
		return ""
	}
	want := norm.NFC.String(name)
	for _, e := range entries {
		if e.Name() != name && norm.NFC.String(e.Name()) == want {
			return e.Name()
		}
	}
	return ""
}

func readDir(t tree, name string) ([]fs.DirEntry, error) {
	f, err := t.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// escapes recognises os.Root's refusal, which the os package does not export.
func escapes(err error) bool {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error() == "path escapes from parent"
	}
	var le *os.LinkError
	return errors.As(err, &le) && le.Err.Error() == "path escapes from parent"
}

func irregular(info fs.FileInfo) error {
	if info == nil || info.Mode().IsRegular() {
		return nil
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return errIsDir
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("is a named pipe, not a regular file")
	case mode&fs.ModeSocket != 0:
		return errors.New("is a socket, not a regular file")
	default:
		return errors.New("is a device, not a regular file")
	}
}

var errIsDir = fmt.Errorf("%w: it is a directory, and a file is needed", syscall.EISDIR)

// explain words an error of the system for a model: the path as it was given,
// the system's reason, and the nearest name where one is missing.
func (p Path) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case escapes(err):
		return p.scope.roots.outside(p.Given)
	case errors.Is(err, fs.ErrNotExist):
		return &pathError{fmt.Sprintf("%q: no such file or directory%s", p.Given, p.nearest()), err}
	case errors.Is(err, syscall.ENOTDIR):
		return &pathError{fmt.Sprintf("%q: a part of the path is a file, not a directory", p.Given), err}
	}
	var known *pathError
	if errors.As(err, &known) || strings.Contains(err.Error(), fmt.Sprintf("%q", p.Given)) {
		return err
	}
	return &pathError{fmt.Sprintf("%q: %s", p.Given, reason(err)), err}
}

type pathError struct {
	text string
	err  error
}

func (e *pathError) Error() string { return e.text }
func (e *pathError) Unwrap() error { return e.err }

// reason is the system's own word, without the operation and the path that the
// os package puts around it.
func reason(err error) string {
	var pe *fs.PathError
	var le *os.LinkError
	var se *os.SyscallError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	case errors.As(err, &se):
		err = se.Err
	}
	return err.Error()
}

// nearest suggests the name in p's folder that is most like the missing one.
func (p Path) nearest() string {
	entries, err := readDir(p.root.tree, filepath.Dir(p.rel))
	if err != nil || len(entries) > 5000 {
		return ""
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	if n := Nearest(filepath.Base(p.rel), names); n != "" {
		return fmt.Sprintf("; did you mean %q?", filepath.Join(filepath.Dir(p.Given), n))
	}
	return ""
}
