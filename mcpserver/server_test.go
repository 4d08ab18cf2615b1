package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
	"zenmcp/core/wire"
)

// tools is a source of the tools that a test needs.
type tools []core.Definition

func (s tools) Discover(context.Context) (core.Offer, error) { return s, nil }

func (s tools) Capabilities() []core.Capability {
	var all []core.Capability
	for _, d := range s {
		all = append(all, core.Capability{Kind: core.KindTool, Name: d.Name})
	}
	return all
}

func (s tools) Instantiate(scope *core.Scope, permitted []core.Capability) ([]core.Tool, error) {
	var out []core.Tool
	for _, c := range permitted {
		for _, d := range s {
			if d.Name == c.Name {
				out = append(out, d.Bind(scope))
			}
		}
	}
	return out, nil
}

type textInput struct {
	Text string `json:"text,omitempty"`
}

// define makes a tool of the test's.
func define(name string, run func(context.Context, *core.Call, string) (*core.Result, error)) core.Definition {
	return core.Define(core.Tool{Name: name, Description: "A tool of a test.", Hints: core.Hints{ReadOnly: true}},
		func(ctx context.Context, call *core.Call, in textInput) (*core.Result, error) {
			return run(ctx, call, in.Text)
		})
}

func echo() core.Definition {
	return define("echo", func(_ context.Context, _ *core.Call, text string) (*core.Result, error) {
		return core.TextResult(text), nil
	})
}

// testTools are tools that behave badly in the ways that tools do.
func testTools() tools {
	return tools{
		echo(),
		define("length", func(_ context.Context, _ *core.Call, text string) (*core.Result, error) {
			return core.TextResult(fmt.Sprint(len(text))), nil
		}),
		define("boom", func(context.Context, *core.Call, string) (*core.Result, error) { panic("boom") }),
		define("fails", func(context.Context, *core.Call, string) (*core.Result, error) {
			return nil, errors.New("no such thing; try another")
		}),
		define("counts", func(_ context.Context, call *core.Call, _ string) (*core.Result, error) {
			for _, n := range []float64{1, 2, 2, 1, 3} {
				call.Report(core.Progress{Done: n})
			}
			return core.TextResult("counted"), nil
		}),
		define("asks", func(ctx context.Context, call *core.Call, text string) (*core.Result, error) {
			if call.Elicit == nil {
				return nil, errors.New("nobody can be asked")
			}
			var answers []string
			for _, q := range strings.Fields(text) {
				a, err := call.Elicit(ctx, json.RawMessage(fmt.Sprintf(`{"message":%q,"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`, q)))
				if err != nil {
					return nil, err
				}
				answers = append(answers, string(a))
			}
			return core.TextResult(strings.Join(answers, " ")), nil
		}),
		define("foreign", func(_ context.Context, _ *core.Call, text string) (*core.Result, error) {
			return &core.Result{Whole: json.RawMessage(text)}, nil
		}),
		define("denied", func(context.Context, *core.Call, string) (*core.Result, error) {
			return core.TextResult("ran"), nil
		}),
	}
}

func newTestServer(t *testing.T, sources ...core.Source) *Server {
	t.Helper()
	if sources == nil {
		sources = []core.Source{testTools()}
	}
	catalog, err := core.Discover(t.Context(), sources...)
	if err != nil {
		t.Fatal(err)
	}
	env := &core.Env{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	env.Update(core.Config{}, catalog)
	permissions := core.AllowAll()
	permissions[core.KindTool] = core.Deny("denied")
	s, err := New(Options{Version: "test", Env: env, Dir: t.TempDir(),
		Agents: []core.AgentDefinition{{ID: "default", Permissions: permissions}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A way is one combination of transport and revision of the protocol.
type way struct {
	name, version string
	http          bool
}

func ways() []way {
	var all []way
	for _, v := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", modern} {
		all = append(all, way{"stdio " + v, v, false}, way{"http " + v, v, true})
	}
	return all
}

// connect connects a client of the SDK in the given way.
func (w way) connect(t *testing.T, s *Server, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	return w.dial(t, s, mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options))
}

// dial is connect for a client that is there already.
func (w way) dial(t *testing.T, s *Server, client *mcp.Client) *mcp.ClientSession {
	t.Helper()
	var transport mcp.Transport
	if w.http {
		web := httptest.NewServer(s.Handler())
		t.Cleanup(web.Close)
		transport = &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"}
	} else {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- s.ServeStdio(ctx, &wire.Transport{In: in, Out: out}) }()
		t.Cleanup(func() { cancel(); <-served })
		transport = &wire.Transport{In: fromServer, Out: toServer, Peer: true}
	}
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: w.version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// everyWay runs a test in every way, each with a server of its own.
func everyWay(t *testing.T, options *mcp.ClientOptions, f func(t *testing.T, session *mcp.ClientSession)) {
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			f(t, w.connect(t, newTestServer(t), options))
		})
	}
}

func callText(t *testing.T, session *mcp.ClientSession, name, text string) (string, bool) {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"text": text}})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(res.Content) != 1 {
		t.Fatalf("%s: %d blocks", name, len(res.Content))
	}
	return res.Content[0].(*mcp.TextContent).Text, res.IsError
}

func TestListIsInOrderOfPublication(t *testing.T) {
	t.Parallel()
	everyWay(t, nil, func(t *testing.T, session *mcp.ClientSession) {
		res, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range res.Tools {
			names = append(names, tool.Name)
		}
		if got, want := strings.Join(names, " "), "echo length boom fails counts asks foreign"; got != want {
			t.Errorf("tools = %s; want %s", got, want)
		}
		if res.CacheScope != "private" {
			t.Errorf("cacheScope = %q; a filtered list is nobody else's", res.CacheScope)
		}
	})
}

func TestCalls(t *testing.T) {
	t.Parallel()
	everyWay(t, nil, func(t *testing.T, session *mcp.ClientSession) {
		odd := "<a> & \u2028 \"q\" \\ 日本 \x01"
		if got, isError := callText(t, session, "echo", odd); got != odd || isError {
			t.Errorf("echo = %q, %v", got, isError)
		}
		if got, isError := callText(t, session, "fails", ""); got != "no such thing; try another" || !isError {
			t.Errorf("fails = %q, %v", got, isError)
		}
		if got, isError := callText(t, session, "boom", ""); !strings.Contains(got, "internal error in boom") || !isError {
			t.Errorf("boom = %q, %v", got, isError)
		}
		if got, _ := callText(t, session, "echo", "still here"); got != "still here" {
			t.Errorf("after a panic echo = %q", got)
		}
	})
}

// TestDeniedIsUnknown: what is denied answers as what nobody has.
func TestDeniedIsUnknown(t *testing.T) {
	t.Parallel()
	everyWay(t, nil, func(t *testing.T, session *mcp.ClientSession) {
		for _, name := range []string{"denied", "zzzzzz"} {
			_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams || wire.Message != fmt.Sprintf("unknown tool %q", name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "ecko"})
		if err == nil || !strings.Contains(err.Error(), `did you mean "echo"?`) {
			t.Errorf("ecko: %v", err)
		}
	})
}

func TestForeignResultPassesWhole(t *testing.T) {
	t.Parallel()
	whole := `{"content":[{"type":"hologram","x":1.0}],"structuredContent":{"z":9007199254740993,"a":1},"_meta":{"x/y":1,"io.modelcontextprotocol/serverInfo":{"name":"other","version":"9"}},"resultType":"complete","isError":false}`
	for _, sessionless := range []bool{false, true} {
		res, err := encodeResult(&core.Result{Whole: json.RawMessage(whole)})
		if err != nil {
			t.Fatal(err)
		}
		r := &rawResult{modern: sessionless, members: res}
		r.Meta = mcp.Meta{mcp.MetaKeyServerInfo: map[string]any{"name": "us"}}
		got, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		want := `{"content":[{"type":"hologram","x":1.0}],"structuredContent":{"z":9007199254740993,"a":1},`
		end := `"isError":false,"_meta":{"x/y":1,"io.modelcontextprotocol/serverInfo":{"name":"us"}}}`
		if sessionless {
			want += `"resultType":"complete",`
		}
		if string(got) != want+end {
			t.Errorf("sessionless %v:\n got %s\nwant %s", sessionless, got, want+end)
		}
	}
}

func TestCancelReachesTheTool(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan error, 1)
			begun := make(chan struct{})
			wait := define("wait", func(ctx context.Context, _ *core.Call, _ string) (*core.Result, error) {
				close(begun)
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			})
			session := w.connect(t, newTestServer(t, tools{wait}), nil)
			ctx, cancel := context.WithCancel(t.Context())
			called := make(chan error, 1)
			go func() {
				_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
				called <- err
			}()
			<-begun
			cancel()
			for _, c := range []chan error{called, ended} {
				select {
				case err := <-c:
					if err == nil {
						t.Error("the call was answered")
					}
				case <-time.After(10 * time.Second):
					t.Fatal("the call goes on")
				}
			}
		})
	}
}

func TestProgressIncreasesAndEndsWithTheResult(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var got []float64
			three := make(chan struct{})
			session := w.connect(t, newTestServer(t), &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
					mu.Lock()
					defer mu.Unlock()
					if r.Params.ProgressToken != "tok" {
						t.Errorf("token = %v", r.Params.ProgressToken)
					}
					if got = append(got, r.Params.Progress); len(got) == 3 {
						close(three)
					}
				}})
			params := &mcp.CallToolParams{Name: "counts"}
			params.SetProgressToken("tok")
			if _, err := session.CallTool(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			select {
			case <-three:
			case <-time.After(10 * time.Second):
			}
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(got) != "[1 2 3]" {
				t.Errorf("progress = %v; want 1 2 3", got)
			}
		})
	}
}

func TestElicitation(t *testing.T) {
	t.Parallel()
	options := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": r.Params.Message}}, nil
	}}
	for _, w := range ways() {
		if w.version < "2025-06-18" {
			continue // elicitation is newer
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			session := w.connect(t, newTestServer(t), options)
			got, isError := callText(t, session, "asks", "one two three")
			want := `{"action":"accept","content":{"name":"one"}} {"action":"accept","content":{"name":"two"}} {"action":"accept","content":{"name":"three"}}`
			if isError || got != want {
				t.Errorf("asks = %v\n got %s\nwant %s", isError, got, want)
			}
		})
		t.Run(w.name+" without the capability", func(t *testing.T) {
			t.Parallel()
			session := w.connect(t, newTestServer(t), nil)
			if got, isError := callText(t, session, "asks", "one"); !isError || got != "nobody can be asked" {
				t.Errorf("asks = %q, %v", got, isError)
			}
		})
	}
}

func TestCallsRunConcurrently(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			const callers = 8
			begun := make(chan struct{}, callers)
			wait := define("wait", func(ctx context.Context, _ *core.Call, _ string) (*core.Result, error) {
				begun <- struct{}{}
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
			session := w.connect(t, newTestServer(t, tools{wait, echo()}), nil)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() { session.CallTool(ctx, &mcp.CallToolParams{Name: "wait"}) })
			}
			for range callers {
				<-begun
			}
			if got, _ := callText(t, session, "echo", "quick"); got != "quick" {
				t.Errorf("echo = %q", got)
			}
			cancel()
			wg.Wait()
		})
	}
}

func TestBigArgument(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		way
		size int
	}{{way{"stdio", "2025-06-18", false}, 20 << 20}, {way{"http", modern, true}, 2 << 20}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			session := test.connect(t, newTestServer(t), nil)
			text := strings.Repeat("0123456789abcde\n", test.size/16)
			if got, isError := callText(t, session, "length", text); got != fmt.Sprint(test.size) || isError {
				t.Errorf("length = %.80q, %v", got, isError)
			}
			if got, _ := callText(t, session, "echo", "still here"); got != "still here" {
				t.Errorf("echo = %q", got)
			}
		})
	}
}
