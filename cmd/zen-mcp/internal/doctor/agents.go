package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/llm"
	"zenmcp/loaders/usertools"
)

// definitions reads all agents, makes scopes of those that would be served, and
// looks for names in permissions that nothing has.
func (e *exam) definitions(context.Context) {
	if e.places == nil {
		return
	}
	all, err := e.places.Agents()
	e.problems(configs.Problems(err), true)
	for _, a := range all {
		e.problems(a.Warnings, false)
		if a.File != "" {
			e.permissions(a.File)
		}
	}
	for _, place := range e.of(core.KindSubagent) {
		for _, file := range jsonFiles(place.Path) {
			e.permissions(file)
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(e.Named)) {
		for _, c := range e.Named[flag] {
			if err := e.unknown(c); err != nil {
				e.find("flag-unknown-name", fmt.Errorf("%s: %w", flag, err))
			}
		}
	}
	ids := e.Agents
	if len(ids) == 0 {
		ids = []string{configs.ChooseAgent("", e.config)}
	}
	for _, id := range ids {
		e.serve(id)
	}
}

// serve makes what a server would publish for an agent.
func (e *exam) serve(id string) {
	agent, err := e.places.Agent(id)
	if err != nil {
		e.unserved(err)
		return
	}
	agent.Permissions = e.Narrow(agent.Permissions)
	scope, err := core.NewScope(e.environment(), agent.AgentDefinition, e.dir, e.roots)
	if err != nil {
		e.find("root-missing", &configs.Problem{File: agent.File, Err: err})
		return
	}
	published := scope.Tools()
	e.served = append(e.served, served{agent, published})
	from := agent.File
	if from == "" {
		from = "built in"
	}
	e.fact(agent.ID, "%s; publishes %s; %s", from, core.Plural(len(published.Tools), "tool"), e.Boundary(scope))
	if err := scope.Close(); err != nil {
		e.Log.Warn("closing a scope", "error", err)
	}
}

// unserved says why an agent is not served. What is wrong in a file is told
// already.
func (e *exam) unserved(err error) {
	var p *configs.Problem
	if errors.As(err, &p) {
		e.problems(configs.Problems(err), true)
		return
	}
	doc := e.configFile()
	if len(e.Agents) == 0 && doc != nil {
		err = doc.Problem(core.InField("defaultAgent", err))
	}
	e.find("agent-unknown", err)
}

// permissions looks for names in the permissions of a file that nothing has.
func (e *exam) permissions(file string) {
	doc, err := configs.ReadFile(file)
	if err != nil {
		return // told by who uses the file
	}
	for _, kind := range core.Kinds() {
		for _, list := range []string{"allow", "deny"} {
			names, _ := doc.At("permissions", string(kind), list)
			for _, element := range names.Elements() {
				var name string
				if json.Unmarshal(element.JSON(), &name) != nil || name == core.Wildcard {
					continue
				}
				if err := e.unknown(core.Capability{Kind: kind, Name: name}); err != nil {
					e.find("permission-unknown", element.Problem(err))
				}
			}
		}
	}
}

// unknown reports a name that nothing has, with the nearest one that something has.
// Where not all names are known, a name is taken for one of the others unless it is
// almost a known one.
func (e *exam) unknown(c core.Capability) error {
	if c.Name == core.Wildcard {
		return nil
	}
	names := e.named(c.Kind)
	if slices.Contains(names, c.Name) {
		return nil
	}
	for _, other := range core.Kinds() {
		if slices.Contains(e.named(other), c.Name) {
			return fmt.Errorf("%q is no name in %s; it is one in %s", c.Name, c.Kind, other)
		}
	}
	if e.partial(c.Kind) && core.Nearest(c.Name, names) == "" {
		return nil
	}
	return fmt.Errorf("nothing in %s has the name %q%s", c.Kind, c.Name, core.DidYouMean(c.Name, names))
}

// jsonFiles lists the definitions in a folder.
func jsonFiles(dir string) []string {
	entries, _ := os.ReadDir(dir) // told by who uses the folder
	var files []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".json") && !strings.HasPrefix(entry.Name(), ".") {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	return files
}

// skills says which there are, and what is wrong with the others.
func (e *exam) skills(context.Context) { e.dimension(core.KindSkill) }

// dimension tells the names of a dimension and its omissions.
func (e *exam) dimension(kind core.Kind) {
	var names []string
	for _, c := range e.catalog.Capabilities() {
		if c.Kind == kind {
			names = append(names, c.Name)
		}
	}
	e.list(names)
	e.omissions(kind)
}

// list notes names, if there are any.
func (e *exam) list(names []string) {
	if len(names) > 0 {
		e.fact("names", "%s", strings.Join(names, ", "))
	}
}

// subAgents says which there are, and which have no model.
func (e *exam) subAgents(context.Context) {
	e.dimension(core.KindSubagent)
	if e.broken {
		return // then nothing has a model
	}
	for _, s := range e.served {
		for _, o := range s.published.Omitted[len(e.catalog.Omitted()):] {
			if o.Kind != core.KindSubagent || o.Cause == nil {
				continue
			}
			var unset *core.UnsetError
			switch {
			case !filepath.IsAbs(place(o)), errors.Is(o, llm.ErrNoKey) && e.keyless(): // as the factory left it
				e.fact(o.Name, "not offered: %s", o.Reason)
			case errors.As(o, &unset): // told with the endpoint
			case errors.Is(o, llm.ErrNoKey):
				e.find("subagent-no-key", o)
			default:
				e.find("subagent-no-model", o)
			}
		}
	}
}

// keyless reports whether no endpoint can be used: nobody has set up models yet.
func (e *exam) keyless() bool {
	service := new(llm.Service)
	return !slices.ContainsFunc(e.config.Endpoints, func(p core.Endpoint) bool { return service.Usable(e.config, p.ID) == nil })
}

// place is the file that an omission comes from.
func place(o core.Omission) string { return finding("subagent-broken", o).File }

// userTools says which tools of the user there are, and what is wrong with tools.
func (e *exam) userTools(context.Context) {
	for _, r := range e.offers {
		if _, ok := r.Source.(*usertools.Source); ok {
			var names []string
			for _, c := range r.offer.Capabilities() {
				names = append(names, c.Name)
			}
			e.list(names)
		}
	}
	e.omissions(core.KindTool)
	for _, s := range e.served {
		for _, o := range s.published.Omitted[len(e.catalog.Omitted()):] {
			var shadowed *core.ShadowedError
			switch {
			case o.Kind != core.KindTool || o.Cause == nil:
			case errors.As(o, &shadowed):
				e.find("tool-replaced", o)
			case core.CheckName(o.Name) != nil:
				e.find("tool-name", o)
			}
		}
	}
}
