package core

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// A pipelineCase says in names what there is, what is permitted and excluded, and
// what must be offered.
type pipelineCase struct {
	ID, Name                        string
	Skills, SubAgentSkills, Servers []string
	UserTools                       []string
	Subagents, BrokenSubagents      []string
	Permissions                     Permissions
	Exclude                         map[Kind][]string
	Tools                           []string
	Choices                         map[string][]string
}

// sources are fakes of the same shape as the real ones, in the same order.
func (c pipelineCase) sources(builtins []string) []Source {
	skills := fake{text: "skill", caps: append(capabilities(KindTool, "load_skill", "call_skill_sub_agent"),
		capabilities(KindSkill, c.Skills...)...)}
	skills.makes = func(permitted []Capability) (tools []Tool) {
		visible := namesOf(permitted, KindSkill)
		runnable := slices.DeleteFunc(slices.Clone(visible), func(n any) bool { return !slices.Contains(c.SubAgentSkills, n.(string)) })
		if slices.Contains(permitted, Capability{KindTool, "load_skill"}) && len(visible) > 0 {
			tools = append(tools, fakeTool("load_skill", "skill", visible...))
		}
		if slices.Contains(permitted, Capability{KindTool, "call_skill_sub_agent"}) && len(runnable) > 0 {
			tools = append(tools, fakeTool("call_skill_sub_agent", "skill", runnable...))
		}
		return tools
	}
	mcps := fake{text: "mcp", caps: append(capabilities(KindTool, "load_mcp", "call_mcp_tool", "read_mcp_resource"),
		capabilities(KindMCP, c.Servers...)...)}
	mcps.makes = func(permitted []Capability) (tools []Tool) {
		for _, name := range namesOf(permitted, KindTool) {
			servers := namesOf(permitted, KindMCP)
			if name != "load_mcp" {
				tools = append(tools, fakeTool(name.(string), "mcp"))
			} else if len(servers) > 0 {
				tools = append(tools, fakeTool("load_mcp", "mcp", servers...))
			}
		}
		return tools
	}
	var broken []error
	for _, name := range c.BrokenSubagents {
		broken = append(broken, Omission{Capability: Capability{KindSubagent, name}, Origin: name + ".json", Reason: "broken"})
	}
	return []Source{
		fake{text: "builtin", caps: capabilities(KindTool, builtins...), needs: map[string]error{"generateImage": errors.New("needs a model")}},
		fake{text: "user tool", caps: capabilities(KindTool, c.UserTools...)},
		skills,
		mcps,
		fake{text: "sub-agent", caps: capabilities(KindSubagent, c.Subagents...), err: errors.Join(broken...)},
	}
}

// namesOf are the names of one kind, as values of an enum.
func namesOf(caps []Capability, kind Kind) (names []any) {
	for _, c := range caps {
		if c.Kind == kind {
			names = append(names, c.Name)
		}
	}
	return names
}

// TestPipelineVectors runs recorded behaviour of the three phases.
func TestPipelineVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/pipeline.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Builtins []string
		Cases    []pipelineCase
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, c := range vectors.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			catalog, err := Discover(t.Context(), c.sources(vectors.Builtins)...)
			if err != nil {
				t.Fatal(err)
			}
			var exclude []Capability
			for kind, names := range c.Exclude {
				exclude = append(exclude, capabilities(kind, names...)...)
			}
			agent := AgentDefinition{Permissions: c.Permissions}
			got := catalog.Filter(Config{}, agent, exclude...).Instantiate(newScope(t, &Env{}))
			if !slices.Equal(got.Names(), c.Tools) {
				t.Errorf("%s:\n got %q\nwant %q", c.Name, got.Names(), c.Tools)
			}
			for name, want := range c.Choices {
				tool, _ := got.Tool(name)
				var choices []string
				if tool.Input != nil && tool.Input.Properties["choice"] != nil {
					for _, v := range tool.Input.Properties["choice"].Enum {
						choices = append(choices, v.(string))
					}
				}
				if !slices.Equal(choices, want) {
					t.Errorf("%s: %s offers %q, want %q", c.Name, name, choices, want)
				}
			}
			for _, name := range c.BrokenSubagents {
				if whyOmitted(got.Omitted, name) != "broken" {
					t.Errorf("%s: nothing says why %q is left out: %v", c.Name, name, got.Omitted)
				}
			}
		})
	}
}

// whyOmitted is why a name was left out; "" if it was not.
func whyOmitted(omitted []Omission, name string) string {
	for _, o := range omitted {
		if o.Name == name {
			return o.Reason
		}
	}
	return ""
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	nothing := sourceFunc(func(context.Context) (Offer, error) { return nil, errors.New("the disk is away") })
	partly := fake{caps: capabilities(KindTool, "good"), err: errors.Join(
		Omission{Capability: Capability{KindTool, "bad"}, Origin: "bad.json", Reason: "line 3"}, errors.New("and another"))}
	catalog, err := Discover(t.Context(), nothing, partly)
	if err != nil {
		t.Fatalf("a source that cannot be read is no failure of all: %v", err)
	}
	if got := catalog.Capabilities(); !slices.Equal(got, capabilities(KindTool, "good")) {
		t.Errorf("capabilities %v, want the readable rest", got)
	}
	var texts []string
	for _, o := range catalog.Omitted() {
		texts = append(texts, o.Error())
	}
	if want := []string{"the disk is away", "tools:bad (bad.json): line 3", "and another"}; !slices.Equal(texts, want) {
		t.Errorf("omitted %q, want %q", texts, want)
	}

	why := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	late := sourceFunc(func(context.Context) (Offer, error) { cancel(why); return partly, nil })
	if c, err := Discover(ctx, late, fake{}); !errors.Is(err, why) || len(c.Capabilities()) > 0 {
		t.Errorf("after the end of its context Discover gave %v, %v", c.Capabilities(), err)
	}

	// No source waits for the one before it.
	ctx, cancelAll := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancelAll()
	asked := make(chan struct{})
	waits := sourceFunc(func(ctx context.Context) (Offer, error) {
		select {
		case <-asked:
		case <-ctx.Done():
		}
		return fake{caps: capabilities(KindTool, "first")}, nil
	})
	last := sourceFunc(func(context.Context) (Offer, error) { close(asked); return partly, nil })
	if c, err := Discover(ctx, waits, last); err != nil || !slices.Equal(c.Capabilities(), capabilities(KindTool, "first", "good")) {
		t.Errorf("of sources at the same time: %v, %v", c.Capabilities(), err)
	}
}

type sourceFunc func(context.Context) (Offer, error)

func (f sourceFunc) Discover(ctx context.Context) (Offer, error) { return f(ctx) }

func TestFilterReasons(t *testing.T) {
	t.Parallel()
	source := fake{caps: capabilities(KindTool, "a", "b", "c"), needs: map[string]error{
		"a": errors.New("needs more"), "b": errors.New("needs more"), "c": errors.New("needs more"),
	}}
	catalog, err := Discover(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	agent := AgentDefinition{Permissions: Permissions{KindTool: Allow("a", "c")}}
	out := catalog.Filter(Config{}, agent, Capability{KindTool, "a"})
	for name, want := range map[string]string{"a": "excluded", "b": "not permitted", "c": "needs more"} {
		if got := whyOmitted(out.Omitted(), name); !strings.Contains(got, want) {
			t.Errorf("%s is left out because of %q, want %q: exclusions first, then permissions, then what it needs", name, got, want)
		}
	}
	if len(out.Capabilities()) > 0 || len(catalog.Capabilities()) != 3 || len(catalog.Omitted()) > 0 {
		t.Error("Filter changed the catalog it filters, or let something through")
	}
}

func TestInstantiate(t *testing.T) {
	t.Parallel()
	first := fake{caps: capabilities(KindTool, "same", "a.b", "last"), text: "first", why: errors.Join(
		Omission{Capability: Capability{KindTool, "x"}, Reason: "makes no sense now"})}
	second := fake{caps: capabilities(KindSubagent, "same", strings.Repeat("n", 64), strings.Repeat("n", 65), ""), text: "second"}
	catalog, err := Discover(t.Context(), first, second)
	if err != nil {
		t.Fatal(err)
	}
	got := catalog.Filter(Config{}, AgentDefinition{Permissions: AllowAll()}).Instantiate(newScope(t, &Env{}))
	if want := []string{"last", "same", strings.Repeat("n", 64)}; !slices.Equal(got.Names(), want) {
		t.Errorf("tools %q, want %q: the last of a name stays, in its place", got.Names(), want)
	}
	if tool, ok := got.Tool("same"); !ok || tool.Description != "second" {
		t.Errorf("the tool of the earlier source won: %q", tool.Description)
	}
	if _, ok := got.Tool("a.b"); ok {
		t.Error("a name that is left out is found")
	}
	left := map[string]string{"same": "replaced", "a.b": "clients refuse", strings.Repeat("n", 65): "clients refuse", "": "clients refuse", "x": "no sense"}
	for name, want := range left {
		if r := whyOmitted(got.Omitted, name); !strings.Contains(r, want) {
			t.Errorf("%q is left out because of %q, want %q", name, r, want)
		}
	}
	if len(got.Omitted) != len(left) {
		t.Errorf("left out %v, want %q", got.Omitted, slices.Sorted(maps.Keys(left)))
	}
}

func TestUnknownTool(t *testing.T) {
	t.Parallel()
	p := Published{Tools: []Tool{{Name: "readFile"}, {Name: "rm"}}}
	for name, want := range map[string]string{
		"readfile": `unknown tool "readfile"; did you mean "readFile"?`,
		"exec":     `unknown tool "exec"`,
		"ls":       `unknown tool "ls"`, // rm is as short, and nothing like it
	} {
		if got := p.UnknownTool(name).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := p.UnknownTool(strings.Repeat("x", 1<<20)).Error(); len(got) > 200 {
		t.Errorf("the error has %d bytes", len(got))
	}
}

// skilled is a fake with skills.
type skilled struct{ fake }

func (s skilled) Discover(context.Context) (Offer, error) { return s, nil }

func (s skilled) Skills(permitted []Capability) []Skill {
	var out []Skill
	for _, c := range permitted {
		out = append(out, Skill{Name: c.Name})
	}
	return out
}

// TestPublishedSkills checks that skills go through the filter as tools do.
func TestPublishedSkills(t *testing.T) {
	t.Parallel()
	catalog, err := Discover(t.Context(), skilled{fake{caps: capabilities(KindSkill, "a", "b", "c")}}, fake{caps: capabilities(KindSkill, "d")})
	if err != nil {
		t.Fatal(err)
	}
	agent := AgentDefinition{Permissions: Permissions{KindSkill: Deny("b")}}
	var names []string
	for _, s := range catalog.Filter(Config{}, agent).Instantiate(nil).Skills {
		names = append(names, s.Name)
	}
	if want := []string{"a", "c"}; !slices.Equal(names, want) {
		t.Errorf("skills %q, want %q", names, want)
	}
}
