package mcpserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core/wire"
)

// TestLikeTheSDK sends the same frames over our own transport, with its short path
// for calls, and over the SDK's: what comes back must mean the same. Frames that
// end a session on the SDK's are not among them; [wire] has its tests for those.
func TestLikeTheSDK(t *testing.T) {
	t.Parallel()
	calls := []string{
		`{"name":"echo","arguments":{"text":"hello"}}`,
		`{"arguments":{"text":"a < b & \u2028 \ud83d\ude00 \"q\" \\ \u0000"},"name":"echo"}`,
		`{"name":"echo","arguments":{"text":""},"_meta":{"mine":1}}`,
		`{"name":"echo"}`,
		`{"name":"echo","arguments":null}`,
		`{"name":"echo","arguments":{}}`,
		`{"name":"echo","arguments":{"tekst":"a"}}`,
		`{"name":"echo","arguments":{"text":5}}`,
		`{"name":"echo","arguments":[1]}`,
		`{"name":"length","arguments":{"text":"` + strings.Repeat("x", 300_000) + `"}}`,
		`{"name":"fails","arguments":{"text":""}}`,
		`{"name":"boom","arguments":{"text":""}}`,
		`{"name":"nobody","arguments":{}}`,
		`{"name":"denied","arguments":{"text":""}}`,
		`{"name":"asks","arguments":{"text":"name"}}`,
		`{"name":"foreign","arguments":{"text":"{\"content\":[{\"type\":\"new\",\"n\":12345678901234567890}],\"resultType\":\"complete\",\"_meta\":{\"a\":1},\"isError\":true}"}}`,
		`{"name":5}`,
		`{}`,
		`[]`,
	}
	frames := []string{initialize, `{"jsonrpc":"2.0","id":"p","method":"ping"}`, `{"jsonrpc":"2.0","id":1.0,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}`, `{"jsonrpc":"2.0","id":3,"method":"no/such"}`, `{"jsonrpc":"2.0","id":4,"method":"prompts/list"}`}
	for i, params := range calls {
		frames = append(frames, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, 100+i, params),
			fmt.Sprintf(`{ "params" : %s , "method" : "tools/call" , "id" : "s%d" , "jsonrpc" : "2.0" }`, params, i))
	}
	ours := newExchanger(t, func(s *Server, in io.ReadCloser, out io.WriteCloser) {
		s.ServeStdio(context.Background(), &wire.Transport{In: in, Out: out})
	})
	theirs := newExchanger(t, func(s *Server, in io.ReadCloser, out io.WriteCloser) {
		s.agents[0].mcp.Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: out})
	})
	for _, frame := range frames {
		got, want := ours(frame), theirs(frame)
		if !sameJSON(got, want) {
			t.Errorf("%.200s\nours: %.500s\ntheirs: %.500s", frame, got, want)
		}
		if strings.Contains(frame, `"initialize"`) {
			ours(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			theirs(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
	}
}

// newExchanger serves a server of its own and returns a function that sends a line
// and gives the answer, if the line is a call.
func newExchanger(t *testing.T, serve func(*Server, io.ReadCloser, io.WriteCloser)) func(string) string {
	t.Helper()
	return exchangerOf(t, newTestServer(t), serve)
}

func exchangerOf(t *testing.T, s *Server, serve func(*Server, io.ReadCloser, io.WriteCloser)) func(string) string {
	t.Helper()
	home := filepath.Dir(s.options.Dir) // each server has its own
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(s, in, out)
	}()
	t.Cleanup(func() { toServer.Close(); fromServer.Close(); <-done })
	lines := bufio.NewReader(fromServer)
	return func(line string) string {
		t.Helper()
		if _, err := io.WriteString(toServer, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(line, `"id"`) {
			return ""
		}
		answer, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%.200s: %v", line, err)
		}
		return strings.ReplaceAll(answer, s.options.Dir, home)
	}
}
