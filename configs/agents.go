package configs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zenmcp/core"
)

// DefaultAgent is the id of the agent that serves when none is named.
const DefaultAgent = "default"

// ChooseAgent is the id of the agent to use: the one asked for, else config's
// default, else [DefaultAgent].
func ChooseAgent(asked string, config core.Config) string {
	return cmp.Or(asked, config.DefaultAgent, DefaultAgent)
}

// An Agent is a definition and where it comes from.
type Agent struct {
	core.AgentDefinition
	File     string // "" for the built-in default agent
	Project  bool   // the file belongs to the project
	Warnings []*Problem
}

const agentSuffix = ".json"

// Agent reads the definition of the agent with an id: ID.json in the project's
// folder of agents, else in the home's. The name of the file is the id. Without
// a file the agent [DefaultAgent] permits everything. A file that cannot be
// understood is an error, never a reason to look further. An agent of a project
// that is not trusted may do no more than the user's own of that id, or than the
// user's default agent; a warning says so when that takes something away.
func (p *Places) Agent(id string) (Agent, error) {
	if err := plainName(id); err != nil {
		return Agent{}, fmt.Errorf("agent %w", err)
	}
	for _, place := range p.all(KindAgent) {
		a, err := p.agentIn(place, id+agentSuffix)
		if !errors.Is(err, fs.ErrNotExist) {
			return a, err
		}
	}
	if id == DefaultAgent {
		return builtinAgent()
	}
	agents, _ := p.Agents()
	ids := make([]string, len(agents))
	for i, a := range agents {
		ids[i] = a.ID
	}
	return Agent{}, fmt.Errorf("there is no agent %q%s; there are %q", id, core.DidYouMean(id, ids), ids)
}

// Agents reads all agents, sorted by id. Of two with the same id the one that
// [Places.Agent] would return is listed. The error joins what is wrong with
// those that cannot be read; the others are returned.
func (p *Places) Agents() ([]Agent, error) {
	var agents []Agent
	var errs []error
	seen := map[string]bool{}
	for _, place := range p.all(KindAgent) {
		entries, err := os.ReadDir(place.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, &Problem{File: place.Path, Err: bare(err)})
		}
		for _, e := range entries {
			id, isAgent := strings.CutSuffix(e.Name(), agentSuffix)
			if !isAgent || plainName(id) != nil || seen[id] {
				continue
			}
			seen[id] = true
			if a, err := p.agentIn(place, e.Name()); err != nil {
				errs = append(errs, err)
			} else {
				agents = append(agents, a)
			}
		}
	}
	if !seen[DefaultAgent] {
		a, err := builtinAgent()
		agents, errs = append(agents, a), append(errs, err)
	}
	slices.SortFunc(agents, func(a, b Agent) int { return strings.Compare(a.ID, b.ID) })
	return agents, errors.Join(errs...)
}

// builtinAgent is the factory's default agent, for those who have no file of it.
func builtinAgent() (Agent, error) {
	const file = "agents/" + DefaultAgent + agentSuffix
	text, err := fs.ReadFile(Defaults(), file)
	if err != nil {
		return Agent{}, err
	}
	doc, err := Parse(file, text)
	if err != nil {
		return Agent{}, err
	}
	def, warnings, err := DecodeAgent(doc)
	return Agent{AgentDefinition: def, Warnings: warnings}, err
}

func readAgent(file string, ofProject bool) (Agent, error) {
	def, warnings, err := ReadAgent(file)
	return Agent{AgentDefinition: def, File: file, Project: ofProject, Warnings: warnings}, err
}

// agentIn reads an agent in a place, limited by what the user allows the place.
func (p *Places) agentIn(place Place, file string) (Agent, error) {
	a, err := readAgent(filepath.Join(place.Path, file), place.Project)
	if err != nil {
		return a, err
	}
	if err := p.limit(&a, place); err != nil {
		return Agent{}, err
	}
	return a, nil
}

// ReadAgent reads the definition of an agent or a sub-agent. Its id is the name
// of the file.
func ReadAgent(file string) (core.AgentDefinition, []*Problem, error) {
	doc, err := ReadFile(file)
	if err != nil {
		return core.AgentDefinition{}, nil, err
	}
	return DecodeAgent(doc)
}

// DecodeAgent is [ReadAgent] for a file that has been read.
func DecodeAgent(doc *Document) (core.AgentDefinition, []*Problem, error) {
	var def core.AgentDefinition
	v := validator{doc: doc}
	if v.decode(&def) {
		v.least(int64(def.MaxRounds), 0, "maxRounds")
		if def.ModelID != nil && *def.ModelID == "" {
			v.fail(errors.New("is empty; without it the default model is used"), "modelId")
		}
		id := strings.TrimSuffix(filepath.Base(doc.File()), agentSuffix)
		if def.ID != "" && def.ID != id {
			v.warn(fmt.Errorf("is not used: the name of the file, %q, is the agent's id", id), "id")
		}
		def.ID = id
	}
	if len(v.errs) > 0 {
		def = core.AgentDefinition{} // half a definition must not be used
	}
	return def, v.warnings, errors.Join(v.errs...)
}

// plainName reports ids that are no plain name of a file: an id is never a path
// (B12), and names that start with a dot belong to editors and systems.
func plainName(id string) error {
	switch {
	case id == "":
		return errors.New("id is empty")
	case strings.ContainsAny(id, `/\:`) || strings.HasPrefix(id, ".") || !filepath.IsLocal(id) || strings.ContainsFunc(id, isControl):
		return fmt.Errorf("id %q is not the plain name of a file", id)
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
