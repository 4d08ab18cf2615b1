package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// A model is a chat model at an endpoint.
type model struct {
	endpoint *endpoint
	config   core.ModelConfig
}

var _ core.Model = (*model)(nil)

func (m *model) Info() core.ModelInfo {
	return core.ModelInfo{ID: m.config.ID, Vision: m.config.Vision}
}

func (m *model) Reply(ctx context.Context, conversation []core.Message, tools []core.Tool) (*core.Reply, error) {
	body, err := m.body(conversation, tools)
	if err != nil {
		return nil, err
	}
	chat := openai.NewChatCompletionService(m.endpoint.options...)
	params := param.Override[openai.ChatCompletionNewParams](body)
	var reply *core.Reply
	err = m.endpoint.retry(ctx, chatAttempts, func(ctx context.Context, w *watch) error {
		var res *http.Response
		if _, err := chat.New(ctx, params, option.WithResponseBodyInto(&res)); err != nil {
			return err
		}
		res.Body = w.body(res.Body)
		defer res.Body.Close()
		var err error
		reply, err = readReply(res)
		return err
	})
	return reply, err
}

// body is the request. The model's defaultParams change everything but the
// conversation; null takes out what a service refuses, such as stream_options.
func (m *model) body(conversation []core.Message, tools []core.Tool) (json.RawMessage, error) {
	body := map[string]any{
		"stream_options": map[string]bool{"include_usage": true},
	}
	if len(tools) > 0 {
		declared, err := declare(tools)
		if err != nil {
			return nil, err
		}
		body["tools"], body["tool_choice"] = declared, "auto"
	}
	for name, value := range m.config.DefaultParams {
		if string(value) == "null" {
			delete(body, name)
		} else {
			body[name] = value
		}
	}
	maps.Copy(body, map[string]any{"model": m.name(), "messages": sendable(conversation), "stream": true})
	return rawjson.Marshal(body)
}

// name is what the service calls the model.
func (m *model) name() string {
	if m.config.ModelName != "" {
		return m.config.ModelName
	}
	return m.config.ID
}

// declare lists tools as the API wants them. There is no "strict": services
// refuse strict tools with optional arguments (B70).
func declare(tools []core.Tool) ([]any, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	out := make([]any, len(tools))
	for i, t := range tools {
		schema, err := t.InputJSON()
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", t.Name, err)
		}
		out[i] = tool{"function", function{t.Name, t.Description, schema}}
	}
	return out, nil
}

// sendable is the conversation without what services refuse: arguments of a call
// that are not JSON. The model has been told, and what it wrote stays in the
// conversation.
func sendable(conversation []core.Message) []core.Message {
	out := slices.Clone(conversation)
	for i, m := range out {
		calls := slices.Clone(m.ToolCalls)
		for j, c := range calls {
			if !json.Valid([]byte(c.Function.Arguments)) {
				calls[j].Function.Arguments = "{}"
			}
		}
		out[i].ToolCalls = calls
	}
	return out
}

// readReply reads the answer to a request: an event stream, or one object from
// services that do not stream.
func readReply(res *http.Response) (*core.Reply, error) {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case media == "application/json":
		return readObject(res.Body)
	case media == "text/html":
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
		return nil, &failure{err: fmt.Errorf("the answer is a web page, not the API's; is baseUrl right? It begins %q", core.Clip(string(text), 200))}
	}
	return readStream(ssestream.NewDecoder(res))
}

// maxAnswer bounds an answer that comes in one piece, in bytes.
const maxAnswer = 32 << 20

func readObject(r io.Reader) (*core.Reply, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxAnswer))
	if err != nil {
		return nil, err
	}
	var a answer
	more, err := a.add(data)
	if err != nil {
		return nil, err
	}
	if !more {
		return nil, &failure{err: fmt.Errorf("the answer has no choices: %s", core.Clip(string(data), maxSaid))}
	}
	return a.reply(), nil
}

// readStream reads to the end of the stream. That it ended does not say that it
// is whole: a connection can be cut between any two events. The service says so,
// with a finish reason or [DONE].
func readStream(events ssestream.Decoder) (*core.Reply, error) {
	var a answer
	done := false
	for !done && events.Next() {
		data := strings.TrimSpace(string(events.Event().Data))
		if done = strings.HasPrefix(data, "[DONE]"); done || data == "" {
			continue
		}
		if _, err := a.add([]byte(data)); err != nil {
			return nil, err
		}
	}
	if err := events.Err(); err != nil && a.finish == "" {
		return nil, fmt.Errorf("the stream was cut off: %w", err)
	}
	if !done && a.finish == "" {
		return nil, &failure{err: errors.New("the stream ended before the answer did"), again: true}
	}
	return a.reply(), nil
}
