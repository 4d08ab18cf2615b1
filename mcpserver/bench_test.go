package mcpserver

import (
	"context"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
	"zenmcp/core/wire"
)

// BenchmarkCall is one call of a trivial tool: the tool alone, and with the
// SDK's client at the other end of each transport, whose cost is part of it.
func BenchmarkCall(b *testing.B) {
	b.Run("direct", func(b *testing.B) {
		s := benchServer(b, tools{echo()})
		tool, _ := s.agents[0].shared.view.Load().published.Tool("echo")
		for b.Loop() {
			if _, err := tool.Run(b.Context(), &core.Call{Arguments: []byte(`{"text":"hello"}`)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("stdio", func(b *testing.B) {
		s := benchServer(b, tools{echo()})
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		go s.ServeStdio(context.Background(), &wire.Transport{In: in, Out: out})
		benchClient(b, &wire.Transport{In: fromServer, Out: toServer, Peer: true}, "")
	})
	for name, version := range map[string]string{"http sessions": "2025-11-25", "http sessionless": modern} {
		b.Run(name, func(b *testing.B) {
			web := httptest.NewServer(benchServer(b, tools{echo()}).Handler())
			defer web.Close()
			benchClient(b, &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp", DisableStandaloneSSE: true}, version)
		})
	}
}

func benchServer(b *testing.B, of tools) *Server {
	b.Helper()
	catalog, err := core.Discover(b.Context(), of)
	if err != nil {
		b.Fatal(err)
	}
	env := &core.Env{}
	whole := 100 << 20 // the budget of results is not measured here
	env.Update(core.Config{MaxToolOutput: &whole}, catalog)
	s, err := New(Options{Version: "test", Env: env, Dir: b.TempDir(),
		Agents: []core.AgentDefinition{{ID: "default", Permissions: core.AllowAll()}}})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func benchClient(b *testing.B, t mcp.Transport, version string) {
	b.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(b.Context(), t, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}}); err != nil {
			b.Fatal(err)
		}
	}
}
