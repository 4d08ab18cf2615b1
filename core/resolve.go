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
	root, cur, rest := p.root, ".", elements(p.rel)
	ok := true
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && cur == ".":
			if root, cur, rest, ok = p.scope.roots.enter(filepath.Dir(root.real), rest); !ok {
				return p, p.scope.roots.outside(p.Given)
			}
			continue
		case name == "..":
			cur = filepath.Dir(cur)
			continue
		}
		next := filepath.Join(cur, name)
		info, err := root.tree.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if other := otherForm(root.tree, cur, name); other != "" {
				rest = append([]string{other}, rest...)
				continue
			}
			if slices.Contains(rest, "..") {
				return p, err // no way leads back out of what is not there
			}
			cur, rest = filepath.Join(append([]string{next}, rest...)...), nil
			continue
		case err != nil:
			return p, err
		case len(rest) > 0 && info.Mode().IsRegular():
			return p, syscall.ENOTDIR
		case info.Mode()&fs.ModeSymlink == 0 || len(rest) == 0 && !follow:
			cur = next
			continue
		}
		if links++; links > maxLinks {
			return p, syscall.ELOOP
		}
		target, err := root.tree.Readlink(next)
		if err != nil {
			return p, err
		}
		if !filepath.IsAbs(target) {
			rest = append(elements(target), rest...)
			continue
		}
		volume := filepath.VolumeName(target)
		rest = append(elements(target[len(volume):]), rest...)
		if root, cur, rest, ok = p.scope.roots.enter(volume+string(filepath.Separator), rest); !ok {
			return p, p.scope.roots.outside(p.Given)
		}
	}
	p.root, p.rel, p.real = root, cur, follow
	p.Abs = filepath.Join(root.real, cur)
	return p, nil
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
