package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Confinement is what a child, and everything that it starts, may reach of the
// file system; nothing takes it off again. It is about what files hold: the names,
// modes and owners of files elsewhere are not hidden, and neither are networks.
//
// [CanConfine] says whether this system can do it. Where it cannot, a confined
// command is not started.
type Confinement struct {
	// Write are open folders in which everything is allowed, but to make devices.
	// They are given open, so that nothing which is put in their place is meant.
	Write []*os.File
	// Read are files and folders that may be read and run. What is missing is
	// passed over.
	Read []string
}

// ProgramPaths lists what programs need to read so that they run: the system's own
// folders, and for each folder of [SearchPath] what belongs to the programs in it.
// Of the user's home it is no more than that: X/bin stands for all of X only where
// X lies deeper than home itself (~/.nvm/versions/node/v20), since folders such as
// ~/.local and ~/.cargo hold secrets too.
func ProgramPaths() []string {
	home, _ := os.UserHomeDir() // without one, nothing lies in it
	paths := systemPaths()
	for _, dir := range filepath.SplitList(SearchPath().Used) {
		if filepath.IsAbs(dir) {
			paths = append(paths, besides(filepath.Clean(dir), home)...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// besides is a folder of programs and what these need next to it.
func besides(dir, home string) []string {
	above := filepath.Dir(dir)
	base := filepath.Base(dir)
	switch {
	case base != "bin" && base != "sbin" && base != "shims", above == home, holds(above, home):
		return []string{dir}
	case !holds(home, above) || filepath.Dir(above) != home:
		return []string{above}
	}
	all := []string{dir}
	for _, name := range []string{"bin", "lib", "lib64", "libexec", "versions"} {
		all = append(all, filepath.Join(above, name))
	}
	return all
}

// holds reports whether path is dir or lies in it; both are clean.
func holds(dir, path string) bool {
	return dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator)))
}
