package mcpserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// heap is how many bytes are in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// local sends a request to a handler without a network between.
func local(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// TestAbandonedSessions is not parallel, because it counts the bytes and the
// goroutines of the process: sessions that nobody closes cost little, and end.
func TestAbandonedSessions(t *testing.T) {
	const sessions, most = 1000, 60 << 10
	s := newTestServer(t)
	s.clients.idle = time.Hour
	h := s.Handler()
	if w := local(h, "POST", "/mcp", legacyInitialize); w.Code != 200 { // what is made once is not counted
		t.Fatal(w.Code, w.Body)
	}
	bytes, goroutines := heap(), runtime.NumGoroutine()
	for range sessions {
		id := local(h, "POST", "/mcp", legacyInitialize).Header().Get(headerSession)
		local(h, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headerVersion, "2025-11-25", headerSession, id)
		local(h, "POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, headerVersion, "2025-11-25", headerSession, id)
	}
	cost := (heap() - bytes) / sessions
	t.Logf("%d bytes and %d goroutines per session", cost, (runtime.NumGoroutine()-goroutines)/sessions)
	if n := s.clients.count(); n != sessions+1 || cost > most {
		t.Errorf("%d sessions, each of %d bytes; at most %d", n, cost, most)
	}
	s.clients.mu.Lock()
	for _, c := range s.clients.byKey {
		c.timer.Reset(time.Millisecond) // an hour later
	}
	s.clients.mu.Unlock()
	eventually(t, "rid of its sessions", func() bool {
		left := 0
		for range s.agents[0].mcp.Sessions() {
			left++
		}
		return left == 0 && s.clients.count() == 0 && runtime.NumGoroutine() <= goroutines
	})
	// What is left are maps and goroutines that have grown once, for all to come.
	if left := heap() - bytes; left > sessions*most/10 {
		t.Errorf("%d bytes are left of the sessions", left)
	}
}

// TestSlowReader: a client that does not read its answer holds up nobody, and is
// given up.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	big := core.Image{MIMEType: "image/png", Data: make([]byte, 24<<20)} // more than the buffers of a connection hold
	huge := define("huge", func(context.Context, *core.Call, string) (*core.Result, error) {
		return &core.Result{Blocks: []core.Block{big}}, nil
	})
	s := newTestServer(t, tools{huge, echo()})
	s.writeLimit = 300 * time.Millisecond
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	defer s.Close()
	id := request{"POST", web.URL + "/mcp", legacyInitialize, nil}.do(t).header.Get(headerSession)
	session := []string{headerVersion, "2025-11-25", headerSession, id}

	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"jsonrpc":"2.0","id":"huge","method":"tools/call","params":{"name":"huge"}}`
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"Mcp-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", id, len(body), body)
	if _, err := conn.Read(make([]byte, 100)); err != nil { // the answer has begun, and nobody reads on
		t.Fatal(err)
	}
	call, headers := modernCall("echo", "others")
	for what, q := range map[string]request{
		"another client": {"POST", web.URL + "/mcp", call, headers},
		"its session":    {"POST", web.URL + "/mcp", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"others"}}}`, session},
	} {
		if got := q.do(t); !strings.Contains(got.body, "others") {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
	}
	idle := func() bool {
		s.work.mu.Lock()
		defer s.work.mu.Unlock()
		return s.work.n == 0
	}
	eventually(t, "rid of the slow reader", idle)
	if got, err := io.ReadAll(conn); err == nil && len(got) > len(big.Data) {
		t.Error("the whole answer was sent")
	}
}

// TestSoak: 64 callers, half of them in sessions, for two seconds, or for thirty
// where the end-to-end tests run: no error, and no more memory at the end than
// after a third of the time. It is not parallel, because it measures the process.
func TestSoak(t *testing.T) {
	length := 2 * time.Second
	if os.Getenv("ZEN_MCP_E2E") == "1" {
		length = 30 * time.Second
	}
	s, at := newHTTP(t, func(o *Options) {
		withTokens(o)
		o.Limits = Limits{Calls: 256, Timeout: time.Minute}
		o.Audit = io.Discard
		o.SessionTimeout, o.MaxSessions = time.Hour, 1000
	})
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var calls atomic.Int64
	var callers sync.WaitGroup
	for i := range 64 {
		q := soakRequest(t, at, i%2 == 0)
		callers.Go(func() {
			for ctx.Err() == nil {
				res, err := client.Do(q.make(t))
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != 200 || !strings.Contains(string(body), "hello") {
					t.Errorf("%d %s, %v", res.StatusCode, body, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	time.Sleep(length / 3)
	early, goroutines := heap(), runtime.NumGoroutine()
	callers.Wait()
	transport.CloseIdleConnections()
	late := heap()
	t.Logf("%d calls; %d KB after a third, %d KB at the end; %d goroutines", calls.Load(), early>>10, late>>10, goroutines)
	if late > early+early/4+(4<<20) {
		t.Errorf("memory grew from %d to %d bytes", early, late)
	}
	if s.clients.count() != 32+1 { // one for the credential without a session
		t.Errorf("%d clients", s.clients.count())
	}
}

// soakRequest is a call in a session of its own, or without one.
func soakRequest(t *testing.T, at string, inSession bool) request {
	t.Helper()
	if !inSession {
		call, headers := modernCall("echo", "hello")
		return request{"POST", at + "/mcp", call, append(headers, bearer("alice-secret")...)}
	}
	id := request{"POST", at + "/mcp", legacyInitialize, bearer("alice-secret")}.do(t).header.Get(headerSession)
	return request{"POST", at + "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`,
		append(bearer("alice-secret"), headerVersion, "2025-11-25", headerSession, id)}
}

// TestTwoInstancesBehindOneAddress: the revision without sessions needs no
// affinity, call by call.
func TestTwoInstancesBehindOneAddress(t *testing.T) {
	t.Parallel()
	var served [2]atomic.Int64
	var backends [2]*url.URL
	for i := range backends {
		counts := define("counts", func(context.Context, *core.Call, string) (*core.Result, error) {
			served[i].Add(1)
			return core.TextResult("done"), nil
		})
		web := httptest.NewServer(newTestServer(t, tools{counts}).Handler())
		t.Cleanup(web.Close)
		at, err := url.Parse(web.URL)
		if err != nil {
			t.Fatal(err)
		}
		backends[i] = at
	}
	var turn atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(backends[turn.Add(1)%2])
	}})
	t.Cleanup(proxy.Close)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: proxy.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: modern})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for range 10 {
		if got, isError := callText(t, session, "counts", ""); got != "done" || isError {
			t.Errorf("%q, %v", got, isError)
		}
		if _, err := session.ListTools(t.Context(), nil); err != nil {
			t.Error(err)
		}
		turn.Add(1) // so that both get calls and lists
	}
	if a, b := served[0].Load(), served[1].Load(); a+b != 10 || a == 0 || b == 0 {
		t.Errorf("the instances served %d and %d calls", a, b)
	}
}

// FuzzHTTP: whatever comes, the answer is one that HTTP has for it, and nobody
// without a token gets in.
func FuzzHTTP(f *testing.F) {
	call, _ := modernCall("echo", "hello")
	f.Add("POST", "/mcp", "localhost", "", "alice-secret", modern, "", "tools/call", "echo", call)
	f.Add("POST", "/mcp/b", "localhost", "", "bob-secret", "", "", "", "", legacyInitialize)
	f.Add("GET", "/mcp/a", "evil.example", "https://evil.example", "", "2025-11-25", "nope", "", "", "")
	f.Add("DELETE", "/mcp", "[::1]:80", "null", "x", "2099-01-01", "credential a alice", "", "=?base64?w6k=?=", "[]")
	f.Add("POST", "/mcp", "localhost", "", "alice-secret", modern, "", methodListen, "", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`)
	f.Add("POST", "/mcp", "localhost", "", "alice-secret", "2025-03-26", "", "", "", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{}]`)
	catalog, err := core.Discover(f.Context(), testTools())
	if err != nil {
		f.Fatal(err)
	}
	env := &core.Env{}
	env.Update(core.Config{}, catalog)
	options := Options{Version: "test", Env: env, Dir: f.TempDir(), MaxSessions: 10,
		Agents: []core.AgentDefinition{{ID: "a", Permissions: core.AllowAll()}, {ID: "b", Permissions: core.AllowAll()}}}
	withTokens(&options)
	s, err := New(options)
	if err != nil {
		f.Fatal(err)
	}
	h := s.Handler()
	f.Fuzz(func(t *testing.T, method, path, host, origin, secret, version, session, rpcMethod, name, body string) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, method, "http://localhost/", strings.NewReader(body))
		if err != nil {
			return
		}
		req.URL.Path, req.Host = path, host
		for key, value := range map[string]string{"Origin": origin, "Authorization": "Bearer " + secret, headerVersion: version,
			headerSession: session, headerMethod: rpcMethod, headerName: name, "Content-Type": "application/json", "Accept": "*/*"} {
			req.Header.Set(key, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code < 200 || w.Code > 599 {
			t.Errorf("status %d", w.Code)
		}
		known := secret == "alice-secret" || secret == "bob-secret"
		if strings.HasPrefix(path, "/mcp") && w.Code < 300 && !known && !isPreflight(req) {
			t.Errorf("%q came in: %d %s", secret, w.Code, w.Body)
		}
	})
}
