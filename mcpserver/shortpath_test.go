package mcpserver

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"zenmcp/core"
	"zenmcp/core/coretest"
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

// TestStuckCall: a call that runs where the client's messages are read is stuck in
// a file operation. It keeps nobody from being served, it is answered in time, and
// what it says in the end is not sent.
func TestStuckCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		back := make(chan struct{})
		stuck := define("stuck", func(ctx context.Context, _ *core.Call, _ string) (*core.Result, error) {
			_, err := core.Within(ctx, "far/away", func() (string, error) { <-back; return "", nil })
			return nil, err
		})
		stuck.Pace = core.PaceBrief
		s := newTestServer(t, tools{stuck, echo()})
		var audited coretest.Buffer
		s.audit = &audit{log: s.log, out: &audited}
		a := s.agents[0]
		short := newShortPath(a)
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		stdio := openStdio(t.Context(), &wire.Transport{In: in, Out: out, Intercept: short.intercept})
		session, err := a.mcp.Connect(t.Context(), stdio, nil)
		if err != nil {
			t.Fatal(err)
		}
		short.session.Store(session)
		lines := bufio.NewReader(fromServer)
		send := func(message string) { io.WriteString(toServer, message+"\n") }
		want := func(want string) {
			t.Helper()
			if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, want) {
				t.Fatalf("got %q, %v; want %q", line, err, want)
			}
		}
		send(initialize)
		want(`"id":0,"result"`)
		begun := time.Now()
		send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stuck","arguments":{"text":""},"_meta":{"progressToken":"t"}}}`)
		send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"next"}}}`)
		want(`"id":2,"result"`)
		if took := time.Since(begun); took > 3*time.Millisecond {
			t.Errorf("the next call waited for %v", took)
		}
		for next, _ := lines.Peek(60); strings.Contains(string(next), "notifications/progress"); next, _ = lines.Peek(60) {
			want("running for")
		}
		want(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\"far/away\" did not answer within 10s; is it on a disk that is away?"}],"isError":true}}`)
		if took := time.Since(begun); took > core.PathDeadline+overseeEvery+time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		stuckLines := func() int { return strings.Count(audited.String(), `"tool":"stuck"`) }
		if n := stuckLines(); n != 1 || !strings.Contains(audited.String(), `"outcome":"error"`) {
			t.Errorf("audited %s", audited.String())
		}
		close(back)
		send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"same id"}}}`)
		want(`"text":"same id"`)
		toServer.Close()
		stdio.cancel(nil)
		fromServer.Close()
		session.Wait()
		a.server.Close()
		synctest.Wait()
		if n := stuckLines(); n != 1 {
			t.Errorf("audited %s", audited.String())
		}
	})
}

// TestCallsUnwind: a session that ends gives its calls a moment to clean up.
func TestCallsUnwind(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	var clean atomic.Bool
	slow := define("slow", func(ctx context.Context, _ *core.Call, _ string) (*core.Result, error) {
		close(begun)
		<-ctx.Done()
		time.Sleep(unwind / 5) // it kills what it has started
		clean.Store(true)
		return nil, ctx.Err()
	})
	s := newTestServer(t, tools{slow})
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- s.ServeStdio(context.Background(), &wire.Transport{In: in, Out: out, EOFGrace: -1})
	}()
	io.WriteString(toServer, initialize+"\n")
	bufio.NewReader(fromServer).ReadString('\n')
	io.WriteString(toServer, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`+"\n")
	<-begun
	toServer.Close()
	if err := <-served; err != nil || !clean.Load() {
		t.Errorf("ended with %v, clean %v", err, clean.Load())
	}
}

// TestPanicBesideTheTool: what goes wrong around a tool costs one call as well.
func TestPanicBesideTheTool(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	s.audit = &audit{log: s.log, out: panicking{}}
	ours := exchangerOf(t, s, func(s *Server, in io.ReadCloser, out io.WriteCloser) {
		s.ServeStdio(context.Background(), &wire.Transport{In: in, Out: out})
	})
	ours(initialize)
	ours(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for id := range 2 {
		if got := ours(toolCall(id, "echo")); !strings.Contains(got, "internal error in tools/call; the server goes on") {
			t.Error(got)
		}
	}
}

type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("no disk") }

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
	} {
		if _, ok := parsePlainCall([]byte(params)); ok != plain {
			t.Errorf("%s: plain = %v", params, ok)
		}
	}
}
