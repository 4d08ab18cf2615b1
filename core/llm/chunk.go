package llm

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// A chunk is one piece of a streamed answer, or an answer that comes whole. Only
// what is needed is read, so that a wrong type elsewhere does no harm.
type chunk struct {
	Choices []struct {
		Index        int
		Delta        delta
		Message      delta
		FinishReason string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
	}
	Error json.RawMessage
}

type delta struct {
	Content      looseText
	Reasoning    looseText   `json:"reasoning_content"`
	Refusal      looseText   // in the place of content
	ToolCalls    []callDelta `json:"tool_calls"`
	FunctionCall *function   `json:"function_call"` // the form before tool_calls
}

type callDelta struct {
	Index    *int
	ID       looseText
	Function function
	Extra    json.RawMessage `json:"extra_content"`
}

type function struct {
	Name      string
	Arguments looseText
}

// looseText is text where some services send something else: null is empty, of
// content parts the texts count, and everything else is its JSON.
type looseText string

// UnmarshalJSON never fails.
func (t *looseText) UnmarshalJSON(raw []byte) error {
	switch rawjson.KindOf(raw) {
	case rawjson.Null:
	case rawjson.String:
		return json.Unmarshal(raw, (*string)(t))
	case rawjson.Array:
		*t = looseText(core.Message{Content: raw}.Text())
	default:
		*t = looseText(raw)
	}
	return nil
}

// An answer is put together from chunks.
type answer struct {
	content, reasoning, refusal strings.Builder

	calls  []*call // in the order in which they came
	finish string
	usage  core.Usage
}

type call struct {
	index *int
	core.ToolCall
}

// add takes a chunk in and reports whether it had choices.
func (a *answer) add(data []byte) (choices bool, err error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, &failure{err: fmt.Errorf("the answer is not the API's (%v): %s", err, core.Clip(string(data), maxSaid)), again: true}
	}
	if len(c.Error) > len("null") { // "" and {} are no errors either
		said := saidError(data)
		return false, &failure{err: fmt.Errorf("the service reports an error: %s", said.text()), again: said.passing()}
	}
	if c.Usage != nil && c.Usage.Prompt+c.Usage.Completion+c.Usage.Total > 0 {
		a.usage = core.Usage{Prompt: c.Usage.Prompt, Completion: c.Usage.Completion, Total: c.Usage.Total}
		if a.usage.Total == 0 {
			a.usage.Total = a.usage.Prompt + a.usage.Completion
		}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // one was asked for
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		a.delta(choice.Delta)
		a.delta(choice.Message)
	}
	return len(c.Choices) > 0, nil
}

func (a *answer) delta(d delta) {
	a.content.WriteString(string(d.Content))
	a.reasoning.WriteString(string(d.Reasoning))
	a.refusal.WriteString(string(d.Refusal))
	for _, c := range d.ToolCalls {
		a.call(c).merge(c)
	}
	if d.FunctionCall != nil {
		zero := 0
		c := callDelta{Index: &zero, Function: *d.FunctionCall}
		a.call(c).merge(c)
	}
}

// call finds the call that a piece belongs to, or begins one. The index decides,
// when there is one and it is not used for several calls; else the id, else that
// a piece with a name is a new call.
func (a *answer) call(d callDelta) *call {
	var found *call
	for _, c := range a.calls {
		sameIndex := d.Index != nil && c.index != nil && *d.Index == *c.index
		sameID := d.ID != "" && string(d.ID) == c.ID
		if sameIndex || d.Index == nil && sameID {
			found = c // the last one: an index can have been used before
		}
	}
	if found == nil && d.Index == nil && len(a.calls) > 0 {
		last := a.calls[len(a.calls)-1]
		continues := d.Function.Name == "" || d.Function.Name == last.Function.Name && !isObject(last.Function.Arguments)
		if d.ID == "" && continues {
			found = last
		}
	}
	another := found != nil && d.ID != "" && found.ID != "" && string(d.ID) != found.ID && d.Function.Name != ""
	if found == nil || another {
		found = &call{index: d.Index, ToolCall: core.ToolCall{Type: "function"}}
		a.calls = append(a.calls, found)
	}
	return found
}

// merge adds a piece to a call. Services repeat ids, names and arguments.
func (c *call) merge(d callDelta) {
	if c.ID == "" {
		c.ID = string(d.ID)
	}
	if c.Function.Name == "" {
		c.Function.Name = d.Function.Name
	}
	if d.Extra != nil {
		c.Extra = d.Extra
	}
	c.Function.Arguments = joinArguments(c.Function.Arguments, string(d.Function.Arguments))
}

// joinArguments adds a piece of arguments to those so far. A piece that is the
// whole, after pieces or after an empty object, takes their place.
func joinArguments(so, piece string) string {
	whole := isObject(piece)
	if whole && (isObject(so) || strings.HasPrefix(piece, so)) {
		return piece
	}
	return so + piece
}

func isObject(text string) bool {
	return rawjson.KindOf([]byte(text)) == rawjson.Object && json.Valid([]byte(text))
}

// reply is the answer as it is now.
func (a *answer) reply() *core.Reply {
	text := a.content.String()
	if text == "" {
		text = a.refusal.String()
	}
	m := core.TextMessage("assistant", text)
	m.Reasoning = a.reasoning.String()
	for _, c := range a.calls {
		if c.ID == "" {
			c.ID = "call_" + rand.Text()[:16]
		}
		m.ToolCalls = append(m.ToolCalls, c.ToolCall)
	}
	return &core.Reply{Message: m, Finish: a.finish, Usage: a.usage}
}
