package skills

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

const subAgentName = "call_skill_sub_agent"

type subAgentArgs struct {
	Skill string `json:"skill_id"`
	Task  string `json:"task"`
}

// subAgent is the tool that hands a task to a skill. Its choices are the skills
// that say `sub-agent: true`.
func (t *toolset) subAgent() core.Definition {
	input := func(skill *jsonschema.Schema) *jsonschema.Schema {
		one := 1
		return &jsonschema.Schema{
			Type:          "object",
			PropertyOrder: []string{"skill_id", "task"},
			Properties: map[string]*jsonschema.Schema{
				"skill_id": skill,
				"task":     {Type: "string", MinLength: &one, Description: "Everything that it needs to know"},
			},
			Required:             []string{"skill_id", "task"},
			AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		}
	}
	d := core.Define(core.Tool{
		Name:        subAgentName,
		Title:       "Hand a task to a skill",
		Description: "Have an agent of its own do a task by a skill, with the same tools, and get its answer. It sees nothing of this conversation.",
		Input:       input(text("")),
		Hints:       core.Hints{Destructive: true, OpenWorld: true},
		Output:      core.OutputLong,
	}, t.runSubAgent)
	d.Input = input((&toolset{skills: t.agents()}).choice())
	return d
}

// agents are the skills that run as agents.
func (t *toolset) agents() []skill {
	return slices.DeleteFunc(slices.Clone(t.skills), func(s skill) bool { return !s.manifest.subAgent })
}

// runSubAgent runs a skill as an agent that exists for this task: it is told the
// skill, has the permissions and the model of its caller, and cannot hand the
// task on in the same way (contract §3).
func (t *toolset) runSubAgent(ctx context.Context, call *core.Call, in subAgentArgs) (*core.Result, error) {
	s, err := t.skill(call, in.Skill)
	if err != nil {
		return nil, err
	}
	if !s.manifest.subAgent {
		return nil, fmt.Errorf("the skill %q does not run as an agent: its SKILL.md does not say `sub-agent: true`; use load_skill", s.id)
	}
	instructions, err := s.Text(ctx)
	if err != nil {
		return nil, err
	}
	caller := call.Scope.Agent()
	agent := core.AgentDefinition{ID: "skill:" + s.id, Permissions: caller.Permissions, MaxRounds: caller.MaxRounds}
	for _, m := range []struct{ role, text string }{{"system", instructions}, {"user", in.Task}} {
		agent.Messages = append(agent.Messages, core.Message{Role: m.role, Content: json.RawMessage(rawjson.AppendString(nil, m.text))})
	}
	return core.RunAgent(ctx, call, agent,
		core.Capability{Kind: core.KindTool, Name: subAgentName}, core.Capability{Kind: core.KindSkill, Name: s.id})
}
