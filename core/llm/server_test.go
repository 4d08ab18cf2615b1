package llm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"zenmcp/core"
	"zenmcp/core/llm"
)

// A step is the answer to one request: text and calls, chunks as they are, or
// anything else that HTTP allows.
type step struct {
	Text string
	// Calls are of tools; args is JSON, or text that is taken as it is.
	Calls []struct {
		Name, ID string
		Args     json.RawMessage
	}
	Raw []json.RawMessage // chunks; a string is sent as its text

	Status int // 0 means 200
	Type   string
	Body   string
	Header map[string]string

	end    func(w io.Writer) error // instead of [DONE]
	pause  time.Duration           // before each chunk
	before time.Duration           // before the header
}

// cut breaks the connection off.
func cut(io.Writer) error { return io.ErrUnexpectedEOF }

// finish only ends the stream.
func finish(io.Writer) error { return nil }

// A service is an OpenAI-compatible service in memory: requests are answered
// with the steps of the script, the last one again and again.
type service struct {
	script []step

	mu       sync.Mutex
	requests []request
}

type request struct {
	url, authorization string
	at                 time.Time
	body               map[string]json.RawMessage
	text               string
}

func (r request) roles() string {
	var messages []core.Message
	if json.Unmarshal(r.body["messages"], &messages) != nil {
		return "?"
	}
	var roles []string
	for _, m := range messages {
		roles = append(roles, m.Role)
	}
	return strings.Join(roles, ",")
}

func (s *service) seen() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// RoundTrip makes the service an http.RoundTripper.
func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	defer req.Body.Close()
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r := request{url: req.URL.String(), authorization: req.Header.Get("Authorization"), at: time.Now(), text: string(text)}
	json.Unmarshal(text, &r.body)
	s.mu.Lock()
	index := min(len(s.requests), len(s.script)-1)
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	step := s.script[index]
	select {
	case <-time.After(step.before):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	res := &http.Response{StatusCode: max(step.Status, 200), Header: http.Header{}, Request: req, ProtoMajor: 1}
	if step.Status == -1 {
		return nil, errors.New("connection refused")
	}
	for name, value := range step.Header {
		res.Header.Set(name, value)
	}
	if step.Status != 0 {
		if step.Type != "" {
			res.Header.Set("Content-Type", step.Type)
		}
		res.Body = io.NopCloser(strings.NewReader(step.Body))
		return res, nil
	}
	res.Header.Set("Content-Type", "text/event-stream")
	reader, writer := io.Pipe()
	res.Body = reader
	go func() { writer.CloseWithError(step.stream(writer, req)) }()
	return res, nil
}

// stream writes the events until the request ends.
func (s step) stream(w *io.PipeWriter, req *http.Request) error {
	ctx := req.Context()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-ctx.Done():
			w.CloseWithError(ctx.Err())
		case <-stop:
		}
	}()
	for _, c := range s.chunks() {
		select {
		case <-time.After(s.pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", c); err != nil {
			return err
		}
	}
	if s.end != nil {
		return s.end(w)
	}
	_, err := io.WriteString(w, "data: [DONE]\n\n")
	return err
}

// chunks are the step as a service that keeps to the documentation sends it.
func (s step) chunks() [][]byte {
	var out [][]byte
	for _, raw := range s.Raw {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			raw = json.RawMessage(text)
		}
		out = append(out, raw)
	}
	if s.Raw != nil {
		return out
	}
	if s.Text != "" {
		out = append(out, object(`{"choices":[{"index":0,"delta":{"role":"assistant","content":%s},"finish_reason":null}]}`, s.Text))
	}
	finish := "stop"
	for i, c := range s.Calls {
		args := string(c.Args)
		if err := json.Unmarshal(c.Args, &args); err != nil {
			args = string(c.Args)
		}
		finish = "tool_calls"
		out = append(out, object(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%s,"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}]},"finish_reason":null}]}`,
			i, c.ID, c.Name, args))
	}
	return append(out,
		object(`{"choices":[{"index":0,"delta":{},"finish_reason":%s}]}`, finish),
		[]byte(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`))
}

// object fills JSON values into a text.
func object(format string, values ...any) []byte {
	encoded := make([]any, len(values))
	for i, v := range values {
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(v); err != nil {
			panic(err)
		}
		encoded[i] = strings.TrimSpace(b.String())
	}
	return fmt.Appendf(nil, format, encoded...)
}

const key = "sk-secret-key-12345"

// config has one model m at the endpoint e.
func config() core.Config {
	return core.Config{
		DefaultModel: "m",
		Endpoints:    []core.Endpoint{{ID: "e", BaseURL: "http://service.test/v1", APIKey: key}},
		Models:       []core.ModelConfig{{ID: "m", EndpointID: "e", ModelName: "api-m"}},
	}
}

// model is the model of config at a service.
func (s *service) model() core.Model {
	m, err := (&llm.Service{Transport: s}).Model(config(), core.AgentDefinition{})
	if err != nil {
		panic(err)
	}
	return m
}
