package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"zenmcp/core"
)

const plainMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// TestShortHTTP sends the same requests to the endpoint and to the SDK alone: the
// answers must be the same, whichever of them the short path takes.
func TestShortHTTP(t *testing.T) {
	t.Parallel()
	call := func(name, arguments, meta string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"1 é","method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, name, arguments, meta)
	}
	with := func(more string) string { return strings.TrimSuffix(plainMeta, "}") + "," + more + "}" }
	for name, tt := range map[string]struct {
		body    string
		headers []string
		short   bool
	}{
		"plain":              {call("echo", `{"text":"a < \u2028 \"b\" 12345678901234567890"}`, plainMeta), nil, true},
		"with a level":       {call("echo", `{"text":"a"}`, with(`"io.modelcontextprotocol/logLevel":"debug"`)), nil, true},
		"with a wrong level": {call("echo", `{"text":"a"}`, with(`"io.modelcontextprotocol/logLevel":"loud"`)), nil, false},
		"an error":           {call("echo", `{"tekst":"a"}`, plainMeta), nil, true},
		"no arguments":       {call("echo", `null`, plainMeta), nil, true},
		"nobody's tool":      {call("nobody", `{}`, plainMeta), []string{headerName, "nobody"}, false},
		"a denied tool":      {call("denied", `{}`, plainMeta), []string{headerName, "denied"}, false},
		"another name":       {call("echo", `{"text":"a"}`, plainMeta), []string{headerName, "other"}, false},
		"no name":            {call("echo", `{"text":"a"}`, plainMeta), []string{headerName, ""}, false},
		"another method":     {call("echo", `{"text":"a"}`, plainMeta), []string{headerMethod, "tools/list"}, false},
		"an encoded name":    {call("echo", `{"text":"a"}`, plainMeta), []string{headerName, "=?base64?ZWNobw==?="}, true},
		"a later version":    {call("echo", `{"text":"a"}`, plainMeta), []string{headerVersion, "2027-01-01"}, false},
		"another media type": {call("echo", `{"text":"a"}`, plainMeta), []string{"Content-Type", "text/plain"}, false},
		"only JSON":          {call("echo", `{"text":"a"}`, plainMeta), []string{"Accept", "application/json"}, false},
		"no version inside":  {call("echo", `{"text":"a"}`, `"_meta":{}`), nil, false},
		"no capabilities":    {call("echo", `{"text":"a"}`, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), nil, false},
		"no such client":     {call("echo", `{"text":"a"}`, strings.Replace(plainMeta, `"name":"t"`, `"name":5`, 1)), nil, false},
		"no capability":      {call("echo", `{"text":"a"}`, strings.Replace(plainMeta, `Capabilities":{}`, `Capabilities":{"sampling":5}`, 1)), nil, false},
		"can be asked":       {call("echo", `{"text":"a"}`, strings.Replace(plainMeta, `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1)), nil, false},
		"wants progress":     {call("echo", `{"text":"a"}`, with(`"progressToken":1`)), nil, false},
		"a state":            {call("echo", `{"text":"a"},"requestState":"x"`, plainMeta), nil, false},
		"a notification":     {strings.Replace(call("echo", `{}`, plainMeta), `"id":"1 é",`, "", 1), nil, false},
		"a batch":            {"[" + call("echo", `{}`, plainMeta) + "]", nil, false},
		"no JSON":            {"{", nil, false},
		"nothing":            {"", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(newTestServer(t).agents[0])
			send := func(h http.Handler) (int, string) {
				t.Helper()
				r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(tt.body))
				headers := append([]string{"Content-Type", "application/json; charset=utf-8", "Accept", "application/json, text/event-stream",
					headerVersion, modern, headerMethod, methodCall, headerName, "echo"}, tt.headers...)
				for i := 0; i < len(headers); i += 2 {
					r.Header.Set(headers[i], headers[i+1])
				}
				decodeName(r.Header) // which the SDK cannot
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				body := w.Body.String()
				if _, data, ok := strings.Cut(body, "data: "); ok {
					body = data
				}
				return w.Code, strings.TrimSpace(body)
			}
			wantCode, want := send(e.sessionless)
			code, got := send(e)
			if code != wantCode || !sameJSON(got, want) {
				t.Errorf("got %d %s\nthe SDK says %d %s", code, got, wantCode, want)
			}
			took := false
			send(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { took, _ = e.serveShort(w, r) }))
			if took != tt.short {
				t.Errorf("the short path took it: %v", took)
			}
		})
	}
}

// A shortSession is a session of an endpoint, to which requests can be sent on both
// ways.
type shortSession struct {
	e  *endpoint
	id string
}

func newShortSession(t *testing.T, capabilities string, of ...core.Source) *shortSession {
	t.Helper()
	s := &shortSession{e: newEndpoint(newTestServer(t, of...).agents[0])}
	w := s.send(t, s.e, strings.Replace(initialize, `"capabilities":{}`, `"capabilities":`+capabilities, 1))
	if s.id = w.Header().Get(headerSession); w.Code != 200 || s.id == "" {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	s.send(t, s.e, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

func (s *shortSession) send(t *testing.T, to http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(body))
	headers = append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", headerSession, s.id}, headers...)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	return w
}

// TestShortSessions is TestShortHTTP for the revisions with sessions.
func TestShortSessions(t *testing.T) {
	t.Parallel()
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + params + `}`
	}
	plain := call(`{"name":"echo","arguments":{"text":"a"}}`)
	for name, tt := range map[string]struct {
		body    string
		headers []string
		short   bool
	}{
		"plain":            {plain, nil, true},
		"with its version": {plain, []string{headerVersion, "2025-11-25"}, true},
		"an error":         {call(`{"name":"fails","arguments":{"text":""}}`), nil, true},
		"foreign":          {call(`{"name":"foreign","arguments":{"text":"{\"content\":[],\"resultType\":\"complete\",\"n\":12345678901234567890}"}}`), nil, true},
		"another version":  {plain, []string{headerVersion, "2024-01-01"}, false},
		"an older version": {plain, []string{headerVersion, "2025-03-26"}, false},
		"nobody's tool":    {call(`{"name":"nobody"}`), nil, false},
		"a denied tool":    {call(`{"name":"denied"}`), nil, false},
		"wants progress":   {call(`{"name":"echo","arguments":{"text":"a"},"_meta":{"progressToken":1}}`), nil, false},
		"only JSON":        {plain, []string{"Accept", "application/json"}, false},
		"a list":           {`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, nil, false},
		"a cancel of none": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`, nil, false},
		"a broken cancel":  {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, nil, false},
		"a batch":          {"[" + plain + "]", nil, false},
		"no JSON":          {"{", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShortSession(t, `{}`)
			answer := func(to http.Handler) (int, string) {
				w := s.send(t, to, tt.body, tt.headers...)
				body := w.Body.String()
				if i := strings.LastIndex(body, "data: {"); i >= 0 {
					body = body[i+6:]
				}
				return w.Code, strings.TrimSpace(body)
			}
			wantCode, want := answer(s.e.sessions)
			code, got := answer(s.e)
			if code != wantCode || !sameJSON(got, want) {
				t.Errorf("got %d %s\nthe SDK says %d %s", code, got, wantCode, want)
			}
			c := s.e.agent.server.clients.session(s.id, "", s.e.agent)
			took := false
			answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { took, _ = s.e.serveShortSession(w, r, c) }))
			if took != tt.short {
				t.Errorf("the short path took it: %v", took)
			}
		})
	}
	t.Run("can be asked", func(t *testing.T) {
		t.Parallel()
		s := newShortSession(t, `{"elicitation":{}}`)
		c := s.e.agent.server.clients.session(s.id, "", s.e.agent)
		s.send(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if took, _ := s.e.serveShortSession(w, r, c); took {
				t.Error("the short path cannot ask")
			}
		}), plain)
	})
}

// TestCancelShortSession: a call ends when its client says so, and not when the
// client is only disconnected; an id in use is left to the SDK.
func TestCancelShortSession(t *testing.T) {
	t.Parallel()
	begun, leave := make(chan struct{}), make(chan struct{})
	wait := define("wait", func(ctx context.Context, _ *core.Call, _ string) (*core.Result, error) {
		begun <- struct{}{}
		select {
		case <-leave:
			return core.TextResult("went on"), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	s := newShortSession(t, `{}`, tools{wait})
	body := `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"wait","arguments":{"text":""}}}`
	ended := make(chan *httptest.ResponseRecorder)
	go func() { ended <- s.send(t, s.e, body) }()
	<-begun
	c := s.e.agent.server.clients.session(s.id, "", s.e.agent)
	s.send(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if took, _ := s.e.serveShortSession(w, r, c); took {
			t.Error("took a call whose id is in use")
		}
	}), body)
	if w := s.send(t, s.e, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`); w.Code != http.StatusAccepted {
		t.Errorf("cancel: %d %s", w.Code, w.Body)
	}
	if w := <-ended; w.Code != 200 || !strings.Contains(w.Body.String(), errCancelled.Error()) {
		t.Errorf("cancelled: %d %s", w.Code, w.Body)
	}
	ctx, disconnect := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", "/mcp", strings.NewReader(body))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, headerSession: {s.id}}
	w := httptest.NewRecorder()
	go func() { s.e.ServeHTTP(w, r); ended <- w }()
	<-begun
	disconnect()
	close(leave)
	if w := <-ended; !strings.Contains(w.Body.String(), "went on") {
		t.Errorf("disconnected: %d %s", w.Code, w.Body)
	}
}

// sameJSON compares texts, as JSON where they are that.
func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

// A recorder is a recorder that may be looked at before the response has ended.
type recorder struct {
	mu sync.Mutex
	w  *httptest.ResponseRecorder
}

func (r *recorder) Header() http.Header { return r.w.Header() }

func (r *recorder) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.w.Write(b)
}

func (r *recorder) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w.Flush()
}

// sent is what has left, and with which media type.
func (r *recorder) sent() (media, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.w.Flushed {
		return "", r.w.Body.String()
	}
	return r.w.Result().Header.Get("Content-Type"), r.w.Body.String()
}

// TestSlowShortHTTP: an answer that takes long comes as a stream which shows soon
// that somebody is working on it, and one that nobody waits for ends its call.
func TestSlowShortHTTP(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cancelled := false
		slow := define("slow", func(ctx context.Context, _ *core.Call, _ string) (*core.Result, error) {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				cancelled = true
				return nil, ctx.Err()
			}
			return core.TextResult("at last"), nil
		})
		handler := newTestServer(t, tools{slow}).Handler()
		serve := func(ctx context.Context) *recorder {
			body, headers := modernCall("slow", "")
			r := httptest.NewRequestWithContext(ctx, "POST", "/mcp", strings.NewReader(body))
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := &recorder{w: httptest.NewRecorder()}
			go handler.ServeHTTP(w, r)
			return w
		}
		w := serve(t.Context())
		time.Sleep(soon + time.Second)
		synctest.Wait()
		if media, body := w.sent(); media != eventStream || body != "" {
			t.Errorf("after %v: %q, %q", soon, media, body)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, body := w.sent(); strings.Count(body, ": still here\n\n") != 3 || !strings.Contains(body, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\"") {
			t.Errorf("%q", body)
		}
		ctx, leave := context.WithCancel(t.Context())
		serve(ctx)
		time.Sleep(time.Second)
		leave()
		synctest.Wait()
		if !cancelled {
			t.Error("the call goes on")
		}
	})
}
