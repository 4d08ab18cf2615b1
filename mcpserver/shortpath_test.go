package mcpserver

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"zenmcp/core"
	"zenmcp/core/wire"
)

// TestCancelledCallGetsNoAnswer: the specification asks for silence, and the id
// is free again.
func TestCancelledCallGetsNoAnswer(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	ended := make(chan struct{})
	wait := define("wait", func(ctx context.Context, _ *core.Call, _ string) (*core.Result, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	s := newTestServer(t, tools{wait, echo()})
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeStdio(context.Background(), &wire.Transport{In: in, Out: out}) }()
	lines := bufio.NewReader(fromServer)
	exchange := func(message, want string) {
		t.Helper()
		if _, err := io.WriteString(toServer, message+"\n"); err != nil {
			t.Fatal(err)
		}
		if want == "" {
			return
		}
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, want) {
			t.Fatalf("%s answered %q, %v; want %q", message, line, err, want)
		}
	}
	exchange(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, `"id":"a","result"`)
	exchange(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "")
	exchange(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"wait"}}`, "")
	<-begun
	exchange(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`, "")
	<-ended
	exchange(`{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"echo","arguments":{"text":"next"}}}`,
		`{"jsonrpc":"2.0","id":"b","result":{"content":[{"type":"text","text":"next"}]}}`)
	exchange(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"text":"again"}}}`, `"id":"a","result"`)
	toServer.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestPlainCalls(t *testing.T) {
	t.Parallel()
	for params, plain := range map[string]bool{
		`{"name":"x"}`:                             true,
		`{"arguments":{"a":1},"name":"x"}`:         true,
		`{"name":"x","_meta":{"progressToken":7}}`: true,
		`{"name":"x","_meta":{"other":{}}}`:        true,
		`{"name":7}`:                               false,
		`{"name":"x","requestState":"s"}`:          false,
		`{"name":"x","task":{}}`:                   false,
		`{"name":"x","_meta":[]}`:                  false,
		`[]`:                                       false,
		`{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`: false,
	} {
		if _, ok := parsePlainCall([]byte(params)); ok != plain {
			t.Errorf("%s: plain = %v", params, ok)
		}
	}
}
