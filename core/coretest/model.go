package coretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"zenmcp/core"
)

// A Script is a chat model that answers as a test says.
type Script struct {
	// Answer gives the reply to a request, the index of which counts from 0.
	// [Replies] makes one of a list.
	Answer func(ctx context.Context, index int, r Request) (*core.Reply, error)
	Vision bool // what the model says of itself

	mu       sync.Mutex
	requests []Request
}

// A Request is what a model was asked.
type Request struct {
	Messages []core.Message
	Tools    []core.Tool
}

// Roles lists the roles of the messages.
func (r Request) Roles() []string {
	roles := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		roles[i] = m.Role
	}
	return roles
}

// ToolNames lists the names of the tools.
func (r Request) ToolNames() []string { return core.Published{Tools: r.Tools}.Names() }

// Last is the last message.
func (r Request) Last() core.Message { return r.Messages[len(r.Messages)-1] }

var _ core.Model = (*Script)(nil)

// Replies makes a script of replies, the first one first. More requests than
// replies are an error.
func Replies(replies ...*core.Reply) *Script {
	return &Script{Answer: func(_ context.Context, index int, _ Request) (*core.Reply, error) {
		if index >= len(replies) {
			return nil, errors.New("the script has ended")
		}
		return replies[index], nil
	}}
}

// Models is the script as [core.Env.Models]: it serves every agent.
func (s *Script) Models(core.Config, core.AgentDefinition) (core.Model, error) { return s, nil }

// Info tells the id "script".
func (s *Script) Info() core.ModelInfo { return core.ModelInfo{ID: "script", Vision: s.Vision} }

// Reply notes the request and asks the script.
func (s *Script) Reply(ctx context.Context, conversation []core.Message, tools []core.Tool) (*core.Reply, error) {
	r := Request{slices.Clone(conversation), slices.Clone(tools)}
	s.mu.Lock()
	index := len(s.requests)
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	return s.Answer(ctx, index, r)
}

// Requests lists what the model was asked so far.
func (s *Script) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Say is a reply of one text, which took 10 + 5 tokens.
func Say(text string) *core.Reply {
	return &core.Reply{
		Message: core.TextMessage("assistant", text), Finish: "stop",
		Usage: core.Usage{Prompt: 10, Completion: 5, Total: 15},
	}
}

// Ask is a reply that asks for calls. They get the ids c0, c1 and so on unless
// they have some.
func Ask(calls ...core.ToolCall) *core.Reply {
	reply := Say("")
	for i, c := range calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("c%d", i)
		}
		reply.Message.ToolCalls = append(reply.Message.ToolCalls, c)
	}
	reply.Finish = "tool_calls"
	return reply
}

// Call is a call of a tool. A string is sent as the arguments' text, anything
// else as JSON.
func Call(name string, arguments any) core.ToolCall {
	text, isText := arguments.(string)
	if !isText {
		encoded, err := json.Marshal(arguments)
		if err != nil {
			panic("coretest: " + err.Error())
		}
		text = string(encoded)
	}
	return core.ToolCall{Type: "function", Function: core.FunctionCall{Name: name, Arguments: text}}
}
