package core

import (
	"context"
	"encoding/json"

	"zenmcp/core/rawjson"
)

// A Model is a chat model that agents run on. Many runs may use one at once.
type Model interface {
	// Info says which model it is.
	Info() ModelInfo
	// Reply continues a conversation. The model may ask for calls of the tools.
	// Reply changes nothing that it is given, tries again by itself what is
	// worth it, and ends within 100 ms of ctx. Its error is for a model and for
	// people: it names the endpoint and holds no key.
	Reply(ctx context.Context, conversation []Message, tools []Tool) (*Reply, error)
}

// ModelInfo says which model it is and what it can do.
type ModelInfo struct {
	ID     string // in config.json
	Vision bool   // it sees pictures
}

// A Reply is what a model answers.
type Reply struct {
	Message Message // of the assistant; its tool calls have ids
	// Finish is why the model stopped, in the words of the API; empty when it
	// did not say. Whether there are calls decides what is next, not this.
	Finish string
	Usage  Usage
}

// Usage counts tokens.
type Usage struct {
	Prompt     int64 `json:"prompt"`
	Completion int64 `json:"completion"`
	Total      int64 `json:"total"`
}

// Add counts more tokens.
func (u *Usage) Add(more Usage) {
	u.Prompt += more.Prompt
	u.Completion += more.Completion
	u.Total += more.Total
}

// TextMessage is a message that is one text.
func TextMessage(role, text string) Message {
	return Message{Role: role, Content: rawjson.AppendString(nil, text)}
}

// Text is the text of a message, of all its parts together.
func (m Message) Text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		if p.Type == "text" {
			text += p.Text
		}
	}
	return text
}
