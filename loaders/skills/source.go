// Package skills finds the skills of an agent: folders with a SKILL.md, in the
// format of agentskills.io, with instructions and files that a model reads when
// it needs them. load_skill gives it one, call_skill_sub_agent hands a task to
// one, and as [core.Skill] each goes to clients that show skills in other ways.
//
// Discovery reads only what frontmatter there is; everything else is read when
// somebody asks for it, so that a skill can be edited while it is used.
package skills

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"zenmcp/configs"
	"zenmcp/core"
)

// A Source is the skills of all places. It outlives reloads, and keeps what it
// knows about files that did not change.
type Source struct {
	places *configs.Places

	mu      sync.Mutex
	folders map[string]*folder // by path
}

var (
	_ core.Source  = (*Source)(nil)
	_ core.Skilled = (*offer)(nil)
)

// New makes a source. It reads nothing yet.
func New(places *configs.Places) *Source { return &Source{places: places} }

// Discover looks into every place for folders with a SKILL.md, one level deep.
// The first place that has a skill of a name wins it, unless that one cannot be
// used; one with `enabled: false` hides the others (contract §6, decision 24). One
// that cannot be understood any more counts as it was when it could.
func (s *Source) Discover(ctx context.Context) (core.Offer, error) {
	places, err := s.places.Of(core.KindSkill)
	errs := []error{err}
	var found []*folder
	for _, place := range places {
		ids, err := core.Within(ctx, place.Path, func() ([]string, error) { return subfolders(place.Path) })
		if err != nil {
			errs = append(errs, core.Omit(core.Capability{Kind: core.KindSkill}, place.Path, err))
		}
		for _, id := range ids {
			found = append(found, &folder{id: id, dir: filepath.Join(place.Path, id)})
		}
	}
	s.known(found)
	manifests := readManifests(ctx, found)
	o := &offer{broken: map[string]string{}}
	taken := map[string]string{} // the folder that has the name
	for i, f := range found {
		m, err := manifests[i].m, manifests[i].err
		if good := f.lastGood(); err != nil && good != nil && taken[f.id] == "" {
			errs = append(errs, configs.Kept(f.omission(err)))
			m, err = good, nil
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case taken[f.id] != "":
			if err == nil {
				errs = append(errs, f.omission(&core.ShadowedError{By: taken[f.id]}))
			}
		case err != nil:
			errs = append(errs, f.omission(err))
			o.broken[f.id] = fmt.Sprintf("%s: %v", filepath.Join(f.dir, manifestName), err)
		case m.disabled:
			taken[f.id] = f.dir
			errs = append(errs, f.omission(fmt.Errorf("%w: enabled: false", core.ErrDisabled)))
		default:
			taken[f.id] = f.dir
			delete(o.broken, f.id)
			o.skills = append(o.skills, skill{f, m})
			errs = append(errs, f.warnings(m)...)
		}
	}
	return o, errors.Join(errs...)
}

// subfolders lists the folders in a place, links to folders included, in byte
// order. A place need not exist.
func subfolders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if info, e := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || e == nil && !info.IsDir() {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// known replaces folders by those that were there before, and forgets the rest.
func (s *Source) known(found []*folder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]*folder, len(found))
	for i, f := range found {
		if old := s.folders[f.dir]; old != nil {
			found[i] = old
		}
		next[f.dir] = found[i]
	}
	s.folders = next
}

type outcome struct {
	m   *manifest
	err error
}

// readManifests reads the SKILL.md of every folder, several at a time.
func readManifests(ctx context.Context, found []*folder) []outcome {
	out := make([]outcome, len(found))
	var wg sync.WaitGroup
	next := make(chan int)
	for range 4 * runtime.GOMAXPROCS(0) { // most of the time they wait for the disk
		wg.Go(func() {
			for i := range next {
				f := found[i]
				out[i].m, out[i].err = core.Within(ctx, f.dir, f.current)
			}
		})
	}
	for i := range found {
		next <- i // also when ctx has ended, which Within notices
	}
	close(next)
	wg.Wait()
	return out
}

func (f *folder) omission(err error) core.Omission {
	p := configs.Problem{File: filepath.Join(f.dir, manifestName), Err: err}
	var at *lineError
	if errors.As(err, &at) {
		p.Line = at.line
	}
	return p.Omission(core.Capability{Kind: core.KindSkill, Name: f.id})
}

// warnings are what is wrong with a skill that is offered all the same.
func (f *folder) warnings(m *manifest) []error {
	problems := m.warnings
	if m.unlisted != nil && len(problems) == 0 {
		problems = []error{m.unlisted}
	}
	out := make([]error, len(problems))
	for i, p := range problems {
		w := f.omission(p)
		w.Offered = true
		out[i] = w
	}
	return out
}

// A skill is a folder and what it said when it was discovered.
type skill struct {
	*folder
	manifest *manifest
}

// An offer is the skills at one time.
type offer struct {
	skills []skill
	// broken are folders that are meant to be skills and are none, with the
	// reason, for who asks for one by name.
	broken map[string]string
}

const loadName = "load_skill"

func (o *offer) Capabilities() []core.Capability {
	caps := []core.Capability{{Kind: core.KindTool, Name: loadName}, {Kind: core.KindTool, Name: subAgentName}}
	for _, s := range o.skills {
		caps = append(caps, core.Capability{Kind: core.KindSkill, Name: s.id})
	}
	return caps
}

func (o *offer) Instantiate(scope *core.Scope, permitted []core.Capability) ([]core.Tool, error) {
	t := &toolset{skills: o.permitted(permitted), broken: o.broken}
	var tools []core.Tool
	var errs []error
	for _, c := range permitted {
		if c.Kind != core.KindTool {
			continue
		}
		define, reason := t.load, t.missing(scope, c.Name)
		if c.Name == subAgentName {
			define = t.subAgent
		}
		if reason != "" {
			errs = append(errs, core.Omission{Capability: c, Reason: reason})
		} else {
			tools = append(tools, define().Bind(scope))
		}
	}
	return tools, errors.Join(errs...)
}

// missing says why a tool is of no use to a scope; "" when it is of use.
func (t *toolset) missing(scope *core.Scope, tool string) string {
	if len(t.skills) == 0 {
		return "there is no skill that the agent may use"
	}
	if tool == loadName {
		return ""
	}
	if len(t.agents()) == 0 {
		return "no skill that the agent may use says `sub-agent: true`"
	}
	if _, err := scope.Model(core.AgentDefinition{}); err != nil {
		return err.Error()
	}
	return ""
}

// Skills are the permitted skills for clients that read them without a tool.
func (o *offer) Skills(permitted []core.Capability) []core.Skill {
	var out []core.Skill
	for _, s := range o.permitted(permitted) {
		out = append(out, core.Skill{Name: s.id, Description: s.manifest.description, Files: s.folder})
	}
	return out
}

func (o *offer) permitted(permitted []core.Capability) []skill {
	names := make(map[string]bool, len(permitted))
	for _, c := range permitted {
		if c.Kind == core.KindSkill {
			names[c.Name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(o.skills), func(s skill) bool { return !names[s.id] })
}

// line is a description in one line, as lists show it.
func (s skill) line() string {
	return core.Clip(strings.Join(strings.Fields(s.manifest.description), " "), maxLine)
}

// maxLine is how many code points of a description lists show.
const maxLine = 200
