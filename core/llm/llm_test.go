package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core"
	"zenmcp/core/llm"
)

func ask(t *testing.T, s *service) (*core.Reply, error) {
	t.Helper()
	return s.model().Reply(t.Context(), []core.Message{core.TextMessage("user", "x")}, nil)
}

// TestVendors replays streams as services really send them.
func TestVendors(t *testing.T) {
	t.Parallel()
	const end = `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	calls := func(deltas ...string) []string {
		var out []string
		for _, d := range deltas {
			out = append(out, `{"choices":[{"delta":{"tool_calls":`+d+`}}]}`)
		}
		return append(out, `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`)
	}
	for name, c := range map[string]struct {
		chunks []string
		end    func(io.Writer) error
		text   string
		calls  []string // name(arguments)
	}{
		"null content and usage last": {chunks: []string{
			`{"choices":[{"delta":{"role":"assistant","content":null}}],"usage":null}`, `{"choices":[{"delta":{"content":"a"}}]}`, end,
			`{"choices":null,"usage":{"prompt_tokens":1,"completion_tokens":2}}`}, text: "a"},
		"content in parts":            {chunks: []string{`{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, end}, text: "ab"},
		"no finish reason":            {chunks: []string{`{"choices":[{"delta":{"content":"a"}}]}`}, text: "a"},
		"no [DONE]":                   {chunks: []string{`{"choices":[{"delta":{"content":"a"}}]}`, end}, end: finish, text: "a"},
		"cut after the finish":        {chunks: []string{`{"choices":[{"delta":{"content":"a"}}]}`, end}, end: cut, text: "a"},
		"a refusal":                   {chunks: []string{`{"choices":[{"delta":{"refusal":"no"}}]}`, end}, text: "no"},
		"message instead of delta":    {chunks: []string{`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`}, text: "a"},
		"another choice":              {chunks: []string{`{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}`, end}, text: "a"},
		"an empty error":              {chunks: []string{`{"error":null,"choices":[{"delta":{"content":"a"}}]}`, `{"error":{},"choices":[]}`, end}, text: "a"},
		"several calls in one chunk":  {chunks: calls(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]`), calls: []string{"f({})", "g({})"}},
		"no index":                    {chunks: calls(`[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]`, `[{"function":{"arguments":":1}"}}]`, `[{"id":"b","function":{"name":"f","arguments":"{}"}}]`), calls: []string{`f({"x":1})`, "f({})"}},
		"no index and no id":          {chunks: calls(`[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{\"x\":1}"}}]`), calls: []string{"f({})", `f({"x":1})`}},
		"the same index for all":      {chunks: calls(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`, `[{"index":0,"id":"b","function":{"name":"g","arguments":"{"}}]`, `[{"index":0,"function":{"arguments":"}"}}]`), calls: []string{"f({})", "g({})"}},
		"name and id repeated":        {chunks: calls(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]`, `[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]`), calls: []string{`f({"x":1})`}},
		"another id for each piece":   {chunks: calls(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]`, `[{"index":0,"id":"b","function":{"arguments":":1}"}}]`), calls: []string{`f({"x":1})`}},
		"arguments repeated whole":    {chunks: calls(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]`, `[{"index":0,"function":{"arguments":":1}"}}]`, `[{"index":0,"function":{"arguments":"{\"x\":1}"}}]`), calls: []string{`f({"x":1})`}},
		"arguments grow":              {chunks: calls(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]`, `[{"index":0,"function":{"arguments":"{\"x\":1}"}}]`), calls: []string{`f({"x":1})`}},
		"an empty object first":       {chunks: calls(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`, `[{"index":0,"function":{"arguments":"{\"x\":1}"}}]`), calls: []string{`f({"x":1})`}},
		"an object inside arguments":  {chunks: calls(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`, `[{"index":0,"function":{"arguments":"{}"}}]`, `[{"index":0,"function":{"arguments":"}"}}]`), calls: []string{`f({"x":{}})`}},
		"arguments as an object":      {chunks: calls(`[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]`), calls: []string{`f({"x":1})`}},
		"null arguments and a number": {chunks: calls(`[{"index":0,"id":7,"type":null,"function":{"name":"f","arguments":null}}]`), calls: []string{"f()"}},
		"a gap in the indexes":        {chunks: calls(`[{"index":3,"id":"a","function":{"name":"f","arguments":"{}"}}]`), calls: []string{"f({})"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &service{script: []step{{end: c.end}}}
			for _, chunk := range c.chunks {
				s.script[0].Raw = append(s.script[0].Raw, json.RawMessage(chunk))
			}
			reply, err := ask(t, s)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			ids := map[string]bool{}
			for _, call := range reply.Message.ToolCalls {
				got = append(got, call.Function.Name+"("+call.Function.Arguments+")")
				ids[call.ID] = true
				if call.Type != "function" || call.ID == "" {
					t.Errorf("call %+v", call)
				}
			}
			if reply.Message.Text() != c.text || !slices.Equal(got, c.calls) || len(ids) != len(c.calls) || len(s.seen()) != 1 {
				t.Errorf("got %q and %q after %d requests, want %q and %q", reply.Message.Text(), got, len(s.seen()), c.text, c.calls)
			}
		})
	}
}

func TestUsageAndExtras(t *testing.T) {
	t.Parallel()
	s := &service{script: []step{{Raw: []json.RawMessage{
		json.RawMessage(`{"choices":[{"delta":{"reasoning_content":"hm","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{bad"},"extra_content":{"google":{"sig":"s"}}}]},"finish_reason":"tool_calls"}]}`),
		json.RawMessage(`{"usage":{"prompt_tokens":3,"completion_tokens":4}}`),
	}}}}
	reply, err := ask(t, s)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Usage != (core.Usage{Prompt: 3, Completion: 4, Total: 7}) {
		t.Errorf("usage %+v", reply.Usage)
	}
	result := core.TextMessage("tool", "r")
	result.ToolCallID = "a"
	if _, err := s.model().Reply(t.Context(), []core.Message{core.TextMessage("user", "x"), reply.Message, result}, nil); err != nil {
		t.Fatal(err)
	}
	const want = `[{"role":"user","content":"x"},{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"sig":"s"}}}]},{"role":"tool","content":"r","tool_call_id":"a"}]`
	if got := string(s.seen()[1].body["messages"]); got != want {
		t.Errorf("sent back\n%s, want\n%s", got, want)
	}
	if got := reply.Message.ToolCalls[0].Function.Arguments; got != "{bad" {
		t.Errorf("the conversation was changed: %q", got)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	s := &service{script: []step{{Text: "a"}}}
	c := config()
	c.Models[0].DefaultParams = map[string]json.RawMessage{
		"temperature": json.RawMessage("0.5"), "stream_options": json.RawMessage("null"), "model": json.RawMessage(`"other"`), "stream": json.RawMessage("false"),
	}
	m, err := (&llm.Service{Transport: s}).Model(c, core.AgentDefinition{})
	if err != nil {
		t.Fatal(err)
	}
	tool := core.Tool{Name: "t", Description: "d", Input: &jsonschema.Schema{Type: "object"}}
	for _, tools := range [][]core.Tool{nil, {tool}} {
		if _, err := m.Reply(t.Context(), []core.Message{core.TextMessage("user", "<&>")}, tools); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{
		`{"messages":[{"role":"user","content":"<&>"}],"model":"api-m","stream":true,"temperature":0.5}`,
		`{"messages":[{"role":"user","content":"<&>"}],"model":"api-m","stream":true,"temperature":0.5,"tool_choice":"auto","tools":[{"type":"function","function":{"name":"t","description":"d","parameters":{"type":"object","properties":{}}}}]}`,
	} {
		if got := s.seen()[i].text; strings.TrimSpace(got) != want {
			t.Errorf("sent\n%s, want\n%s", got, want)
		}
	}
}

// TestRetries runs in virtual time: what is tried again, and when (case C75).
func TestRetries(t *testing.T) {
	t.Parallel()
	text := json.RawMessage(`{"choices":[{"delta":{"content":"par"}}]}`)
	for name, c := range map[string]struct {
		script []step
		want   string // answer, or a part of the error after "error: "
		sent   int
		least  time.Duration // before the end
		most   time.Duration
	}{
		"429, 500, a cut, then well": {[]step{{Status: 429, Header: map[string]string{"Retry-After": "7"}}, {Status: 500}, {Raw: []json.RawMessage{text}, end: cut}, {Text: "well"}}, "well", 4, 10 * time.Second, 14 * time.Second},
		"a quiet cut":                {[]step{{Raw: []json.RawMessage{text}, end: finish}, {Text: "well"}}, "well", 2, 0, time.Second},
		"no connection":              {[]step{{Status: -1}}, `error: endpoint "e": connection refused (after 5 attempts)`, 5, 7 * time.Second, 10 * time.Second},
		"a wrong key":                {[]step{{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + key + `","code":"invalid_api_key"}}`}}, `error: endpoint "e": 401 Unauthorized: Incorrect API key provided: *** (invalid_api_key)`, 1, 0, 0},
		"a bad request":              {[]step{{Status: 400, Body: "oh\nno"}}, `error: endpoint "e": 400 Bad Request: oh no`, 1, 0, 0},
		"forbidden":                  {[]step{{Status: 403, Body: `{"message":"no"}`}}, "error: endpoint \"e\": 403 Forbidden: no", 1, 0, 0},
		"no money":                   {[]step{{Status: 429, Body: `{"error":{"message":"pay","code":"insufficient_quota"}}`}}, "error: endpoint \"e\": 429 Too Many Requests: pay (insufficient_quota)", 1, 0, 0},
		"too long to wait":           {[]step{{Status: 429, Header: map[string]string{"Retry-After": "3600"}}}, "(it asks to wait 1h0m0s)", 1, 0, 0},
		"an error that passes":       {[]step{{Raw: []json.RawMessage{text, json.RawMessage(`{"error":{"code":502,"message":"upstream"}}`)}}, {Text: "well"}}, "well", 2, 0, time.Second},
		"an error that stays":        {[]step{{Raw: []json.RawMessage{json.RawMessage(`{"error":{"code":"content_policy","message":"no"}}`)}}}, "error: endpoint \"e\": the service reports an error: no (content_policy)", 1, 0, 0},
		"a web page":                 {[]step{{Status: 200, Type: "text/html; charset=utf-8", Body: "<html>login"}}, "is baseUrl right?", 1, 0, 0},
		"one object":                 {[]step{{Status: 200, Type: "application/json", Body: `{"choices":[{"message":{"content":"well"},"finish_reason":"stop"}]}`}}, "well", 1, 0, 0},
		"an error with 200":          {[]step{{Status: 200, Type: "application/json", Body: `{"error":"nope"}`}}, "reports an error: nope", 1, 0, 0},
		"silence, then well":         {[]step{{before: time.Hour}, {Text: "well"}}, "well", 2, 5 * time.Minute, 5*time.Minute + time.Second},
		"silence in the middle":      {[]step{{Raw: []json.RawMessage{text, text}, pause: time.Hour}}, "error: endpoint \"e\": nothing was received for 5m0s (after 2 attempts)", 2, 10 * time.Minute, 10*time.Minute + time.Second},
		"slow, but alive":            {[]step{{Raw: []json.RawMessage{text, text, text, text}, pause: 4 * time.Minute}}, "parparparpar", 1, 16 * time.Minute, 16 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{script: c.script}
				start := time.Now()
				reply, err := ask(t, s)
				took := time.Since(start)
				got := fmt.Sprintf("error: %v", err)
				if err == nil {
					got = reply.Message.Text()
				}
				if err == nil && got != c.want || !strings.Contains(got, c.want) || strings.Contains(got, key) {
					t.Errorf("got %q, want %q", got, c.want)
				}
				if len(s.seen()) != c.sent || took < c.least || took > c.most {
					t.Errorf("%d requests in %v, want %d in %v to %v", len(s.seen()), took, c.sent, c.least, c.most)
				}
			})
		})
	}
}

// TestCancel ends a request in each of its states within 100 ms.
func TestCancel(t *testing.T) {
	t.Parallel()
	text := json.RawMessage(`{"choices":[{"delta":{"content":"par"}}]}`)
	for name, s := range map[string]step{
		"before the header":    {before: time.Hour},
		"in the stream":        {Raw: []json.RawMessage{text, text}, pause: 40 * time.Second},
		"between two attempts": {Status: 503, Header: map[string]string{"Retry-After": "59"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				why := errors.New("enough")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(50*time.Second, func() { cancel(why) })
				start := time.Now()
				_, err := (&service{script: []step{s}}).model().Reply(ctx, nil, nil)
				if took := time.Since(start) - 50*time.Second; !errors.Is(err, why) || took > 100*time.Millisecond {
					t.Errorf("%v, %v after the end", err, took)
				}
			})
		})
	}
}

// TestResolve checks what is said of models that cannot be used.
func TestResolve(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*core.Config, *core.AgentDefinition)
		want   string
	}{
		{func(c *core.Config, _ *core.AgentDefinition) { c.DefaultModel = "" }, "no modelId and config.json no defaultModel"},
		{func(_ *core.Config, a *core.AgentDefinition) { a.ModelID = new("n") }, `no model with the id "n"`},
		{func(_ *core.Config, a *core.AgentDefinition) { a.ModelID = new("") }, `no model with the id ""`},
		{func(c *core.Config, _ *core.AgentDefinition) { c.Models[0].EndpointID = "f" }, `model "m": config.json has no endpoint with the id "f"`},
		{func(c *core.Config, _ *core.AgentDefinition) { c.Endpoints[0].APIKey = " " }, `endpoint "e" has no apiKey`},
		{func(c *core.Config, _ *core.AgentDefinition) { c.Endpoints[0].APIKey = "${NO_KEY}" }, `endpoint "e": apiKey: the environment variable NO_KEY is not set`},
		{func(c *core.Config, _ *core.AgentDefinition) { c.Endpoints[0].BaseURL = "ftp://x:secret@h" }, `endpoint "e": baseUrl is not an http or https address`},
		{func(c *core.Config, _ *core.AgentDefinition) { c.Endpoints[0].BaseURL = "host/v1" }, "baseUrl is not"},
		{func(c *core.Config, _ *core.AgentDefinition) { c.Endpoints[0].APIKey = "${KEY}" }, ""},
	} {
		conf, agent := config(), core.AgentDefinition{}
		c.change(&conf, &agent)
		s := &service{script: []step{{Text: "a"}}}
		lookup := func(name string) (string, bool) { return "from-env", name == "KEY" }
		m, err := (&llm.Service{Transport: s, LookupEnv: lookup}).Model(conf, agent)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Reply(t.Context(), nil, nil); err != nil || s.seen()[0].authorization != "Bearer from-env" {
			t.Errorf("%v, %+v", err, s.seen())
		}
	}
}

// TestCheck asks a service for its models, whatever it answers.
func TestCheck(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]struct {
		listed  bool
		refused bool
		words   string // of the error; "" is none
	}{
		"/ok":      {listed: true},
		"/none":    {},
		"/refuses": {refused: true, words: `the key is refused: endpoint "e": 401 Unauthorized: no such key ***`},
		"/fails":   {words: `endpoint "e": 500 Internal Server Error: broken`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/ok/models":
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"data": []}`)
			case "/refuses/models":
				http.Error(w, "no such key "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), http.StatusUnauthorized)
			case "/fails/models":
				http.Error(w, "broken", http.StatusInternalServerError)
			default:
				http.NotFound(w, r)
			}
		}))
		defer server.Close()
		c := config()
		c.Endpoints[0].APIKey, c.Endpoints[0].BaseURL = "a-secret-key", server.URL+path
		listed, err := new(llm.Service).Check(t.Context(), c, "e")
		if listed != want.listed || errors.Is(err, llm.ErrRefused) != want.refused || err == nil != (want.words == "") || err != nil && err.Error() != want.words {
			t.Errorf("%s: %v, %v", path, listed, err)
		}
	}
	c := config()
	c.Endpoints[0].APIKey = ""
	if err := new(llm.Service).Usable(c, "e"); !errors.Is(err, llm.ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
}

// TestRealConnection talks to a server over TCP, and checks that the end of the
// context closes the connection.
func TestRealConnection(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	c := config()
	c.Endpoints[0].BaseURL = server.URL
	m, err := (&llm.Service{}).Model(c, core.AgentDefinition{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := m.Reply(ctx, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	<-gone
}
