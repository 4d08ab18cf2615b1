package mcps

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// sdkServer is a server of go-sdk, so that somebody else's idea of the protocol
// is at the other end.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	object := json.RawMessage(`{"type":"object"}`)
	text := func(format string, a ...any) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, a...)}}}, nil
	}
	s.AddTool(&mcp.Tool{Name: "echo", Description: "Echo.", InputSchema: object, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text("%s", r.Params.Arguments)
		})
	s.AddTool(&mcp.Tool{Name: "write", InputSchema: object},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("written") })
	s.AddTool(&mcp.Tool{Name: "progress", InputSchema: object},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := range 50 {
				err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 50})
				if err != nil {
					return nil, err
				}
			}
			return text("done")
		})
	s.AddTool(&mcp.Tool{Name: "ask", InputSchema: object},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r.Params.InputResponses != nil {
				answer := r.Params.InputResponses["q"].(*mcp.ElicitResult)
				return text("%s %v", answer.Action, answer.Content["n"])
			}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{
				Mode: "form", Message: "How many?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}}}, nil
		})
	s.AddTool(&mcp.Tool{Name: "wait", InputSchema: object},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			select { // a session's end waits for its tools, in this release of the SDK
			case <-ctx.Done():
			case <-time.After(30 * time.Second):
			}
			return text("stopped")
		})
	s.AddTool(&mcp.Tool{Name: "größe", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text("%s %s", r.Extra.Header.Get("Mcp-Name"), r.Extra.Header.Get("Mcp-Param-Region"))
		})
	s.AddTool(&mcp.Tool{Name: "big", InputSchema: object},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text("%s", strings.Repeat("\tif err != nil { return \"x\" }\n", 6600))
		})
	s.AddResource(&mcp.Resource{URI: "mem://a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "mem://a", Text: "AAA"}}}, nil
	})
	return s
}

func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func streamable(s *mcp.Server, o *mcp.StreamableHTTPOptions) http.Handler {
	o.PropagateRequestCancellation = true
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o)
}

// Every kind of server over HTTP that there is, with everything that goes through.
func TestHTTPServers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		handler  http.Handler
		entry    args
		protocol string
	}{
		{"streams", streamable(sdkServer(), &mcp.StreamableHTTPOptions{}), args{"protocol": "legacy"}, "2025-11-25"},
		{"JSON", streamable(sdkServer(), &mcp.StreamableHTTPOptions{JSONResponse: true}), args{"protocol": "legacy"}, "2025-11-25"},
		{"modern", streamable(sdkServer(), &mcp.StreamableHTTPOptions{Stateless: true}), args{"protocol": "auto"}, "2026-07-28"},
		{"SSE", mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sdkServer() }, nil), args{"type": "sse"}, "2025-11-25"},
		{"SSE by fallback", mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sdkServer() }, nil), args{}, "2025-11-25"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			entry := args{"url": serve(t, tt.handler)}
			for k, v := range tt.entry {
				entry[k] = v
			}
			h := newHarness(t, map[string]any{"fix": entry})
			elicit := func(context.Context, json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(`{"action":"accept","content":{"n":7}}`), nil
			}
			res, err := run(t.Context(), h.scope, loadName, &core.Call{Arguments: []byte(`{"server":"fix","include_manifest":false}`), Elicit: elicit})
			if err != nil {
				t.Fatalf("%v\n%s", err, h.log)
			}
			if !strings.Contains(res.Text(), tt.protocol) || !strings.Contains(res.Text(), `"tools":7,"resources":1`) {
				t.Errorf("loaded %s", res.Text())
			}
			call := func(tool string, c core.Call) string {
				t.Helper()
				c.Arguments = callArguments(t, tool, json.RawMessage(`{"n":9007199254740993}`))
				res, err := run(t.Context(), h.scope, callName, &c)
				if err != nil {
					t.Fatalf("%s: %v\n%s", tool, err, h.log)
				}
				return string(res.Whole)
			}
			if got := call("echo", core.Call{}); !strings.Contains(got, "9007199254740993") {
				t.Errorf("echo %s", got)
			}
			if got := h.text(readName, args{"server": "fix", "uri": "mem://a"}); got != "AAA" {
				t.Errorf("read %s", got)
			}
			if tt.name != "JSON" { // where there is no way for them
				last := 0.0
				call("progress", core.Call{Progress: func(p core.Progress) {
					if p.Done != last+1 {
						t.Errorf("progress %v after %v", p.Done, last)
					}
					last = p.Done
				}})
				if last != 50 {
					t.Errorf("%v reports of progress, want 50", last)
				}
				if got := call("ask", core.Call{Elicit: elicit}); !strings.Contains(got, "accept 7") {
					t.Errorf("ask %s", got)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, err = run(ctx, h.scope, callName, &core.Call{Arguments: callArguments(t, "wait", nil)})
			if err == nil || time.Since(began) > 2*time.Second {
				t.Errorf("cancel: %v after %v", err, time.Since(began))
			}
			call("echo", core.Call{})
		})
	}
}

// Names and arguments in headers, which SEP-2243 wants of a modern client.
func TestModernHeaders(t *testing.T) {
	t.Parallel()
	var name, region string
	inner := streamable(sdkServer(), &mcp.StreamableHTTPOptions{Stateless: true})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			name, region = r.Header.Get("Mcp-Name"), r.Header.Get("Mcp-Param-Region")
			r.Header.Set("Mcp-Name", "größe") // which this release of the SDK does not decode
		}
		inner.ServeHTTP(w, r)
	}))
	h := newHarness(t, map[string]any{"fix": args{"url": url}})
	h.text(loadName, args{"server": "fix"})
	h.text(callName, args{"server": "fix", "tool": "größe", "arguments": args{"region": " eu"}})
	if name != "=?base64?Z3LDtsOfZQ==?=" || region != "=?base64?IGV1?=" {
		t.Errorf("name %q, region %q", name, region)
	}
}

// A server that is restarted has forgotten the session. What was asked in it has
// not been done, so it is asked again in a new one.
func TestHTTPRestart(t *testing.T) {
	t.Parallel()
	var handler atomic.Pointer[http.Handler]
	var writes, initializes atomic.Int32
	restart := func() {
		h := streamable(sdkServer(), &mcp.StreamableHTTPOptions{})
		handler.Store(&h)
	}
	restart()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"write"`) {
			writes.Add(1)
		}
		if strings.Contains(string(body), `"initialize"`) {
			initializes.Add(1)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		(*handler.Load()).ServeHTTP(w, r)
	}))
	h := newHarness(t, map[string]any{"fix": args{"url": url, "protocol": "legacy"}})
	h.text(loadName, args{"server": "fix"})
	for i := range 3 {
		restart()
		h.text(callName, args{"server": "fix", "tool": "write"})
		if n := initializes.Load(); n != int32(i+2) {
			t.Errorf("%d sessions after %d restarts", n, i+1)
		}
	}
	if n := writes.Load(); n != 6 { // one refused and one done, each time
		t.Errorf("%d calls, want 6", n)
	}
}

// A connection that breaks during a call leaves open whether it was done.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	var breaks atomic.Bool
	inner := streamable(sdkServer(), &mcp.StreamableHTTPOptions{})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && breaks.CompareAndSwap(true, false) {
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(w, r)
	}))
	h := newHarness(t, map[string]any{"fix": args{"url": url, "protocol": "legacy"}})
	h.text(loadName, args{"server": "fix"})
	breaks.Store(true)
	h.fails(callName, args{"server": "fix", "tool": "write"}, "may have done its work")
	breaks.Store(true)
	h.text(callName, args{"server": "fix", "tool": "echo"}) // which says that it only reads
}

func TestServerThatIsDown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	h := newHarness(t, map[string]any{"fix": args{"url": "http://" + address + "/mcp?key=hunter2"}})
	if text := h.fails(loadName, args{"server": "fix"}, "connection refused"); strings.Contains(text, "hunter2") {
		t.Errorf("the error shows the address: %s", text)
	}
}

// A scripted server: what it answers to the requests of one session.
type script func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool

// serveScript answers initialize and lists of one tool, and leaves the rest, and
// what the script takes over, to the script.
func serveScript(t testing.TB, s script) string {
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
				t.Error(err)
			}
		}
		if s(w, r, m.Method, m.ID) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch m.Method {
		case "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID)
		case "tools/list":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}}`, m.ID)
		case "":
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			if m.ID != nil {
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
				return
			}
			w.WriteHeader(http.StatusAccepted)
		}
	}))
}

// What servers do in the wild with the answer to a call.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	const result = `{"content":[],"x":1e400}`
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, id string)
		fails  []string
	}{
		{"JSON labelled as a stream", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
		}, nil},
		{"JSON over many lines, with a BOM", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, "\ufeff{\r\n\"jsonrpc\": \"2.0\",\n\"id\": %s,\n\"result\": {\n\"content\": [\n],\n\"x\": 1e400}\n}\n", id)
		}, nil},
		{"an array", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `[{"jsonrpc":"2.0","id":%s,"result":%s}]`, id, result)
		}, nil},
		{"a stream with comments, pings and lines", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			fmt.Fprintf(w, ": hello\n\nevent: ping\ndata: x\n\nid: 1\ndata:\n\ndata: not json\n\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":%s,\r\ndata:\"result\":%s}\r\n\r\n", id, result)
		}, nil},
		{"nothing", func(w http.ResponseWriter, id string) { w.Header().Set("Content-Type", "application/json") }, []string{"no answer"}},
		{"an empty stream", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": bye\n\n")
		}, []string{"stream ended before the answer"}},
		{"a page", func(w http.ResponseWriter, id string) { fmt.Fprint(w, "<html>Sign in</html>") }, []string{"not JSON-RPC", "<html>Sign in"}},
		{"somebody else's answer", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":99999,"result":{}}`)
		}, []string{"another request"}},
		{"a status", func(w http.ResponseWriter, id string) { http.Error(w, "overloaded", http.StatusServiceUnavailable) }, []string{"503", "overloaded"}},
		{"a status with an error", func(w http.ResponseWriter, id string) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad x"}}`, id)
		}, []string{"bad x", "-32602"}},
		{"a sign-in", func(w http.ResponseWriter, id string) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
		}, []string{`MCP server "fix"`, "401", "sign-in"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := serveScript(t, func(w http.ResponseWriter, _ *http.Request, method string, id json.RawMessage) bool {
				if method == "tools/call" {
					tt.answer(w, string(id))
				}
				return method == "tools/call"
			})
			h := newHarness(t, map[string]any{"fix": args{"type": "http", "url": url}})
			h.text(loadName, args{"server": "fix"})
			call := args{"server": "fix", "tool": "x"}
			if tt.fails != nil {
				h.fails(callName, call, tt.fails...)
			} else if got := h.text(callName, call); got != result {
				t.Errorf("got %s", got)
			}
		})
	}
}

// A stream that breaks off is taken up where it was, when the server asks to wait.
func TestStreamIsResumed(t *testing.T) {
	t.Parallel()
	var id string
	var resumed atomic.Int32
	url := serveScript(t, func(w http.ResponseWriter, r *http.Request, method string, call json.RawMessage) bool {
		switch {
		case method == "tools/call":
			id = string(call)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: e1\nretry: 20\ndata:\n\n")
			return true
		case r.Method == http.MethodGet && r.Header.Get("Last-Event-Id") == "e1":
			w.Header().Set("Content-Type", "text/event-stream")
			if resumed.Add(1) == 2 {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", id)
			}
			return true
		}
		return false
	})
	h := newHarness(t, map[string]any{"fix": args{"url": url, "protocol": "legacy"}})
	h.text(loadName, args{"server": "fix"})
	if got := h.text(callName, args{"server": "fix", "tool": "x"}); got != `{"content":[]}` || resumed.Load() != 2 {
		t.Errorf("got %s after %d requests", got, resumed.Load())
	}
}

// A server that never answers the GET keeps nobody waiting.
func TestSilentGet(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	url := serveScript(t, func(_ http.ResponseWriter, r *http.Request, method string, _ json.RawMessage) bool {
		if r.Method == http.MethodGet {
			<-end
		}
		return r.Method == http.MethodGet
	})
	t.Cleanup(func() { close(end) })
	h := newHarness(t, map[string]any{"fix": args{"url": url, "protocol": "legacy"}})
	began := time.Now()
	h.text(loadName, args{"server": "fix"})
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

// list_changed on the GET stream is followed.
func TestListChangedOverHTTP(t *testing.T) {
	t.Parallel()
	for _, o := range []*mcp.StreamableHTTPOptions{{}, {Stateless: true}} {
		server := sdkServer()
		h := newHarness(t, map[string]any{"fix": args{"url": serve(t, streamable(server, o))}})
		h.text(loadName, args{"server": "fix"})
		s := h.source.connections(h.scope).own.slots["fix"][0].current
		changes := func() int {
			s.lists.mu.Lock()
			defer s.lists.mu.Unlock()
			return s.lists.changes
		}
		before := changes()
		deadline := time.After(10 * time.Second)
		for i := 0; changes() == before; i++ { // the stream may open after the first change
			server.AddTool(&mcp.Tool{Name: "fresh", Title: fmt.Sprint(i), InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{}, nil
				})
			select {
			case <-time.After(50 * time.Millisecond):
			case <-deadline:
				t.Fatalf("nothing was heard (%+v)\n%s", o, h.log)
			}
		}
		if got := h.text(loadName, args{"server": "fix"}); !strings.Contains(got, `"fresh"`) {
			t.Errorf("the list is the old one: %s", got)
		}
	}
}

// C51, pains 70: headers go to the server and to nobody else; both attempts of
// an entry without type are reported.
func TestHeadersAndRedirects(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[string]
	thief := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("somebody else got a request: %v", r.Header) }))
	url := serveScript(t, func(w http.ResponseWriter, r *http.Request, method string, _ json.RawMessage) bool {
		key := r.Header.Get("X-Api-Key")
		got.Store(&key)
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, thief+"/mcp", http.StatusTemporaryRedirect)
		case "/moved":
			http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
		case "/get":
			http.Redirect(w, r, "/mcp", http.StatusFound)
		case "/none":
			http.NotFound(w, r)
		default:
			return false
		}
		return true
	})
	headers := args{"X-Api-Key": "k1"}
	h := newHarness(t, map[string]any{
		"away":  args{"url": url + "/away", "headers": headers},
		"moved": args{"url": url + "/moved", "headers": headers},
		"get":   args{"url": url + "/get", "headers": headers},
		"none":  args{"url": url + "/none", "headers": headers},
	})
	h.text(loadName, args{"server": "moved"})
	if *got.Load() != "k1" {
		t.Errorf("the header was %q", *got.Load())
	}
	h.fails(loadName, args{"server": "away"}, "another host", thief)
	h.fails(loadName, args{"server": "get"}, "put that address into the entry")
	h.fails(loadName, args{"server": "none"}, "streamable HTTP: HTTP status 404", "SSE: HTTP status 404")
	if strings.Contains(h.log.String(), "k1") {
		t.Error("the log has the key")
	}
}

func TestConcurrentHTTPCalls(t *testing.T) {
	t.Parallel()
	h := newHarness(t, map[string]any{"fix": args{"url": serve(t, streamable(sdkServer(), &mcp.StreamableHTTPOptions{}))}})
	h.text(loadName, args{"server": "fix"})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 5 {
				x := fmt.Sprintf(`{"x":"%d-%d"}`, i, j)
				res, err := run(t.Context(), h.scope, callName, &core.Call{Arguments: callArguments(t, "echo", json.RawMessage(x))})
				if err != nil {
					t.Error(err)
				} else if !strings.Contains(string(res.Whole), fmt.Sprintf("%d-%d", i, j)) {
					t.Errorf("%s got %s", x, res.Whole)
				}
			}
		})
	}
	wg.Wait()
}
