package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DefaultMaxRounds is how many rounds a run may have when its definition names
// no number (decision 27).
const DefaultMaxRounds = 50

// MaxAgentDepth is how many agents may run in each other (decision 27).
const MaxAgentDepth = 5

// RunKey is the key of a run's [RunInfo] in the result's _meta.
const RunKey = "zen-mcp/run"

// RunInfo says what a run took.
type RunInfo struct {
	Model     string `json:"model"` // its id in config.json
	Rounds    int    `json:"rounds"`
	ToolCalls int    `json:"toolCalls"`
	Tokens    Usage  `json:"tokens"`
	// Transcript is a private file with the run's messages, one JSON object a
	// line. It is removed after a day. Empty when the server keeps no files.
	Transcript string `json:"transcript,omitempty"`
}

// RunAgent runs an agent on behalf of the scope of a call: it talks to the
// agent's model, beginning with the agent's messages, and runs the tools that it
// asks for until it asks for none. The agent has its own permissions and its own
// conversation; what is excluded, it does not see. The result is the text of the
// last message, with a [RunInfo] in _meta. A run that fails is a result with the
// error flag, which says what was done so far; an error is a run that cannot
// begin.
//
// Progress is reported for every round and every tool call. When ctx ends, the
// model and the running tools are told, and RunAgent returns when they have ended.
func RunAgent(ctx context.Context, call *Call, agent AgentDefinition, exclude ...Capability) (*Result, error) {
	if chain := call.Scope.chain(); len(chain) > MaxAgentDepth {
		return nil, fmt.Errorf("agents may call each other %d deep, and this would be one more: %s; do the work without %q",
			MaxAgentDepth, strings.Join(chain, " → "), agent.title())
	}
	model, err := call.Scope.Model(agent)
	if err != nil {
		return nil, err
	}
	scope, err := call.Scope.Child(agent, exclude...)
	if err != nil {
		return nil, fmt.Errorf("agent %q: %w", agent.title(), err)
	}
	defer func() {
		if err := scope.Close(); err != nil {
			scope.Log().Warn("ending the run of an agent", "agent", agent.title(), "error", err)
		}
	}()
	r := &run{scope: scope, model: model, call: call, tools: scope.Tools(), steps: newSteps(call), used: map[string]int{}}
	defer r.steps.close()
	r.transcript = scope.newTranscript(agent.title())
	defer r.transcript.close()
	for _, m := range agent.Messages {
		r.add(m)
	}
	return r.result(r.loop(ctx)), nil
}

// title is the name of an agent that others know it by.
func (a AgentDefinition) title() string {
	if a.Function != nil {
		return a.Function.Name
	}
	return cmp.Or(a.ID, a.Name)
}

// chain names the agents from the client's down to this scope's.
func (s *Scope) chain() []string {
	var names []string
	for ; s != nil; s = s.parent {
		names = append(names, s.agent.title())
	}
	slices.Reverse(names)
	return names
}

// result is what the caller gets of a run.
func (r *run) result(last *Reply, err error) *Result {
	info := RunInfo{Model: r.model.Info().ID, Rounds: r.rounds, ToolCalls: r.calls, Tokens: r.usage, Transcript: r.transcript.path()}
	res := &Result{}
	if err != nil {
		r.transcript.write(map[string]string{"error": err.Error()})
		res = ErrorResult(errors.New(r.failure(err)))
	} else {
		res.Blocks = append(res.Blocks, Text(last.Message.Text()))
		if last.Finish == "length" || last.Finish == "content_filter" {
			res.Blocks = append(res.Blocks, Text(fmt.Sprintf("note: the answer is incomplete; the model stopped because of %q", last.Finish)))
		}
	}
	res.Meta = map[string]any{RunKey: info}
	return res
}

// failure says why a run failed and what is left of it, so that what was done
// is not done again.
func (r *run) failure(err error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "agent %q: %v", r.scope.agent.title(), err)
	if r.calls == 0 {
		b.WriteString("\nNo tool was called before.")
		return b.String()
	}
	fmt.Fprintf(&b, "\nDone before: %s, %s (", Plural(r.rounds, "round"), Plural(r.calls, "tool call"))
	for i, name := range slices.Sorted(maps.Keys(r.used)) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d × %s", r.used[name], name)
	}
	b.WriteString(").")
	for _, m := range r.lastWords() {
		fmt.Fprintf(&b, "\nThe last %s: %s", map[string]string{"tool": "tool result", "assistant": "text"}[m.Role], Clip(m.Text(), 1000))
	}
	if path := r.transcript.path(); path != "" {
		fmt.Fprintf(&b, "\nTranscript: %q", path)
	}
	return b.String()
}

// lastWords are the last text of the model and the last result of a tool.
func (r *run) lastWords() []Message {
	var found []Message
	for _, m := range slices.Backward(r.history) {
		known := slices.ContainsFunc(found, func(o Message) bool { return o.Role == m.Role })
		if (m.Role == "tool" || m.Role == "assistant") && !known && m.Text() != "" {
			found = append(found, m)
		}
	}
	slices.Reverse(found)
	return found
}
