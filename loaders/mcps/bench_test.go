package mcps

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// The benchmarks call a plain go-sdk server directly, with nothing but frames,
// and through call_mcp_tool. What the hop adds is the difference, plus what our
// own server costs towards its client, which is measured elsewhere.

func benchHarness(b *testing.B, entry map[string]any) core.Tool {
	h := newHarness(b, map[string]any{"fix": entry})
	h.text(loadName, args{"server": "fix", "include_manifest": false})
	tool, _ := h.scope.Tools().Tool(callName)
	return tool
}

func runTool(b *testing.B, tool core.Tool, arguments json.RawMessage) {
	if _, err := tool.Run(context.Background(), &core.Call{Arguments: arguments}); err != nil {
		b.Error(err)
	}
}

var benchCalls = []struct{ name, tool, arguments string }{
	{"echo", "echo", `{"text":"0123456789abcdef"}`},
	{"200KB", "big", `{}`},
}

func BenchmarkStdio(b *testing.B) {
	for _, c := range benchCalls {
		b.Run(c.name+"/direct", func(b *testing.B) {
			self, err := os.Executable()
			if err != nil {
				b.Fatal(err)
			}
			d := newDirect(b, []string{self}, stubEnv+"=sdk")
			params := fmt.Sprintf(`{"name":%q,"arguments":%s}`, c.tool, c.arguments)
			for b.Loop() {
				d.call("tools/call", params)
			}
		})
		b.Run(c.name+"/hop", func(b *testing.B) {
			tool := benchHarness(b, stubServer(b, "sdk", args{"protocol": "legacy"}))
			arguments := json.RawMessage(fmt.Sprintf(`{"server":"fix","tool":%q,"arguments":%s}`, c.tool, c.arguments))
			b.ReportAllocs()
			for b.Loop() {
				runTool(b, tool, arguments)
			}
		})
	}
}

// Concurrent is 64 callers on one child; the time is that of one call.
func BenchmarkConcurrent(b *testing.B) {
	tool := benchHarness(b, stubServer(b, "sdk", args{"protocol": "legacy"}))
	arguments := json.RawMessage(`{"server":"fix","tool":"echo","arguments":{"text":"0123456789abcdef"}}`)
	var wg sync.WaitGroup
	for worker := range 64 {
		wg.Go(func() {
			for i := worker; i < b.N; i += 64 {
				runTool(b, tool, arguments)
			}
		})
	}
	wg.Wait()
}

func BenchmarkHTTP(b *testing.B) {
	for _, kind := range []struct {
		name    string
		options mcp.StreamableHTTPOptions
	}{{"stream", mcp.StreamableHTTPOptions{}}, {"JSON", mcp.StreamableHTTPOptions{JSONResponse: true}}} {
		url := serve(b, streamable(sdkServer(), &kind.options))
		for _, c := range benchCalls {
			b.Run(kind.name+"/"+c.name+"/direct", func(b *testing.B) {
				post := directHTTP(b, url)
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, c.tool, c.arguments)
				for b.Loop() {
					post(body)
				}
			})
			b.Run(kind.name+"/"+c.name+"/hop", func(b *testing.B) {
				tool := benchHarness(b, args{"url": url, "protocol": "legacy"})
				arguments := json.RawMessage(fmt.Sprintf(`{"server":"fix","tool":%q,"arguments":%s}`, c.tool, c.arguments))
				for b.Loop() {
					runTool(b, tool, arguments)
				}
			})
		}
	}
}

// directHTTP opens a session and returns a function that posts and reads.
func directHTTP(b *testing.B, url string) func(body string) {
	session := ""
	var answer bytes.Buffer
	post := func(body string) {
		req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader([]byte(body)))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		answer.Reset()
		if _, err := answer.ReadFrom(resp.Body); err != nil || resp.StatusCode > 299 {
			b.Fatal(resp.Status, err)
		}
		resp.Body.Close()
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
	}
	post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`)
	post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return post
}
