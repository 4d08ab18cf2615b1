package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// BenchmarkHTTP is a call of a trivial tool over HTTP, with tokens, metrics and
// limits on, beside the same tool on the bare handler of the SDK: requests per
// second and the 95th percentile, for 1, 8 and 64 callers in both eras. The
// client is a plain HTTP one, whose cost is the same for both.
func BenchmarkHTTP(b *testing.B) {
	for _, era := range []string{"2025-11-25", modern} {
		for _, callers := range []int{1, 8, 64} {
			for name, handler := range map[string]func(*testing.B, bool) http.Handler{"ours": benchOurs, "bare": benchBare} {
				b.Run(fmt.Sprintf("%s/callers=%d/%s", era, callers, name), func(b *testing.B) {
					web := httptest.NewServer(handler(b, era == modern))
					defer web.Close()
					benchCallers(b, web.URL, era, callers)
				})
			}
		}
	}
}

func benchOurs(b *testing.B, _ bool) http.Handler {
	b.Helper()
	catalog, err := core.Discover(b.Context(), tools{echo()})
	if err != nil {
		b.Fatal(err)
	}
	env := &core.Env{}
	env.Update(core.Config{}, catalog)
	options := Options{Version: "test", Env: env, Dir: b.TempDir(), Agents: []core.AgentDefinition{{ID: "a", Permissions: core.AllowAll()}},
		SessionTimeout: time.Hour, MaxSessions: 1000, Limits: Limits{Calls: 256, PerMinute: 1 << 30, Timeout: time.Minute}}
	withTokens(&options)
	s, err := New(options)
	if err != nil {
		b.Fatal(err)
	}
	return s.Handler()
}

func benchBare(b *testing.B, stateless bool) http.Handler {
	b.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in textInput
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless})
}

func benchCallers(b *testing.B, at, era string, callers int) {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: callers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	send := func(body string, header http.Header) (http.Header, error) {
		req, err := http.NewRequest("POST", at+"/mcp", bytes.NewReader([]byte(body)))
		if err != nil {
			return nil, err
		}
		req.Header = header
		res, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		if answer, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || !bytes.Contains(answer, []byte(`"result"`)) {
			return nil, fmt.Errorf("%d %s, %w", res.StatusCode, answer, err)
		}
		return res.Header, nil
	}
	each := make(chan struct{}, b.N)
	for range b.N {
		each <- struct{}{}
	}
	close(each)
	var mu sync.Mutex
	var times []time.Duration
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range callers {
		header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer alice-secret"}}
		body, extra := modernCall("echo", "hello")
		if era != modern {
			answered, err := send(legacyInitialize, header)
			if err != nil {
				b.Fatal(err)
			}
			body = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`
			extra = []string{headerVersion, era, headerSession, answered.Get(headerSession)}
		}
		for i := 0; i < len(extra); i += 2 {
			header.Set(extra[i], extra[i+1])
		}
		all.Go(func() {
			<-begin
			var own []time.Duration
			for range each {
				began := time.Now()
				if _, err := send(body, header); err != nil {
					b.Error(err)
					return
				}
				own = append(own, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, own...)
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	close(begin)
	all.Wait()
	b.StopTimer()
	if slices.Sort(times); len(times) > 0 {
		b.ReportMetric(float64(len(times))/b.Elapsed().Seconds(), "req/s")
		b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
	}
}
