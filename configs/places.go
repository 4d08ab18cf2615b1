// Package configs knows where the files of an agent system are and in which
// order they win, and reads them: config.json, agent definitions, and for the
// loaders every other JSON file.
//
// [Find] decides once where to look. [Places.Config] and [Places.Agent] read;
// [Places.Of] gives the loaders the folders and files of their dimension. Files
// are JSON as people write it, with comments, trailing commas and a BOM; what is
// wrong in one is reported as a [Problem] with its line and column. Reading
// never writes; only [WriteFile] does, and not over a file unless it is told to.
// [Places.Watch] tells when something may have changed.
package configs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"

	"zenmcp/core"
)

// Options say where to look, as flags and environment give it. The zero value is
// a program that was started without any.
type Options struct {
	Home    string // --home; empty means $AI_ZEN_DIR, else ~/.ai-zen
	Project string // --project; empty means the process's directory

	// Places that come before all others, the first one first. Each must exist.
	Skills, SubAgents, Tools []string // folders
	MCPConfig                []string // files like mcp.json

	// TrustProject also uses what is in the project and would run code, whether or
	// not [Places.Trust] has recorded it.
	TrustProject bool

	UserHome string              // what ~ means; empty means the user's home directory
	Getenv   func(string) string // nil means os.Getenv
}

// Places are the files and folders of one configuration. All paths are absolute.
type Places struct {
	Home    string // where config.json is; "" when the user has no home directory
	Project string
	State   string // private files that outlive a call; "" when there is no place for them. Nothing here makes it.

	// Warnings are about the places themselves.
	Warnings []*Problem

	userHome string
	given    map[core.Kind][]string
	trusted  bool
}

// A Place is one file or folder that may hold definitions. It need not exist.
type Place struct {
	Path    string
	Project bool // belongs to the project, which may be somebody else's
}

// KindAgent is the dimension that has places but no permissions.
const KindAgent core.Kind = "agents"

// A spot is a place before it is known where the user and the project live.
type spot struct {
	base base
	name string
}

type base int

const (
	named     base = iota // by a flag, which is the spot's name
	inProject             // below the project's folder
	inHome                // below the home of the system, ~/.ai-zen
	inShared              // below ~, where several programs agree
)

// layout is design §5: the places of every dimension, the highest priority
// first. Everything about places follows from this table.
var layout = map[core.Kind]struct {
	file  bool // the spots are files, not folders
	runs  bool // what is there would run code, so a project must be trusted
	deep  bool // what is in folders below counts
	spots []spot
}{
	KindAgent: {spots: []spot{
		{inProject, ".ai-zen/agents"}, {inHome, "agents"},
	}},
	core.KindSubagent: {runs: true, spots: []spot{
		{named, "--sub-agents"}, {inProject, ".ai-zen/sub-agents"}, {inHome, "sub-agents"},
	}},
	core.KindTool: {runs: true, deep: true, spots: []spot{
		{named, "--tools"}, {inProject, ".ai-zen/tools"}, {inHome, "tools"},
	}},
	core.KindSkill: {deep: true, spots: []spot{
		{named, "--skills"}, {inProject, ".ai-zen/skills"}, {inProject, ".agents/skills"},
		{inHome, "skills"}, {inShared, ".agents/skills"},
	}},
	core.KindMCP: {runs: true, file: true, spots: []spot{
		{named, "--mcp-config"}, {inProject, ".mcp.json"}, {inProject, ".ai-zen/mcp.json"}, {inProject, ".agents/mcp.json"},
		{inHome, "mcp.json"}, {inShared, ".agents/mcp.json"},
	}},
}

// Find decides where to look. It is an error when a place that was named, or the
// project, does not exist; the home need not.
func Find(o Options) (*Places, error) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	p := &Places{trusted: o.TrustProject, userHome: cmp.Or(o.UserHome, UserHome())}
	var err error
	if err = p.findHome(o.Home, getenv("AI_ZEN_DIR")); err != nil {
		return nil, err
	}
	if err = p.findProject(o.Project, getenv); err != nil {
		return nil, err
	}
	p.State = stateDir(p.userHome, getenv)
	p.given = map[core.Kind][]string{
		core.KindSkill: o.Skills, core.KindSubagent: o.SubAgents, core.KindTool: o.Tools, core.KindMCP: o.MCPConfig,
	}
	for _, kind := range core.Kinds() {
		if p.given[kind], err = p.existing(kind, p.given[kind]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Places) findHome(flag, env string) (err error) {
	named := cmp.Or(flag, env)
	if named == "" {
		if p.userHome != "" {
			p.Home = filepath.Join(p.userHome, ".ai-zen")
		}
		return nil
	}
	if p.Home, err = p.abs(named); err != nil {
		return fmt.Errorf("home %q: %w", named, err)
	}
	if info, err := os.Stat(p.Home); err == nil && !info.IsDir() {
		return fmt.Errorf("home %q is not a folder", named)
	} else if errors.Is(err, os.ErrNotExist) {
		p.warn(NoHome, "home %q does not exist, so the built-in defaults apply; `zen-mcp init` fills it", named)
	}
	return nil
}

func (p *Places) findProject(flag string, getenv func(string) string) (err error) {
	if flag != "" {
		if p.Project, err = p.abs(flag); err == nil {
			err = mustBe(p.Project, true)
		}
		if err != nil {
			return fmt.Errorf("project %q: %w", flag, err)
		}
		return nil
	}
	p.Project, err = os.Getwd()
	if err == nil && !isSystemDir(p.Project, getenv) {
		return nil
	}
	if p.userHome == "" {
		return fmt.Errorf("the process was started in %q and the user has no home directory; name a folder with --project", p.Project)
	}
	// Programs with windows start servers in / or where Windows is.
	p.warn(Guessed, "started in %q, which is no project; using %q (--project names another)", p.Project, p.userHome)
	p.Project = p.userHome
	return nil
}

func (p *Places) warn(class Class, format string, args ...any) {
	p.Warnings = append(p.Warnings, &Problem{Err: class.Of(fmt.Errorf(format, args...))})
}

// existing makes the paths of a flag absolute.
func (p *Places) existing(kind core.Kind, paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, path := range paths {
		abs, err := p.abs(path)
		if err == nil {
			err = mustBe(abs, !layout[kind].file)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", layout[kind].spots[0].name, path, err)
		}
		out[i] = abs
	}
	return out, nil
}

func mustBe(path string, dir bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errors.New("does not exist")
	case err != nil:
		return err
	case dir && !info.IsDir():
		return errors.New("is not a folder")
	case !dir && info.IsDir():
		return errors.New("is a folder, not a file")
	}
	return nil
}

// abs makes a path absolute. A leading ~/ is the user's home: clients start
// servers without a shell, which would have replaced it.
func (p *Places) abs(path string) (string, error) {
	if rest, ok := strings.CutPrefix(filepath.ToSlash(path), "~/"); path == "~" || ok {
		if p.userHome == "" {
			return "", errors.New("the user has no home directory")
		}
		path = filepath.Join(p.userHome, rest)
	}
	return filepath.Abs(path)
}

// Of lists the places of a dimension, the highest priority first. The error
// joins a [core.Omission] for every place that exists and is left out because
// the project is not trusted, see [Places.Trusts].
func (p *Places) Of(kind core.Kind) ([]Place, error) {
	var use []Place
	var left []error
	for _, place := range p.all(kind) {
		if !place.Project || !layout[kind].runs {
			use = append(use, place)
			continue
		}
		if _, err := os.Lstat(place.Path); err != nil && !p.trusted {
			continue // nothing to trust
		}
		if err := p.Trusts(place); err != nil {
			left = append(left, core.Omit(core.Capability{Kind: kind}, place.Path, err))
			continue
		}
		use = append(use, place)
	}
	return use, errors.Join(left...)
}

// all lists the places of a dimension without regard to trust.
func (p *Places) all(kind core.Kind) []Place {
	var places []Place
	add := func(root, name string, ofProject bool) {
		if root != "" {
			places = append(places, Place{filepath.Join(root, filepath.FromSlash(name)), ofProject})
		}
	}
	for _, s := range layout[kind].spots {
		switch s.base {
		case named:
			for _, path := range p.given[kind] {
				places = append(places, Place{Path: path})
			}
		case inProject:
			add(p.Project, s.name, true)
		case inHome:
			add(p.Home, s.name, false)
		case inShared:
			add(p.userHome, s.name, false)
		}
	}
	return withoutOwn(places)
}

// withoutOwn drops places of the project that are the user's own as well, as
// when the project is the user's home: those need no trust.
func withoutOwn(places []Place) []Place {
	var out []Place
	for i, place := range places {
		twice := false
		for j, other := range places {
			twice = twice || same(place.Path, other.Path) && (place.Project && !other.Project || place.Project == other.Project && j < i)
		}
		if !twice {
			out = append(out, place)
		}
	}
	return out
}

func same(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// UserHome is the user's home directory, also where the environment is bare.
func UserHome() string {
	if dir, err := os.UserHomeDir(); err == nil && filepath.IsAbs(dir) {
		return dir
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return ""
}

// stateDir follows each system's custom for state that a program keeps.
func stateDir(userHome string, getenv func(string) string) string {
	switch dir := getenv("XDG_STATE_HOME"); {
	case filepath.IsAbs(dir):
		return filepath.Join(dir, "zen-mcp")
	case runtime.GOOS == "windows" && filepath.IsAbs(getenv("LOCALAPPDATA")):
		return filepath.Join(getenv("LOCALAPPDATA"), "zen-mcp", "state")
	case userHome == "":
		return ""
	case runtime.GOOS == "darwin":
		return filepath.Join(userHome, "Library", "Application Support", "zen-mcp")
	}
	return filepath.Join(userHome, ".local", "state", "zen-mcp")
}

// isSystemDir reports whether nobody would work in dir.
func isSystemDir(dir string, getenv func(string) string) bool {
	if filepath.Dir(dir) == dir {
		return true
	}
	for _, name := range []string{"SystemRoot", "ProgramFiles", "ProgramFiles(x86)"} {
		if root := getenv(name); runtime.GOOS == "windows" && root != "" {
			rel, err := filepath.Rel(root, dir)
			if err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
	}
	return false
}
