package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core/wire"
)

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func toolCall(id int, name string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{}}}`, id, name)
}

// stdioServer has the tools ok, which answers at once, and the given ones.
func stdioServer(tools map[string]func(context.Context)) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	add := func(name string, run func(context.Context)) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				run(ctx)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
			})
	}
	add("ok", func(context.Context) {})
	for name, run := range tools {
		add(name, run)
	}
	return server
}

// A stdioEnd is the client's end of a session in this process.
type stdioEnd struct {
	in     *io.PipeWriter
	out    *bufio.Reader
	stdio  *Stdio
	served chan error
}

func serveStdio(ctx context.Context, server *mcp.Server) *stdioEnd {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	e := &stdioEnd{in: inW, out: bufio.NewReader(outR), served: make(chan error, 1)}
	e.stdio = openStdio(ctx, &wire.Transport{In: inR, Out: outW})
	go func() { e.served <- e.stdio.Serve(server) }()
	return e
}

// exchange sends a line and returns the answer.
func (e *stdioEnd) exchange(line string) string {
	io.WriteString(e.in, line+"\n")
	answer, _ := e.out.ReadString('\n')
	return answer
}

func TestServeEndsWithTheInput(t *testing.T) {
	t.Parallel()
	var stubborn chan struct{} // of the running case
	for _, test := range []struct {
		name     string
		tool     func(context.Context)
		answered bool
		lasts    time.Duration
	}{
		{"at once", func(context.Context) {}, true, 0},
		{"within the grace", func(context.Context) { <-time.After(400 * time.Millisecond) }, true, 400 * time.Millisecond},
		{"when cancelled", func(ctx context.Context) { <-ctx.Done() }, false, wire.DefaultEOFGrace},
		{"never", func(context.Context) { <-stubborn }, false, wire.DefaultEOFGrace + unwind},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stubborn = make(chan struct{})
				e := serveStdio(t.Context(), stdioServer(map[string]func(context.Context){"tool": test.tool}))
				e.exchange(initialize)
				io.WriteString(e.in, toolCall(1, "tool")+"\n")
				e.in.Close()
				start := time.Now()
				out, _ := io.ReadAll(e.out)
				if answered := strings.Contains(string(out), `"id":1,"result"`); answered != test.answered {
					t.Errorf("answered is %v, want %v: %s", answered, test.answered, out)
				}
				if err := <-e.served; err != nil {
					t.Errorf("Serve: %v", err)
				}
				if lasted := time.Since(start); lasted != test.lasts || lasted >= time.Second {
					t.Errorf("ended after %v, want %v", lasted, test.lasts)
				}
				if cause := context.Cause(e.stdio.Context()); !errors.Is(cause, ErrClientGone) || !errors.Is(cause, io.EOF) {
					t.Errorf("cause: %v", cause)
				}
				close(stubborn)
			})
		})
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("terminated")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancelled := make(chan struct{})
		e := serveStdio(ctx, stdioServer(map[string]func(context.Context){
			"wait": func(ctx context.Context) { <-ctx.Done(); close(cancelled) },
		}))
		e.exchange(initialize)
		io.WriteString(e.in, toolCall(1, "wait")+"\n")
		synctest.Wait()
		cancel(reason)
		<-cancelled // though the SDK would have waited
		if err := <-e.served; err != reason {
			t.Errorf("Serve: %v, want %v", err, reason)
		}
	})
}

func TestServeEndsWithTheOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		outR.Close()
		stdio := openStdio(t.Context(), &wire.Transport{In: inR, Out: outW})
		go io.WriteString(inW, initialize+"\n")
		if err := stdio.Serve(stdioServer(nil)); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if cause := context.Cause(stdio.Context()); !errors.Is(cause, ErrClientGone) || !errors.Is(cause, io.ErrClosedPipe) {
			t.Errorf("cause: %v", cause)
		}
	})
}
