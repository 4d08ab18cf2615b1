package skills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"zenmcp/core"
	"zenmcp/core/coretest"
)

// agentScope is a scope with a scripted model.
func agentScope(t *testing.T, s *Source, script *coretest.Script, agent core.AgentDefinition) *core.Scope {
	t.Helper()
	catalog, err := core.Discover(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	env := &core.Env{Models: script.Models}
	env.Update(core.Config{}, catalog)
	scope, err := core.NewScope(env, agent, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { scope.Close() })
	return scope
}

func subAgentSkills(t *testing.T) *Source {
	root := t.TempDir()
	write(t, root, "alpha/SKILL.md", plain("alpha"))
	write(t, root, "beta/SKILL.md", "---\nname: beta\ndescription: about beta\nsub-agent: true\n---\n# beta\n")
	write(t, root, "beta/references/a.md", "a")
	write(t, root, "gamma/SKILL.md", "---\nname: gamma\ndescription: about gamma\nsub-agent: true\n---\n# gamma\n")
	return newSource(t, root, root)
}

func callSubAgent(t *testing.T, scope *core.Scope, id, task string) (*core.Result, error) {
	t.Helper()
	tool, ok := scope.Tools().Tool(subAgentName)
	if !ok {
		t.Fatalf("%s is not published: %v", subAgentName, scope.Tools().Omitted)
	}
	return tool.Run(t.Context(), &core.Call{Arguments: fmt.Appendf(nil, `{"skill_id":%q,"task":%q}`, id, task)})
}

func TestSubAgent(t *testing.T) {
	t.Parallel()
	model := "m"
	script := &coretest.Script{Answer: func(context.Context, int, coretest.Request) (*core.Reply, error) { return coretest.Say("done"), nil }}
	agent := core.AgentDefinition{ID: "main", ModelID: &model, Permissions: core.AllowAll()}
	scope := agentScope(t, subAgentSkills(t), script, agent)
	res, err := callSubAgent(t, scope, "beta", "the task")
	if err != nil || res.IsError || res.Text() != "done" {
		t.Fatalf("%v, %v", res, err)
	}
	request := script.Requests()[0]
	if want := []string{"system", "user"}; !slices.Equal(request.Roles(), want) {
		t.Errorf("roles %q, want %q", request.Roles(), want)
	}
	if got := request.Messages[0].Text(); !strings.Contains(got, "references/a.md\n\n---\nname: beta\n") || !strings.HasSuffix(got, "# beta\n") {
		t.Errorf("the system message is %q", got)
	}
	if got := request.Last().Text(); got != "the task" {
		t.Errorf("the task is %q", got)
	}
	if want := []string{loadName}; !slices.Equal(request.ToolNames(), want) {
		t.Errorf("tools %q, want %q: a skill does not hand on its task", request.ToolNames(), want)
	}
	skill := request.Tools[0].Input.Properties["skill_id"]
	if want := []any{"alpha", "gamma"}; !slices.Equal(skill.Enum, want) {
		t.Errorf("skills %q, want %q: the caller's, without the skill itself", skill.Enum, want)
	}
}

func TestSubAgentRefuses(t *testing.T) {
	t.Parallel()
	script := coretest.Replies()
	permissions := core.AllowAll()
	permissions[core.KindSkill] = core.Deny("gamma")
	scope := agentScope(t, subAgentSkills(t), script, core.AgentDefinition{ID: "main", Permissions: permissions})
	for id, want := range map[string]string{
		"alpha": "does not run as an agent", "gamma": `unknown skill "gamma"`, "nobody": `unknown skill "nobody"`, "../beta": `unknown skill "../beta"`,
	} {
		if res, err := callSubAgent(t, scope, id, "t"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", id, res, err, want)
		}
	}
	if len(script.Requests()) > 0 {
		t.Error("the model was asked")
	}
	tool, _ := scope.Tools().Tool(subAgentName)
	if want := []any{"beta"}; !slices.Equal(tool.Input.Properties["skill_id"].Enum, want) {
		t.Errorf("choices %q, want %q", tool.Input.Properties["skill_id"].Enum, want)
	}
}

// TestSubAgentFails is B55: a run that fails is no ordinary answer.
func TestSubAgentFails(t *testing.T) {
	t.Parallel()
	script := &coretest.Script{Answer: func(context.Context, int, coretest.Request) (*core.Reply, error) { return nil, errors.New("boom") }}
	scope := agentScope(t, subAgentSkills(t), script, core.AgentDefinition{ID: "main", Permissions: core.AllowAll()})
	res, err := callSubAgent(t, scope, "beta", "t")
	if err == nil && (!res.IsError || !strings.Contains(res.Text(), "boom")) {
		t.Errorf("got %v, %v", res, err)
	}
}

// TestSubAgentNeedsAModel checks that the tool is left out with a reason.
func TestSubAgentNeedsAModel(t *testing.T) {
	t.Parallel()
	published := scopeOf(t, subAgentSkills(t), core.Allow("*")).Tools()
	if _, ok := published.Tool(subAgentName); ok {
		t.Error("it is published without a model")
	}
	i := slices.IndexFunc(published.Omitted, func(o core.Omission) bool { return o.Name == subAgentName })
	if i < 0 || !strings.Contains(published.Omitted[i].Reason, "model") {
		t.Errorf("left out: %v", published.Omitted)
	}
}

// TestDefinitionsAreShort checks what every request pays for.
func TestDefinitionsAreShort(t *testing.T) {
	t.Parallel()
	scope := agentScope(t, subAgentSkills(t), coretest.Replies(), core.AgentDefinition{ID: "main", Permissions: core.AllowAll()})
	for _, tool := range scope.Tools().Tools {
		if err := coretest.Lint(tool); err != nil {
			t.Error(err)
		}
		text, err := json.Marshal(tool.Input)
		if err != nil || len(text) > 600 {
			t.Errorf("%s: %d bytes of schema: %s", tool.Name, len(text), text)
		}
	}
}
