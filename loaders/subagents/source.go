// Package subagents makes tools of agents that are defined with a function: who
// calls one gives an agent a task, with a conversation, permissions and perhaps a
// model of its own, and gets its last message.
//
// The definitions are JSON files, one each. How an agent runs is [core.RunAgent];
// here is what makes a file a tool, and how the call's arguments get into the
// agent's messages (template.go).
package subagents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/configs"
	"zenmcp/core"
)

// A Source is the sub-agents of all places. It outlives reloads.
type Source struct {
	places *configs.Places
	good   configs.LastGood[subAgent] // by file
}

var _ core.Source = (*Source)(nil)

// New makes a source. It reads nothing yet.
func New(places *configs.Places) *Source { return &Source{places: places} }

// Discover reads the files *.json of every place, in byte order, and the factory's
// sub-agents as long as the home has no folder for its own. The first one with a
// function's name wins it (contract §6). A file that is no sub-agent costs only
// itself (B52), and counts as it was when it was one.
func (s *Source) Discover(context.Context) (core.Offer, error) {
	places, err := s.places.Of(core.KindSubagent)
	r := reader{offer: &offer{}, errs: []error{err}, round: s.good.Round()}
	defer r.round.End()
	for _, place := range places {
		files, err := filesOf(place.Path)
		r.omit(core.Capability{Kind: core.KindSubagent}, err)
		for _, file := range files {
			doc, err := configs.ReadFile(file)
			r.add(file, doc, err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.places.Home, folderName)); s.places.Home == "" || errors.Is(err, fs.ErrNotExist) {
		r.factory()
	}
	return r.offer, errors.Join(r.errs...)
}

// folderName is the folder of sub-agents in a home.
const folderName = "sub-agents"

// A reader makes an offer of files, those that win first.
type reader struct {
	offer *offer
	errs  []error
	round *configs.Round[subAgent]
}

// omit says that something is not offered, for each problem in err.
func (r *reader) omit(c core.Capability, err error) {
	r.errs = append(r.errs, configs.Omitted(c, configs.Problems(err), false)...)
}

func (r *reader) add(file string, doc *configs.Document, err error) {
	var a subAgent
	var warnings []*configs.Problem
	if err == nil {
		a, warnings, err = decode(doc)
	}
	a, kept := r.round.Settle(file, a, err)
	c := core.Capability{Kind: core.KindSubagent, Name: a.name()}
	r.errs = append(r.errs, configs.Omitted(c, configs.Problems(err), kept)...)
	if err != nil && !kept {
		return
	}
	if i := slices.IndexFunc(r.offer.agents, func(b subAgent) bool { return a.name() == b.name() }); i >= 0 {
		shadowed := &configs.Problem{File: file, Err: core.InField("function", core.InField("name", &core.ShadowedError{By: r.offer.agents[i].at.File}))}
		if doc != nil {
			shadowed = doc.Problem(shadowed.Err)
		}
		r.omit(c, shadowed)
		return
	}
	r.offer.agents = append(r.offer.agents, a)
	r.errs = append(r.errs, configs.Warned(c, warnings)...)
}

func (r *reader) factory() {
	files, err := fs.Glob(configs.Defaults(), folderName+"/*.json")
	r.omit(core.Capability{Kind: core.KindSubagent}, err)
	for _, file := range files {
		text, err := fs.ReadFile(configs.Defaults(), file)
		if err != nil {
			r.omit(core.Capability{Kind: core.KindSubagent}, err)
			continue
		}
		doc, err := configs.Parse(file, text)
		r.add(file, doc, err)
	}
}

// filesOf lists the files in a folder that may be definitions. The folder need
// not exist. Names that start with a dot belong to editors and systems.
func filesOf(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var files []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, err
}

// A subAgent is a definition that can become a tool.
type subAgent struct {
	core.AgentDefinition
	input     *jsonschema.Schema
	arguments *core.Arguments
	at        configs.Problem // the place where the model is named, or the file
}

func (a subAgent) name() string {
	if a.Function == nil {
		return ""
	}
	return a.Function.Name
}

// decode makes a sub-agent of a file, and checks what only a sub-agent needs.
func decode(doc *configs.Document) (subAgent, []*configs.Problem, error) {
	def, warnings, err := configs.DecodeAgent(doc)
	if err != nil {
		return subAgent{}, nil, err
	}
	a := subAgent{AgentDefinition: def, at: configs.Problem{File: doc.File()}}
	if def.ModelID != nil {
		a.at = *doc.Problem(core.InField("modelId", nil))
	}
	if err := a.check(); err != nil {
		return a, nil, doc.Problem(err)
	}
	return a, warnings, nil
}

func (a *subAgent) check() (err error) {
	switch f := a.Function; {
	case f == nil:
		return errors.New("has no function, which would make it a sub-agent; other agents belong into the folder agents")
	case f.Name == "":
		return core.InField("function", core.InField("name", errors.New("is missing or empty")))
	default:
		if err := core.CheckName(f.Name); err != nil {
			return core.InField("function", core.InField("name", err))
		}
		if a.input, a.arguments, err = core.ParseInput(f.Parameters); err != nil {
			return core.InField("function", core.InField("parameters", err))
		}
	}
	return a.checkMessages()
}

// checkMessages checks what the model's service would refuse at every call.
func (a *subAgent) checkMessages() error {
	roles := []string{"system", "developer", "user", "assistant"}
	for i, m := range a.Messages {
		if !slices.Contains(roles, m.Role) {
			return core.InField("messages", core.InField(strconv.Itoa(i), core.InField("role", fmt.Errorf("%q is none of %q", m.Role, roles))))
		}
	}
	if n := len(a.Messages); n == 0 || a.Messages[n-1].Role != "user" {
		return core.InField("messages", errors.New("must end with a message of the role user: the model answers that"))
	}
	return nil
}

// An offer is the sub-agents at one time.
type offer struct{ agents []subAgent }

func (o *offer) Capabilities() []core.Capability {
	all := make([]core.Capability, len(o.agents))
	for i, a := range o.agents {
		all[i] = core.Capability{Kind: core.KindSubagent, Name: a.name()}
	}
	return all
}

// Instantiate makes a tool of each sub-agent whose model can be used from the
// scope.
func (o *offer) Instantiate(scope *core.Scope, permitted []core.Capability) ([]core.Tool, error) {
	var tools []core.Tool
	var left []error
	for _, a := range o.agents {
		c := core.Capability{Kind: core.KindSubagent, Name: a.name()}
		if !slices.Contains(permitted, c) {
			continue
		}
		if _, err := scope.Model(a.AgentDefinition); err != nil {
			at := a.at
			at.Err = err
			left = append(left, at.Omission(c))
			continue
		}
		tools = append(tools, a.definition().Bind(scope))
	}
	return tools, errors.Join(left...)
}
