package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A PathReport tells where children's programs are looked for, and how that was
// found out.
type PathReport struct {
	Inherited string // the PATH that the server was started with
	Used      string // the PATH that children get
	Shell     string // the login shell that was asked; "" when there was no need to
	Err       error  // why the shell's answer is not in Used
}

// SearchPath is the PATH of children. A desktop starts programs with a bare one
// in which nothing is that the user has installed; then the login shell's is
// read, once and when it is first needed, and put in front (decision 19). That
// takes at most twice [loginLimit].
func SearchPath() PathReport { return searchPath() }

// searchPath is a value that takes time to find out, not one that changes.
var searchPath = sync.OnceValue(func() PathReport { return findPath(os.Getenv("PATH"), loginShell(), loginPath) })

// DesktopPath is what [SearchPath] would be if a desktop had started the program,
// with a bare environment.
func DesktopPath() PathReport { return desktopPath() }

// BarePath is the PATH that launchd gives; that of other desktops is no poorer.
const BarePath = "/usr/bin:/bin:/usr/sbin:/sbin"

var desktopPath = sync.OnceValue(func() PathReport {
	shell := loginShell()
	if shell == "" || bare(os.Getenv("PATH")) {
		return searchPath() // the same
	}
	return findPath(BarePath, shell, loginPath)
})

func findPath(inherited, shell string, ask func(shell string) (string, error)) PathReport {
	r := PathReport{Inherited: inherited, Used: inherited}
	if shell == "" || !bare(inherited) {
		return r
	}
	r.Shell = shell
	login, err := ask(shell)
	if err != nil {
		r.Err = fmt.Errorf("PATH of the login shell %q: %w", shell, err)
		return r
	}
	r.Used = mergePath(login, inherited)
	return r
}

// bare reports whether a PATH holds nothing but what belongs to the system.
func bare(path string) bool {
	system := []string{
		"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin",
		"/usr/games", "/usr/local/games", "/snap/bin",
	}
	for _, dir := range filepath.SplitList(path) {
		if dir != "" && !slices.Contains(system, filepath.Clean(dir)) {
			return false
		}
	}
	return true
}

// mergePath joins lists of folders; each folder stays where it is named first.
func mergePath(lists ...string) string {
	var all []string
	for _, list := range lists {
		for _, dir := range filepath.SplitList(list) {
			if dir != "" && !slices.Contains(all, dir) {
				all = append(all, dir)
			}
		}
	}
	return strings.Join(all, string(filepath.ListSeparator))
}

// Environ is the environment of children: the server's, with the PATH of
// [SearchPath], and the given NAME=VALUE pairs added or put in the place of what
// has their name.
func Environ(add ...string) []string {
	env := os.Environ()
	path := SearchPath()
	if path.Used != path.Inherited && os.Getenv("PATH") == path.Inherited {
		env = replace(env, "PATH="+path.Used)
	}
	env = replace(env, systemVariables(env)...)
	return replace(env, add...)
}

// replace adds pairs to an environment; the last of one name stays.
func replace(env []string, pairs ...string) []string {
	for _, pair := range pairs {
		name, _, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			continue
		}
		i := slices.IndexFunc(env, func(e string) bool {
			n, _, _ := strings.Cut(e, "=")
			return sameVariable(n, name)
		})
		if i >= 0 {
			env[i] = pair
		} else {
			env = append(env, pair)
		}
	}
	return env
}

func sameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}

func variable(env []string, name string) string {
	for _, e := range env {
		if n, value, _ := strings.Cut(e, "="); sameVariable(n, name) {
			return value
		}
	}
	return ""
}

// lookPath finds the file of a program on the PATH of an environment. A name
// with a slash is one already, relative to the child's working directory.
// Folders of PATH that are not absolute are passed over: they would mean
// another program in every working directory.
func lookPath(name string, env []string) (string, error) {
	if filepath.Base(name) != name {
		return name, nil
	}
	path := variable(env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, ext := range extensions(name, env) {
			file := filepath.Join(dir, name+ext)
			if info, err := os.Stat(file); err == nil && executable(info) {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("%q: %w on PATH (%s)", name, ErrNotFound, path)
}

// ErrNotFound is the error of a program that is in no folder of PATH.
var ErrNotFound = errors.New("no such program")

// LookPath finds a program as a child with [Environ] and these additions would.
func LookPath(name string, add ...string) (string, error) { return lookPath(name, Environ(add...)) }

// FindProgram is [LookPath], and an error also when the program is named by its
// path and is not there.
func FindProgram(name string, add ...string) (string, error) {
	path, err := LookPath(name, add...)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return "", fmt.Errorf("%q: %w", path, ErrNotFound)
	}
	return path, nil
}
