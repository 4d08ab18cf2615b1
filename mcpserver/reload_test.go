package mcpserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
	"zenmcp/core/wire"
)

func discover(t *testing.T, sources ...core.Source) core.Catalog {
	t.Helper()
	catalog, err := core.Discover(t.Context(), sources...)
	if err != nil {
		t.Fatal(err)
	}
	return catalog
}

// reload has a server publish other sources for the same agents.
func reload(t *testing.T, s *Server, sources ...core.Source) {
	t.Helper()
	var agents []core.AgentDefinition
	for _, a := range s.agents {
		agents = append(agents, a.now.Load().definition)
	}
	if err := s.Reload(t.Context(), core.Config{}, discover(t, sources...), agents); err != nil {
		t.Fatal(err)
	}
}

// permit has a server's only agent use these tools and no others.
func permit(t *testing.T, s *Server, names ...string) {
	t.Helper()
	definition := s.agents[0].now.Load().definition
	definition.Permissions = core.AllowAll()
	definition.Permissions[core.KindTool] = core.Allow(names...)
	env := s.options.Env
	if err := s.Reload(t.Context(), env.Config(), env.Catalog(), []core.AgentDefinition{definition}); err != nil {
		t.Fatal(err)
	}
}

func says(name, text string) core.Definition {
	return define(name, func(context.Context, *core.Call, string) (*core.Result, error) { return core.TextResult(text), nil })
}

// spy sees what the SDK is about to send to the clients of the first agent.
func spy(s *Server) chan string {
	sent := make(chan string, 100)
	s.agents[0].mcp.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			sent <- method
			return next(ctx, method, req)
		}
	})
	return sent
}

func listNames(t *testing.T, session *mcp.ClientSession) []string {
	t.Helper()
	res, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range res.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// TestReload checks that clients are told of what changed, once, and of nothing
// else, and that they see and reach what there is then.
func TestReload(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			shelves := testShelves()
			server := newTestServer(t, tools{says("a", "1"), says("b", "1")}, shelves)
			e, options := newEvents()
			sent := spy(server)
			session := w.connect(t, server, options)
			if w.version == modern { // Connect does not wait for the stream that is told
				expect(t, sent, "notifications/subscriptions/acknowledged")
			}
			reload(t, server, tools{says("a", "2"), says("b", "1")}, shelves)
			if text, _ := callText(t, session, "a", ""); text != "2" {
				t.Errorf("after a reload a says %q, want 2", text)
			}
			reload(t, server, tools{says("c", "1"), says("a", "2")}, shelves)
			expect(t, e.tools, "tools")
			if got := listNames(t, session); !slices.Equal(got, []string{"c", "a"}) {
				t.Errorf("after a reload the tools are %q", got)
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "b"}); err == nil || !strings.Contains(err.Error(), `unknown tool "b"`) {
				t.Errorf("a tool that is gone: %v", err)
			}
			permit(t, server, "a")
			expect(t, e.tools, "tools")
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "c"}); err == nil || !strings.Contains(err.Error(), `unknown tool "c"`) {
				t.Errorf("a tool that is not permitted any more: %v", err)
			}
			shelves.skills["alpha"].write("new.md", "new")
			reload(t, server, tools{says("c", "1"), says("a", "2")}, shelves)
			expect(t, e.resources, "resources")
			if len(e.tools)+len(e.prompts)+len(e.resources) > 0 {
				t.Errorf("told more than once, or of lists that did not change: %d, %d, %d", len(e.tools), len(e.prompts), len(e.resources))
			}
		})
	}
}

// TestFirstReload checks that the first reload tells of a file that came after the
// first list, and of nothing when none did.
func TestFirstReload(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", "new.md"} {
		shelves := testShelves()
		server := newTestServer(t, tools{says("a", "")}, shelves)
		e, options := newEvents()
		session := way{version: "2025-11-25"}.connect(t, server, options)
		if _, err := session.ListResources(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if file != "" {
			shelves.skills["alpha"].write(file, "new")
		}
		reload(t, server, tools{says("b", "")}, shelves)
		expect(t, e.tools, "tools")
		if file != "" {
			expect(t, e.resources, "resources")
		} else if len(e.resources) > 0 {
			t.Error("told of resources that did not change")
		}
	}
}

// TestReloadInstructions checks that who comes later is told what is here then.
func TestReloadInstructions(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", modern} {
		server := newTestServer(t, tools{says("before", "")})
		reload(t, server, tools{says("after", "")})
		session := way{version: version, http: true}.connect(t, server, nil)
		if got := session.InitializeResult().Instructions; !strings.Contains(got, "after") || strings.Contains(got, "before") {
			t.Errorf("%s: instructions %q", version, got)
		}
	}
}

// TestReloadDuringCalls checks that a call goes on with the tool that it began with,
// and that what a client has gathered outlives the reload.
func TestReloadDuringCalls(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			type memory struct{ calls int }
			remembers := func(version string, wait <-chan struct{}, started chan<- struct{}) core.Definition {
				return define("remembers", func(ctx context.Context, call *core.Call, _ string) (*core.Result, error) {
					m := core.Local(call.Scope, func() *memory { return &memory{} })
					m.calls++
					calls := m.calls
					if wait != nil {
						close(started)
						<-wait
					}
					return core.TextResult(fmt.Sprintf("version %s, call %d", version, calls)), nil
				})
			}
			wait, started := make(chan struct{}), make(chan struct{})
			server := newTestServer(t, tools{remembers("1", wait, started)})
			session := w.connect(t, server, nil)
			first := make(chan string, 1)
			go func() {
				res, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "remembers"})
				if err != nil {
					first <- err.Error()
					return
				}
				first <- res.Content[0].(*mcp.TextContent).Text
			}()
			<-started
			reload(t, server, tools{remembers("2", nil, nil)})
			if got, _ := callText(t, session, "remembers", ""); got != "version 2, call 2" {
				t.Errorf("beside a running call: %q", got)
			}
			close(wait)
			if got := <-first; got != "version 1, call 1" {
				t.Errorf("the call that ran: %q", got)
			}
		})
	}
}

// TestReloadClosesWhatCannotBeUsed checks that an agent whose new roots cannot be
// opened may do nothing, as the old ones may reach more, until its definition can be
// used.
func TestReloadClosesWhatCannotBeUsed(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, tools{says("a", "")})
	sessions := []*mcp.ClientSession{way{version: "2025-11-25"}.connect(t, server, nil), way{version: modern}.connect(t, server, nil)}
	for _, roots := range [][]string{{"/no/such/root"}, {t.TempDir(), "/no/such/root"}, {"/no/such/root"}, nil, {t.TempDir()}} {
		definition := server.agents[0].now.Load().definition
		definition.Permissions, definition.Roots = core.AllowAll(), roots
		err := server.Reload(t.Context(), core.Config{}, discover(t, tools{says("b", "")}), []core.AgentDefinition{definition})
		want := []string{"b"}
		if slices.Contains(roots, "/no/such/root") {
			want = nil
			if err == nil || !strings.Contains(err.Error(), `agent "default" may do nothing`) || !strings.Contains(err.Error(), "/no/such/root") {
				t.Errorf("roots %q: %v", roots, err)
			}
		} else if err != nil {
			t.Errorf("roots %q: %v", roots, err)
		}
		for _, session := range sessions {
			if got := listNames(t, session); !slices.Equal(got, want) {
				t.Errorf("with roots %q the tools are %q, want %q", roots, got, want)
			}
			_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "b", Arguments: map[string]any{"text": ""}})
			if (err == nil) != (want != nil) {
				t.Errorf("with roots %q a call: %v", roots, err)
			}
		}
	}
}

// TestReloadRoots checks that roots in an agent's definition count from then on.
func TestReloadRoots(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, tools{define("roots", func(_ context.Context, call *core.Call, _ string) (*core.Result, error) {
		return core.TextResult(strings.Join(call.Scope.Roots(), " ")), nil
	})})
	session := way{version: "2025-11-25"}.connect(t, server, nil)
	root := t.TempDir()
	for _, roots := range [][]string{{root}, {root}, nil} {
		definition := server.agents[0].now.Load().definition
		definition.Roots = roots
		env := server.options.Env
		if err := server.Reload(t.Context(), env.Config(), env.Catalog(), []core.AgentDefinition{definition}); err != nil {
			t.Fatal(err)
		}
		if got, _ := callText(t, session, "roots", ""); got != strings.Join(roots, " ") {
			t.Errorf("roots %q, want %q", got, roots)
		}
	}
}

// TestReloadBeforeInitialize checks that a session which has not begun is told
// nothing before the answer that it waits for.
func TestReloadBeforeInitialize(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, tools{says("a", "")})
	sent := spy(server)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.ServeStdio(ctx, &wire.Transport{In: in, Out: out}) }()
	defer func() { cancel(); <-served }()
	lines := bufio.NewScanner(fromServer)
	ask := func(message string) string {
		if _, err := io.WriteString(toServer, message+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		return lines.Text()
	}
	if got := ask(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); !strings.Contains(got, `"id":1`) {
		t.Fatalf("ping: %s", got)
	}
	for i := range 3 {
		reload(t, server, tools{says(fmt.Sprint("b", i), "")})
	}
	expect(t, sent, "notifications/tools/list_changed")
	if got := ask(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`); !strings.Contains(got, `"id":2`) {
		t.Errorf("the first thing after initialize: %s", got)
	}
}

// TestReloadsAndCloseTogether is for the race detector.
func TestReloadsAndCloseTogether(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, tools{says("a", "")})
	session := way{version: "2025-11-25", http: true}.connect(t, server, nil)
	catalogs := []core.Catalog{discover(t, tools{says("a", "")}), discover(t, tools{says("a", ""), says("b", "")})}
	definitions := []core.AgentDefinition{server.agents[0].now.Load().definition}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 20 {
				if err := server.Reload(t.Context(), core.Config{}, catalogs[(n+i)%2], definitions); err != nil && server.closing.Err() == nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 20 {
				_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "a"})
				if err != nil && server.closing.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for range 10 {
			listNames(t, session)
		}
		server.Close()
	})
	wg.Wait()
}
