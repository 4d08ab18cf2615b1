package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"zenmcp/core/rawjson"
)

// maxParallelCalls bounds the tool calls of one round that run at the same time.
const maxParallelCalls = 16

// A run is one agent at work.
type run struct {
	scope      *Scope
	model      Model
	call       *Call // that it answers
	tools      Published
	history    []Message
	transcript *transcript
	steps      *steps

	rounds, calls int
	used          map[string]int // calls by tool
	usage         Usage
}

// add appends a message to the conversation.
func (r *run) add(m Message) {
	r.history = append(r.history, m)
	r.transcript.write(m)
}

// loop asks the model and runs the calls it asks for until there are none. At
// every end the conversation is one that the API accepts: each call of a tool is
// followed by its result (B68).
func (r *run) loop(ctx context.Context) (*Reply, error) {
	most := cmp.Or(r.scope.agent.MaxRounds, DefaultMaxRounds)
	for r.rounds < most {
		if ctx.Err() != nil {
			return nil, stopped(ctx)
		}
		r.rounds++
		r.steps.say("round %d: asking %s", r.rounds, r.model.Info().ID)
		reply, err := r.model.Reply(ctx, r.history, r.tools.Tools)
		if ctx.Err() != nil {
			return nil, stopped(ctx)
		}
		if err != nil {
			return nil, err
		}
		r.usage.Add(reply.Usage)
		r.add(reply.Message)
		if len(reply.Message.ToolCalls) > 0 {
			r.callTools(ctx, reply.Message.ToolCalls)
			continue
		}
		if strings.TrimSpace(reply.Message.Text()) != "" {
			return reply, nil
		}
		return nil, emptyAnswer(reply.Finish)
	}
	return nil, fmt.Errorf("no answer after %s, which is the most (maxRounds); give it a smaller task", Plural(most, "round"))
}

func stopped(ctx context.Context) error {
	return fmt.Errorf("stopped: %w", context.Cause(ctx))
}

func emptyAnswer(finish string) error {
	if finish == "" || finish == "stop" {
		return errors.New("the model's last message is empty")
	}
	return fmt.Errorf("the model's last message is empty; it stopped because of %q", finish)
}

// callTools runs the calls of one round, together, and appends their results in
// the order of the calls. Pictures follow in a message of the user: the result
// of a tool can be text only.
func (r *run) callTools(ctx context.Context, calls []ToolCall) {
	results := make([]*Result, len(calls))
	slots := make(chan struct{}, maxParallelCalls)
	var wg sync.WaitGroup
	for i, c := range calls {
		r.calls++
		r.used[c.Function.Name]++
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i] = r.callTool(ctx, c.Function)
		})
	}
	wg.Wait()
	var pictures []json.RawMessage
	for i, c := range calls {
		shown := r.show(c.Function.Name, results[i])
		message := TextMessage("tool", shown.text())
		message.ToolCallID = c.ID
		r.add(message)
		pictures = append(pictures, shown.parts...)
	}
	if len(pictures) > 0 {
		r.add(Message{Role: "user", Content: rawjson.JoinElements(pictures)})
	}
}

// callTool runs one call. It always has a result.
func (r *run) callTool(ctx context.Context, f FunctionCall) *Result {
	if ctx.Err() != nil {
		return ErrorResult(errors.New("not run: the agent was stopped"))
	}
	tool, ok := r.tools.Tool(f.Name)
	if !ok {
		return ErrorResult(r.unknown(f.Name))
	}
	arguments, err := wholeObject(json.RawMessage(f.Arguments))
	if err != nil {
		return ErrorResult(fmt.Errorf("%w; they were %q", err, Clip(f.Arguments, 200)))
	}
	round := r.rounds
	r.steps.say("round %d: %s%s", round, f.Name, subject(f.Arguments))
	inner := &Call{
		Arguments: arguments,
		Elicit:    r.call.Elicit,
		Progress: func(p Progress) {
			if p.Message != "" {
				r.steps.say("round %d: %s: %s", round, f.Name, p.Message)
			}
		},
	}
	return tool.Do(ctx, r.scope.Log(), inner)
}

// unknown is the error for a tool that the agent does not have. One that it may
// use, but that is running above it, gets words of its own: the model could not
// know.
func (r *run) unknown(name string) error {
	excluded := func(o Omission) bool { return o.Kind == KindSubagent && o.Name == name }
	permitted := r.scope.agent.Permissions.Permits(Capability{KindSubagent, name})
	if chain := r.scope.chain(); permitted && slices.Contains(chain, name) && slices.ContainsFunc(r.tools.Omitted, excluded) {
		return fmt.Errorf("%q is running already (%s) and cannot be called from within; do the work yourself", name, strings.Join(chain, " → "))
	}
	return r.tools.UnknownTool(name)
}

// subject is what a call is about, for people: its first text.
func subject(arguments string) string {
	members, err := rawjson.Members([]byte(arguments))
	if err != nil {
		return ""
	}
	for _, m := range members {
		var text string
		if json.Unmarshal(m.Value, &text) == nil && text != "" {
			line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
			return " " + Clip(line, 80)
		}
	}
	return ""
}
