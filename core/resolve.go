package core

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/text/unicode/norm"
)

// maxLinks is how many links one path may lead over, as on Linux.
const maxLinks = 40

// resolve follows the links in p by hand, the last element only if follow. It
// decides nothing about safety: what it returns is opened through the root. It
// is needed where os.Root gives up, which refuses absolute links even if they
// lead into a root, and knows nothing of other roots.
func (p Path) resolve(follow bool) (Path, error) {
	if p.real {
		return p, nil
	}
	w := walk{p.scope.roots, p.root, ".", elements(p.rel)}
	for links := 0; len(w.rest) > 0; {
		name := w.rest[0]
		w.rest = w.rest[1:]
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			if !w.up() {
				return p, p.scope.roots.outside(p.Given)
			}
			continue
		}
		next := filepath.Join(w.at, name)
		info, err := w.root.tree.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if !w.missing(name) {
				return p, err
			}
			continue
		case err != nil:
			return p, err
		case len(w.rest) > 0 && info.Mode().IsRegular():
			return p, syscall.ENOTDIR
		case info.Mode()&fs.ModeSymlink == 0 || len(w.rest) == 0 && !follow:
			w.at = next
			continue
		}
		if links++; links > maxLinks {
			return p, syscall.ELOOP
		}
		target, err := w.root.tree.Readlink(next)
		if err != nil {
			return p, err
		}
		if !w.follow(target) {
			return p, p.scope.roots.outside(p.Given)
		}
	}
	p.root, p.rel, p.real = w.root, w.at, follow
	p.Abs = filepath.Join(w.root.real, w.at)
	return p, nil
}

// A walk is how far a path is resolved: to the place at below a root, with the
// names in rest to come.
type walk struct {
	roots *Roots
	root  *root
	at    string
	rest  []string
}

// up goes to the folder above, which can lie in another root; false if it lies
// in none.
func (w *walk) up() (ok bool) {
	if w.at != "." {
		w.at = filepath.Dir(w.at)
		return true
	}
	w.root, w.at, w.rest, ok = w.roots.enter(filepath.Dir(w.root.real), w.rest)
	return ok
}

// follow goes on where a link leads; false if that is outside of the roots.
func (w *walk) follow(target string) (ok bool) {
	volume := filepath.VolumeName(target)
	w.rest = append(elements(target[len(volume):]), w.rest...)
	if !filepath.IsAbs(target) {
		return true
	}
	w.root, w.at, w.rest, ok = w.roots.enter(volume+string(filepath.Separator), w.rest)
	return ok
}

// missing goes on from a name that is not there: to its other Unicode form, or to
// the end, since what does not exist has no links in it. It is false if there is
// a way back, which leads nowhere.
func (w *walk) missing(name string) bool {
	if other := otherForm(w.root.tree, w.at, name); other != "" {
		w.rest = append([]string{other}, w.rest...)
		return true
	}
	if slices.Contains(w.rest, "..") {
		return false
	}
	w.at = filepath.Join(append([]string{w.at, name}, w.rest...)...)
	w.rest = nil
	return true
}

// elements are the names that a path consists of.
func elements(path string) []string { return strings.Split(filepath.ToSlash(path), "/") }

// enter walks on from dir, an absolute path, until the names in rest have led
// into a root, and returns the place there and the names that are left. Outside
// of the roots nothing is looked at, links included, so that a way which turns
// back there leads nowhere.
func (r *Roots) enter(dir string, rest []string) (*root, string, []string, bool) {
	for down := false; ; rest = rest[1:] {
		if root, rel, ok := r.locate(dir); ok {
			return root, rel, rest, true
		}
		if len(rest) == 0 || rest[0] == ".." && down {
			return nil, "", nil, false
		}
		down = down || rest[0] != "." && rest[0] != "" && rest[0] != ".."
		dir = filepath.Join(dir, rest[0])
	}
}

// otherForm looks for a name in a folder that is the same text in another
// Unicode form, as macOS stores names.
func otherForm(t tree, dir, name string) string {
	if !hasForms(name) {
		return ""
	}
	f, err := openDir(t, dir)
	if err != nil {
		return ""
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return ""
	}
	want := norm.NFC.String(name)
	for _, n := range names {
		if n != name && norm.NFC.String(n) == want {
			return n
		}
	}
	return ""
}

// hasForms reports whether a text can be written in several Unicode forms. Most
// cannot, Chinese among them.
func hasForms(s string) bool {
	return !norm.NFC.IsNormalString(s) || !norm.NFD.IsNormalString(s)
}
