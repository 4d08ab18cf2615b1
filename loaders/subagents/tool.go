package subagents

import (
	"cmp"
	"context"

	"zenmcp/core"
)

// definition makes the tool. What the agent may do with its own tools is not
// known here, so the hints promise nothing.
func (a subAgent) definition() core.Definition {
	return core.Definition{Tool: core.Tool{
		Name:        a.name(),
		Title:       a.Name,
		Description: cmp.Or(a.Function.Description, a.Description, a.Name, a.name()),
		Input:       a.input,
		Hints:       core.Hints{Destructive: true, OpenWorld: true},
		Output:      core.OutputLong,
		Run:         a.run,
	}}
}

// run gives the agent its task. Every call begins anew: there is no memory of
// other calls, and nothing of the caller's conversation (contract §6).
func (a subAgent) run(ctx context.Context, call *core.Call) (*core.Result, error) {
	arguments, _, err := a.arguments.Check(call.Arguments)
	if err != nil {
		return nil, err
	}
	agent := a.AgentDefinition
	if agent.Messages, err = fill(agent.Messages, a.input, arguments); err != nil {
		return nil, err
	}
	return core.RunAgent(ctx, call, agent)
}
