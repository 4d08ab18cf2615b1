package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Path is a place in the file system as one scope may reach it. All file
// access of the tools goes through it: it knows the working directory and keeps
// inside the roots. Its errors name the path as it was given.
//
// A path that is written with a slash at its end is a directory, and every
// operation on anything else fails, as in a shell; a link to one is followed,
// except where the operation is about the link itself.
type Path struct {
	Given string // as the caller wrote it
	Abs   string // absolute and clean, for people and for results

	scope *Scope
	root  *root
	rel   string // below the root
	slash bool   // written with a slash at its end
	real  bool   // what Real gave: the links in it have been followed
}

// Path resolves a path as a tool is given it. Relative paths belong to the
// working directory; they are cleaned lexically, so that a/../b is b. An empty
// path is an error (decision 6), and so is one outside the roots.
func (s *Scope) Path(given string) (Path, error) {
	switch {
	case given == "":
		return Path{}, errors.New(`the path is empty; "." is the working directory`)
	case strings.ContainsRune(given, 0):
		return Path{}, fmt.Errorf("%s: a path cannot hold a NUL character", named(given))
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
	given := filepath.Clean(p.Given)
	if base := filepath.Base(given); base == "." || base == ".." {
		given = p.Abs // its folder is not part of what was written
	}
	p.Given, p.Abs, p.rel, p.slash = filepath.Dir(given), filepath.Dir(p.Abs), filepath.Dir(p.rel), false
	return p
}

// Base is the last element of the path.
func (p Path) Base() string { return filepath.Base(p.Abs) }

// Real is the place that p leads to when all links are followed. What does not
// exist yet is part of the result as it is written, so that a link to nowhere
// leads to the file it would make.
func (p Path) Real(ctx context.Context) (Path, error) {
	if p.real {
		return p, nil
	}
	return within(ctx, p, PathDeadline, func() (Path, error) { return p.resolve(true) })
}

// Lock takes the lock of the file that p leads to, which serialises
// read-modify-write over all scopes (decision 10).
func (p Path) Lock(ctx context.Context) (unlock func(), err error) {
	real, err := p.Real(ctx)
	if err != nil {
		return nil, err
	}
	if h := hostOf(ctx); h != nil { // whoever has it may be stuck
		h.begin(p, PathDeadline)
		defer h.end()
	}
	return p.scope.env.files.lock(ctx, real.Abs)
}

// Protected reports why p must not be removed or moved: it is, or holds, the
// working directory, a root or the user's home (decision 6). Folders are compared
// by identity as well, so that no spelling gets around it.
func (p Path) Protected(ctx context.Context) error {
	home, _ := os.UserHomeDir()
	_, err := within(ctx, p, PathDeadline, func() (struct{}, error) {
		self, _ := at(p, p.slash, tree.Lstat) // what does not exist holds nothing
		switch {
		case p.holds(self, p.scope.dir):
			return struct{}{}, p.refuse("is or holds the working directory; name what is in it instead")
		case p.rel == "." || slices.ContainsFunc(p.scope.roots.List(), func(dir string) bool { return p.holds(self, dir) }):
			return struct{}{}, p.refuse("is or holds a root of this server; name what is in it instead")
		case home != "" && p.holds(self, filepath.Clean(home)):
			return struct{}{}, p.refuse("is or holds the home directory; name what is in it instead")
		}
		return struct{}{}, nil
	})
	return err
}

// holds reports whether dir is p or lies below it, by name or because p, which is
// self, is one of the folders above.
func (p Path) holds(self fs.FileInfo, dir string) bool {
	if inside(dir, p.Abs) {
		return true
	}
	above, err := filepath.EvalSymlinks(dir)
	for self != nil && err == nil {
		if info, err := os.Lstat(above); err == nil && os.SameFile(info, self) {
			return true
		}
		if above == filepath.Dir(above) {
			break
		}
		above = filepath.Dir(above)
	}
	return false
}

// inside reports whether a clean absolute path is dir or lies below it.
func inside(path, dir string) bool {
	dir = strings.TrimSuffix(dir, string(filepath.Separator))
	if len(path) < len(dir) || !sameSpelling(path[:len(dir)], dir) {
		return false
	}
	return len(path) == len(dir) || os.IsPathSeparator(path[len(dir)])
}

// sameSpelling compares as the system does that we run on: editors on Windows
// write the drive in lower case.
func sameSpelling(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}

// Stat describes what p leads to, links followed.
func (p Path) Stat(ctx context.Context) (fs.FileInfo, error) {
	return on(ctx, p, true, tree.Stat)
}

// Lstat describes p itself, even if it is a link. Written with a slash at its end
// it is what the link leads to.
func (p Path) Lstat(ctx context.Context) (fs.FileInfo, error) {
	return on(ctx, p, p.slash, tree.Lstat)
}

// Readlink returns the target of a link as it is written.
func (p Path) Readlink(ctx context.Context) (string, error) {
	return on(ctx, p, false, tree.Readlink)
}

// Mkdir makes a folder whose parent exists.
func (p Path) Mkdir(ctx context.Context) error {
	return do(ctx, p, false, func(t tree, name string) error { return t.Mkdir(name, 0o777) })
}

// MkdirAll makes a folder and its parents. One that exists is fine.
func (p Path) MkdirAll(ctx context.Context) error {
	_, err := within(ctx, p, PathDeadline, func() (struct{}, error) {
		// Resolved first, so that a link to nowhere leads to the folder it makes.
		real, err := p.resolve(true)
		if err != nil {
			return struct{}{}, err
		}
		err = real.root.tree.MkdirAll(real.rel, 0o777)
		if info, e := real.root.tree.Stat(real.rel); err != nil && e == nil && !info.IsDir() {
			err = &pathError{named(p.Given) + " is there already, and is no directory", syscall.EEXIST}
		}
		return struct{}{}, err
	})
	return err
}

// Remove removes a file, a link (never its target) or an empty folder.
func (p Path) Remove(ctx context.Context) error {
	return do(ctx, p, false, tree.Remove)
}

// RemoveAll removes p and everything in it. Links in it are removed, not
// followed.
func (p Path) RemoveAll(ctx context.Context) error {
	return do(ctx, p, false, tree.RemoveAll)
}

// Symlink makes p a link to target.
func (p Path) Symlink(ctx context.Context, target string) error {
	return do(ctx, p, false, func(t tree, name string) error {
		if p.slash {
			return p.directory()
		}
		return t.Symlink(target, name)
	})
}

// Chmod sets the mode of what p leads to.
func (p Path) Chmod(ctx context.Context, mode fs.FileMode) error {
	return do(ctx, p, true, func(t tree, name string) error { return t.Chmod(name, mode) })
}

// Resemble gives p, which is no link, what moving it from another file system
// must keep: the mode and the time of change of what info describes and, where
// that is permitted, its owner.
func (p Path) Resemble(ctx context.Context, info fs.FileInfo) error {
	return do(ctx, p, false, func(t tree, name string) error {
		if now, err := t.Lstat(name); err != nil || now.Mode()&fs.ModeSymlink != 0 {
			return cmp.Or(err, p.refuse("is a link"))
		}
		mode := info.Mode() & settable
		if uid, gid, ok := owner(info); ok {
			// Before the mode, since it clears the set-user-id bit, which is not for
			// another owner.
			err := t.Lchown(name, uid, gid)
			if errors.Is(err, fs.ErrPermission) {
				mode &= fs.ModePerm
			} else if err != nil {
				return err
			}
		}
		if err := t.Chmod(name, mode); err != nil {
			return err
		}
		return t.Chtimes(name, time.Time{}, info.ModTime())
	})
}

// settable are the bits of a mode that chmod sets.
const settable = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// Create opens a new file for writing and reading; one that exists is an error.
func (p Path) Create(ctx context.Context, mode fs.FileMode) (*os.File, error) {
	return on(ctx, p, false, func(t tree, name string) (*os.File, error) {
		if p.slash {
			return nil, p.directory()
		}
		return t.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	})
}

// Append opens a file for writing at its end; one that is missing is made. Its
// folder must exist, and what is there must be a regular file.
func (p Path) Append(ctx context.Context) (*os.File, error) {
	return on(ctx, p, true, func(t tree, name string) (*os.File, error) {
		if info, err := t.Stat(name); err == nil && !info.Mode().IsRegular() {
			return nil, irregular(info)
		}
		// Not blocking, in case that it became a pipe since.
		f, err := t.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o666)
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err == nil {
			err = irregular(info)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	})
}

// Rename moves p to another place as rename(2) does. Between two roots, as
// between two file systems, the error is syscall.EXDEV.
func (p Path) Rename(ctx context.Context, to Path) error {
	_, err := within(ctx, p, PathDeadline, func() (struct{}, error) { return struct{}{}, p.rename(to) })
	return err
}

func (p Path) rename(to Path) error {
	from, err := p.entry()
	if err != nil {
		return err
	}
	// Both are resolved first: a link on the way can lead into another root.
	if from, err = from.resolve(false); err != nil {
		return err
	}
	target, err := to.resolve(false)
	if err != nil {
		return to.explain(err)
	}
	if from.root.real != target.root.real {
		return syscall.EXDEV
	}
	info, err := from.root.tree.Lstat(from.rel)
	if err != nil {
		return err
	}
	if to.slash && !info.IsDir() {
		return to.directory()
	}
	if from.rel == target.rel {
		return nil
	}
	err = from.root.tree.Rename(from.rel, target.rel)
	switch {
	case crosses(err):
		return syscall.EXDEV
	case errors.Is(err, fs.ErrNotExist):
		return to.explain(err) // p is there, so it is the target's folder that is missing
	case errors.Is(err, fs.ErrExist) && info.IsDir():
		return to.explain(from.replaceFolder(info, target))
	}
	return err
}

// replaceFolder renames over a folder if that is empty, as rename(2) does and the
// os package does not.
func (p Path) replaceFolder(info fs.FileInfo, target Path) error {
	there, err := target.root.tree.Lstat(target.rel)
	if err != nil {
		return err
	}
	if os.SameFile(info, there) {
		return syscall.EEXIST
	}
	if err := target.root.tree.Remove(target.rel); err != nil {
		return err
	}
	return p.root.tree.Rename(p.rel, target.rel)
}
