package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"zenmcp/core"
	"zenmcp/core/coretest"
)

func TestWhatIsSeenOfACall(t *testing.T) {
	t.Parallel()
	var log coretest.Buffer
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	_, at := newHTTP(t, func(o *Options) {
		withTokens(o)
		o.Audit, o.Tracer, o.Limits.Timeout = &log, tracer, time.Minute
	})
	long := strings.Repeat("x", 1000)
	for _, c := range []struct{ agent, secret, tool string }{
		{"a", "alice-secret", "echo"}, {"b", "bob-secret", "echo"}, {"a", "alice-secret", "fails"}, {"b", "bob-secret", long}, {"b", "wrong", "echo"},
	} {
		call, headers := modernCall(c.tool, "confidential")
		request{"POST", at + "/mcp/" + c.agent, call, append(headers, append(bearer(c.secret), headerRequest, "req-1")...)}.do(t)
	}
	checkAudit(t, log.String(), long)

	got := request{method: "GET", url: at + "/metrics", headers: bearer("bob-secret")}.do(t)
	for _, want := range []string{
		`zenmcp_call_seconds_count{agent="a",outcome="ok",tool="echo"} 1`,
		`zenmcp_call_seconds_count{agent="b",outcome="ok",tool="echo"} 1`,
		`zenmcp_call_seconds_count{agent="a",outcome="error",tool="fails"} 1`,
		`zenmcp_call_seconds_count{agent="b",outcome="unknown",tool=""} 1`,
		`zenmcp_calls_running 0`, `zenmcp_sessions 2`, `zenmcp_sessions_evicted_total 0`, `zenmcp_refused_total{reason="token"} 1`,
	} {
		if !strings.Contains(got.body, want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	if got := (request{method: "GET", url: at + "/metrics"}).do(t); got.status != 401 {
		t.Errorf("metrics without a token: %d", got.status)
	}
	var names []string
	for _, s := range spans.Ended() {
		names = append(names, s.Name()+" "+s.Status().Description)
	}
	if want := "[tools/call echo  tools/call echo  tools/call fails error]"; fmt.Sprint(names) != want {
		t.Errorf("spans = %v; want %s", names, want)
	}
}

func checkAudit(t *testing.T, log, long string) {
	t.Helper()
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(`{"text":"confidential"}`)))
	want := []auditLine{
		{Principal: "alice", Agent: "a", Tool: "echo", Outcome: outcomeOK},
		{Principal: "bob", Agent: "b", Tool: "echo", Outcome: outcomeOK},
		{Principal: "alice", Agent: "a", Tool: "fails", Outcome: outcomeError},
		{Principal: "bob", Agent: "b", Tool: long[:maxName], Outcome: outcomeUnknown},
	}
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	if len(lines) != len(want) || strings.Contains(log, "confidential") {
		t.Fatalf("%d lines; want %d:\n%s", len(lines), len(want), log)
	}
	for i, line := range lines {
		var got auditLine
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if time.Since(got.Time) > time.Minute || got.Seconds <= 0 {
			t.Errorf("line %d: %s", i, line)
		}
		got.Time, got.Seconds = time.Time{}, 0
		want[i].Request, want[i].Arguments = "req-1", digest
		if got != want[i] {
			t.Errorf("line %d: %+v; want %+v", i, got, want[i])
		}
	}
}

// TestTheTraceReachesTheTool: from _meta and from the header, in both eras, with a
// tracer and without.
func TestTheTraceReachesTheTool(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c"
	const parent = "00-" + id + "-b7ad6b7169203331-01"
	shows := define("shows", func(ctx context.Context, _ *core.Call, _ string) (*core.Result, error) {
		return core.TextResult("trace " + trace.SpanContextFromContext(ctx).TraceID().String()), nil
	})
	for name, tracer := range map[string]trace.Tracer{"off": nil, "on": sdktrace.NewTracerProvider().Tracer("test")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, at := newHTTP(t, func(o *Options) {
				catalog, err := core.Discover(t.Context(), tools{shows})
				if err != nil {
					t.Fatal(err)
				}
				o.Env.Update(core.Config{}, catalog)
				o.Tracer = tracer
			})
			call, headers := modernCall("shows", "")
			inMeta := strings.Replace(call, `"_meta":{`, `"_meta":{"traceparent":"`+parent+`",`, 1)
			for what, q := range map[string]request{
				"_meta":  {"POST", at + "/mcp", inMeta, headers},
				"header": {"POST", at + "/mcp", call, append(headers[:len(headers):len(headers)], "Traceparent", parent)},
			} {
				if got := q.do(t); !strings.Contains(got.body, "trace "+id) {
					t.Errorf("%s: %d %s", what, got.status, got.body)
				}
			}
			id := request{"POST", at + "/mcp", legacyInitialize, nil}.do(t).header.Get(headerSession)
			old := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shows","_meta":{"traceparent":"` + parent + `"}}}`
			got := request{"POST", at + "/mcp", old, []string{headerVersion, "2025-11-25", headerSession, id}}.do(t)
			if !strings.Contains(got.body, "trace 0af7651916cd43dd8448eb211c80319c") {
				t.Errorf("in a session: %d %s", got.status, got.body)
			}
		})
	}
}
