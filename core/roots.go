package core

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// Roots are the folders that file tools are confined to. A nil *Roots confines
// nothing. What keeps a path inside is [os.Root], which checks every component
// as it is used, links included; the code here only decides which root a path
// belongs to.
type Roots struct {
	roots []*root
}

// A root is a folder, under both of its names: as it was given, and with all
// links resolved.
type root struct {
	dir, real string
	tree      tree
}

// A tree reaches the files below a folder. Names are relative to it. *os.Root
// is one; [osTree] is one that confines nothing.
type tree interface {
	OpenRoot(name string) (*os.Root, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Lstat(name string) (fs.FileInfo, error)
	Stat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	Mkdir(name string, perm fs.FileMode) error
	MkdirAll(name string, perm fs.FileMode) error
	Remove(name string) error
	RemoveAll(name string) error
	Rename(from, to string) error
	Symlink(target, name string) error
	Chmod(name string, mode fs.FileMode) error
	Chtimes(name string, atime, mtime time.Time) error
	Lchown(name string, uid, gid int) error
	Close() error
}

// OpenRoots opens the folders that file tools are to be confined to. A folder
// that is the whole disk ("/") lifts the confinement. Relative folders belong to
// the process's directory. Every folder must exist.
func OpenRoots(dirs []string) (*Roots, error) {
	r := &Roots{}
	for _, dir := range dirs {
		if dir == "" {
			return nil, errors.Join(errors.New("the name of a root is empty"), r.Close())
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if abs == filepath.VolumeName(abs)+string(filepath.Separator) {
			return nil, errors.Join(r.Close())
		}
		real, err := filepath.EvalSymlinks(abs)
		if err == nil {
			var handle *os.Root
			if handle, err = os.OpenRoot(real); err == nil {
				r.roots = append(r.roots, &root{dir: abs, real: real, tree: handle})
			}
		}
		if err != nil {
			r.Close()
			return nil, &pathError{fmt.Sprintf("root %q: %s", dir, reason(err)), err}
		}
	}
	if len(r.roots) == 0 {
		return nil, nil
	}
	return r, nil
}

// narrow is the roots of an agent that names its own (dirs): of its folders what
// lies in r, and of r what lies in its folders. Relative folders belong to dir, ~ is
// the user's home. A folder that has nothing in common with r is an error. The
// folders are reached through r, so that no link which is exchanged meanwhile
// leads out of it. Whoever narrows closes.
func (r *Roots) narrow(dirs []string, dir string) (*Roots, error) {
	absolute := make([]string, len(dirs))
	for i, name := range dirs {
		abs, err := agentRoot(name, dir)
		if err != nil {
			return nil, err
		}
		absolute[i] = abs
	}
	if r == nil {
		return OpenRoots(absolute)
	}
	narrowed := &Roots{}
	for i, abs := range absolute {
		if err := narrowed.share(r, abs); err != nil {
			narrowed.Close()
			return nil, &pathError{fmt.Sprintf("root %q: %s", dirs[i], reason(err)), err}
		}
	}
	return narrowed, nil
}

// agentRoot is a root of an agent's definition as an absolute path.
func agentRoot(name, dir string) (string, error) {
	rest, ofHome := strings.CutPrefix(filepath.ToSlash(name), "~/")
	switch {
	case name == "":
		return "", errors.New("root has an empty name")
	case name == "~" || ofHome:
		home, err := os.UserHomeDir()
		return filepath.Join(home, strings.TrimPrefix(rest, "~")), err
	case filepath.IsAbs(name):
		return filepath.Clean(name), nil
	}
	return filepath.Join(dir, name), nil
}

// share adds what a folder has in common with the roots of.
func (r *Roots) share(of *Roots, dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if x, rel, ok := of.locate(real); ok {
		return r.add(x, rel, dir, real)
	}
	common := false
	for _, x := range of.roots {
		if inside(x.real, real) {
			common = true
			if err := r.add(x, ".", x.dir, x.real); err != nil {
				return err
			}
		}
	}
	if !common {
		return of.outside(dir)
	}
	return nil
}

// add adds the folder rel of another root.
func (r *Roots) add(x *root, rel, dir, real string) error {
	handle, err := x.tree.OpenRoot(rel)
	if err == nil {
		r.roots = append(r.roots, &root{dir: dir, real: real, tree: handle})
	}
	return err
}

// List names the folders as they were given; none when nothing is confined.
func (r *Roots) List() []string {
	if r == nil {
		return nil
	}
	out := make([]string, len(r.roots))
	for i, x := range r.roots {
		out[i] = x.dir
	}
	return out
}

// Holds reports whether a folder, an absolute path, is inside of one of the roots.
func (r *Roots) Holds(dir string) bool {
	if r == nil {
		return true
	}
	_, err := r.spell(filepath.Clean(dir))
	return err == nil
}

// open opens the folders themselves, not what may have their names by now.
func (r *Roots) open() ([]*os.File, error) {
	if r == nil {
		return nil, nil
	}
	var files []*os.File
	for _, x := range r.roots {
		f, err := x.tree.OpenFile(".", os.O_RDONLY, 0)
		if err != nil {
			for _, opened := range files {
				opened.Close()
			}
			return nil, &pathError{fmt.Sprintf("root %q: %s", x.dir, reason(err)), err}
		}
		files = append(files, f)
	}
	return files, nil
}

// Close releases the folders.
func (r *Roots) Close() error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, x := range r.roots {
		errs = append(errs, x.tree.Close())
	}
	return errors.Join(errs...)
}

// locate finds the root of an absolute path, and the path's name below it.
func (r *Roots) locate(abs string) (*root, string, bool) {
	if r == nil {
		base := filepath.VolumeName(abs) + string(filepath.Separator)
		return &root{dir: base, real: base, tree: osTree{base}}, below(base, abs), true
	}
	for _, x := range r.roots {
		for _, base := range []string{x.dir, x.real} {
			if inside(abs, base) {
				return x, below(base, abs), true
			}
		}
	}
	for _, x := range r.roots {
		for _, base := range []string{x.dir, x.real} {
			if alias, ok := x.alias(abs, base); ok {
				return x, below(alias, abs), true
			}
		}
	}
	return nil, "", false
}

// alias is how abs spells the root if it does so in other letters than base: in
// another case or another Unicode form, where the file system takes them for the
// same. Only a path that reads the same is looked at; its identity decides.
func (x *root) alias(abs, base string) (string, bool) {
	const sep = string(filepath.Separator)
	names, want := strings.Split(abs, sep), strings.Count(base, sep)+1
	if len(names) < want {
		return "", false
	}
	alias := strings.Join(names[:want], sep)
	if !strings.EqualFold(norm.NFC.String(alias), norm.NFC.String(base)) {
		return "", false
	}
	found, err := os.Stat(alias)
	if err != nil {
		return "", false
	}
	self, err := x.tree.Stat(".")
	return alias, err == nil && os.SameFile(found, self)
}

func below(base, abs string) string {
	rel := strings.TrimLeft(abs[len(base):], string(filepath.Separator))
	if rel == "" {
		return "."
	}
	return rel
}

// spell returns dir in a spelling that lies in a root.
func (r *Roots) spell(dir string) (string, error) {
	if _, _, ok := r.locate(dir); ok {
		return dir, nil
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		if _, _, ok := r.locate(real); ok {
			return real, nil
		}
	}
	return "", r.outside(dir)
}

// outside is the error for a path that no root holds.
func (r *Roots) outside(given string) error {
	return &pathError{text: fmt.Sprintf("%s is outside of what this server may reach; its roots are %q", named(given), r.List())}
}

// osTree is the tree below a folder by ordinary path names: nothing is confined.
type osTree struct{ base string } // ends with a separator

// at keeps a slash at the end of name, which filepath.Join would drop.
func (t osTree) at(name string) string { return t.base + name }

func (t osTree) OpenRoot(name string) (*os.Root, error) { return os.OpenRoot(t.at(name)) }
func (t osTree) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(t.at(name), flag, perm)
}
func (t osTree) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat(t.at(name)) }
func (t osTree) Stat(name string) (fs.FileInfo, error)        { return os.Stat(t.at(name)) }
func (t osTree) Readlink(name string) (string, error)         { return os.Readlink(t.at(name)) }
func (t osTree) Mkdir(name string, perm fs.FileMode) error    { return os.Mkdir(t.at(name), perm) }
func (t osTree) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(t.at(name), perm) }
func (t osTree) Remove(name string) error                     { return os.Remove(t.at(name)) }
func (t osTree) RemoveAll(name string) error                  { return os.RemoveAll(t.at(name)) }
func (t osTree) Rename(from, to string) error                 { return os.Rename(t.at(from), t.at(to)) }
func (t osTree) Symlink(target, name string) error            { return os.Symlink(target, t.at(name)) }
func (t osTree) Chmod(name string, mode fs.FileMode) error    { return os.Chmod(t.at(name), mode) }
func (t osTree) Chtimes(name string, atime, mtime time.Time) error {
	return os.Chtimes(t.at(name), atime, mtime)
}
func (t osTree) Lchown(name string, uid, gid int) error { return os.Lchown(t.at(name), uid, gid) }
func (t osTree) Close() error                           { return nil }
