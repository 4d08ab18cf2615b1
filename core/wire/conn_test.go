package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A feed is a pipe with room for everything, as pipes of the system have for a
// line or two.
type feed struct {
	mu   sync.Mutex
	more sync.Cond
	buf  bytes.Buffer
	err  error
}

func newFeed() *feed {
	f := &feed{}
	f.more.L = &f.mu
	return f
}

func (f *feed) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.buf.Len() == 0 && f.err == nil {
		f.more.Wait()
	}
	if f.buf.Len() == 0 {
		return 0, f.err
	}
	return f.buf.Read(p)
}

func (f *feed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.more.Signal()
	return f.buf.Write(p)
}

func (f *feed) CloseWithError(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.more.Signal()
}

func (f *feed) Close() error {
	f.CloseWithError(io.EOF)
	return nil
}

// A far is the other end of a connection under test.
type far struct {
	t    *testing.T
	conn *Conn
	in   *feed         // what the connection reads
	out  *bufio.Reader // what it writes
}

// open starts a connection over pipes. No goroutine of it outlives the test.
func open(t *testing.T, opts Transport) *far {
	t.Helper()
	in := newFeed()
	outR, outW := io.Pipe()
	opts.In, opts.Out = in, outW
	f := &far{t: t, conn: opts.Open(), in: in, out: bufio.NewReader(outR)}
	t.Cleanup(func() {
		outR.Close()
		in.Close()
		f.conn.Close()
		<-f.conn.Drained()
	})
	return f
}

func (f *far) send(lines ...string) {
	f.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(f.in, line+"\n"); err != nil {
			f.t.Fatal(err)
		}
	}
}

// want checks the next lines; the text of an error stands for no line.
func (f *far) want(lines ...string) {
	f.t.Helper()
	for _, want := range lines {
		got, err := f.out.ReadString('\n')
		if err != nil {
			got = err.Error()
		}
		if got = strings.TrimSuffix(got, "\n"); got != want {
			f.t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// wantError checks the ID and the code of an error, and that it says text.
func (f *far) wantError(id string, code int, text string) {
	f.t.Helper()
	got, err := f.out.ReadString('\n')
	prefix := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,`, id, code)
	if err != nil || !strings.HasPrefix(got, prefix) || !strings.Contains(got, text) {
		f.t.Errorf("got %s, %v, want %s and %q", got, err, prefix, text)
	}
}

// read reads a request from the connection.
func (f *far) read() *jsonrpc.Request {
	f.t.Helper()
	msg, err := f.conn.Read(f.t.Context())
	req, ok := msg.(*jsonrpc.Request)
	if err != nil || !ok {
		f.t.Fatalf("read %#v, %v, want a request", msg, err)
	}
	return req
}

// answer answers a request from a goroutine of its own, as handlers do.
func (f *far) answer(req *jsonrpc.Request, result string) {
	go func() {
		if err := f.conn.Write(context.Background(), response(req, result)); err != nil {
			f.t.Error(err)
		}
	}()
}

func response(req *jsonrpc.Request, result string) *jsonrpc.Response {
	return &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(result)}
}

func ping(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }

func pong(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

func TestBadFrames(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	for _, test := range []struct {
		line, id string
		code     int
		text     string
	}{
		{`{"jsonrpc":"2.0","id":1,`, "null", -32700, "byte 24"},
		{`hello`, "null", -32700, "no JSON value"},
		{ping("1") + ping("2"), "null", -32700, "text after"},
		{ping("1") + `}`, "null", -32700, "text after"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":` + deep + "}", "null", -32700, "1000"},
		{`[` + deep + `]`, "null", -32700, "1000"},
		{`[1,`, "null", -32700, "end"},
		{`[1] 2`, "null", -32700, "text after"},
		{`{"foo":1}`, "null", -32600, "version"},
		{`{"id":"a","method":"m"}`, `"a"`, -32600, "version"},
		{`{"jsonrpc":"2.0","id":true,"method":"m"}`, "null", -32600, "ID"},
		{`{"jsonrpc":"2.0","id":7,"method":5}`, "7", -32600, ""},
		{`[]`, "null", -32600, "batches"},
		{`[` + ping("1") + `]`, "null", -32600, "batches"},
		{`5`, "null", -32600, ""},
		{`null`, "null", -32600, ""},
		{strings.Repeat("x", 5001), "null", -32600, "5000 bytes"},
	} {
		var bad []string
		f := open(t, Transport{
			MaxLine:   5000,
			OnBadLine: func(line []byte, err error) { bad = append(bad, string(line)) },
		})
		f.send(test.line)
		f.wantError(test.id, test.code, test.text)
		f.send(ping("99")) // the session goes on
		f.answer(f.read(), `{}`)
		f.want(pong("99"))
		if len(bad) != 1 || bad[0] == "" || !strings.HasPrefix(test.line, bad[0]) {
			t.Errorf("told of %q, want of %.100q", bad, test.line)
		}
	}
}

func TestGoodFrames(t *testing.T) {
	t.Parallel()
	f := open(t, Transport{})
	f.send("\ufeff"+ping("1"), "", "  \t", "\r", ping("2")+"\r", ping(`"3"`)+" \t ", " "+ping("-4"))
	for _, id := range []string{"1", "2", `"3"`, "-4"} {
		f.answer(f.read(), `{}`)
		f.want(pong(id))
	}
	io.WriteString(f.in, ping("5")) // without a line feed at the end
	f.in.Close()
	f.answer(f.read(), `{}`)
	f.want(pong("5"), "EOF")
}

func TestDuplicateID(t *testing.T) {
	t.Parallel()
	f := open(t, Transport{})
	f.send(ping(`"é"`), ping("1"))
	first, one := f.read(), f.read()
	f.send(ping(`"\u00e9"`))
	f.wantError(`"é"`, -32600, "in use")
	f.answer(first, `{}`)
	f.want(pong(`"é"`))
	f.send(ping(`"é"`)) // free again
	f.answer(f.read(), `{}`)
	f.want(pong(`"é"`))
	f.answer(one, `{}`)
	f.want(pong("1"))
}

func TestServerCalls(t *testing.T) {
	t.Parallel()
	f := open(t, Transport{})
	go f.conn.Write(t.Context(), &jsonrpc.Request{ID: testID(t, 5.0), Method: "roots/list"})
	f.want(`{"jsonrpc":"2.0","id":5,"method":"roots/list"}`)
	f.send(pong("5"))
	msg, err := f.conn.Read(t.Context())
	if resp, ok := msg.(*jsonrpc.Response); !ok || string(resp.Result) != "{}" {
		t.Errorf("got %#v, %v", msg, err)
	}
}

func TestAnswersAfterEOF(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		grace, takes time.Duration
		want         string
		lasts        time.Duration
	}{
		{"in time", 0, DefaultEOFGrace - 1, pong("2"), DefaultEOFGrace - 1},
		{"too late", 0, 2 * DefaultEOFGrace, "EOF", DefaultEOFGrace + flushGrace},
		{"longer grace", 3 * time.Second, 2 * time.Second, pong("2"), 2 * time.Second},
		{"no grace", -1, time.Second, "EOF", flushGrace},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := open(t, Transport{EOFGrace: test.grace})
				f.send(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`, ping("2"))
				f.read()
				req := f.read()
				start := time.Now()
				f.in.Close()
				answered := make(chan struct{})
				time.AfterFunc(test.takes, func() {
					defer close(answered)
					f.conn.Write(context.Background(), response(req, "{}"))
				})
				f.want(test.want)
				if _, err := f.conn.Read(t.Context()); err != io.EOF {
					t.Errorf("Read: %v, want EOF", err)
				}
				if lasted := time.Since(start); lasted > test.lasts {
					t.Errorf("ended after %v, want %v", lasted, test.lasts)
				}
				<-f.conn.Done()
				<-answered
			})
		})
	}
}

func TestPartialBatchAfterEOF(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t, Transport{})
		f.initialize("2025-03-26")
		f.send("[" + ping("1") + "," + ping("2") + "]")
		one := f.read()
		f.read() // never answered
		f.in.Close()
		f.answer(one, "{}")
		f.want("["+pong("1")+"]", "EOF")
	})
}

func TestReadError(t *testing.T) {
	t.Parallel()
	f := open(t, Transport{})
	broken := errors.New("broken")
	f.in.CloseWithError(broken)
	if _, err := f.conn.Read(t.Context()); !errors.Is(err, broken) || !errors.Is(f.conn.Err(), broken) {
		t.Errorf("Read: %v, Err: %v", err, f.conn.Err())
	}
}

func TestReadCancelled(t *testing.T) {
	t.Parallel()
	f := open(t, Transport{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.conn.Read(ctx); err != context.Canceled {
		t.Errorf("Read: %v", err)
	}
	if err := f.conn.Err(); err != nil {
		t.Errorf("Err: %v", err)
	}
}

func TestStuckWriter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t, Transport{})
		f.send(ping("1"))
		req := f.read()
		stuck := make(chan error, 1)
		go func() { // nobody reads
			stuck <- f.conn.Write(context.Background(), response(req, "{}"))
		}()
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.conn.Write(ctx, &jsonrpc.Request{Method: "m"}); err != context.DeadlineExceeded {
			t.Errorf("second Write: %v", err)
		}
		f.send("bad", ping("2"))
		f.read()
		f.send(ping("2")) // like the first, to be answered in vain
		f.conn.Close()
		if err := <-stuck; err != mcp.ErrConnectionClosed {
			t.Errorf("first Write: %v", err)
		}
		if _, err := f.conn.Read(t.Context()); err != io.EOF {
			t.Errorf("Read: %v", err)
		}
	})
}

func TestStuckWriterAtEOF(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t, Transport{})
		f.send("bad")
		f.in.Close()
		start := time.Now()
		if _, err := f.conn.Read(t.Context()); err != io.EOF {
			t.Errorf("Read: %v", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestBacklogIsBounded(t *testing.T) {
	t.Parallel()
	f := open(t, Transport{})
	line := make([]byte, maxBacklog/4)
	for range 100 { // nobody reads
		f.conn.sendLater(line)
	}
	f.conn.mu.Lock()
	defer f.conn.mu.Unlock()
	if f.conn.queued != 5 {
		t.Errorf("%d lines of %d bytes each are kept", f.conn.queued, len(line))
	}
}

func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	outR, outW := io.Pipe()
	outR.CloseWithError(broken)
	inR, inW := io.Pipe()
	c := (&Transport{In: inR, Out: outW}).Open()
	if err := c.Write(t.Context(), &jsonrpc.Request{Method: "m"}); !errors.Is(err, broken) {
		t.Errorf("Write: %v", err)
	}
	if _, err := c.Read(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Read: %v", err)
	}
	if _, err := inW.Write([]byte("x")); err != io.ErrClosedPipe {
		t.Errorf("In is still read: %v", err)
	}
	<-c.Drained()
}

func TestIntercept(t *testing.T) {
	t.Parallel()
	var seen []string
	f := open(t, Transport{Intercept: func(c *Conn, req *jsonrpc.Request, _ func(bool)) bool {
		seen = append(seen, req.Method)
		if req.Method != "ping" {
			return false
		}
		go c.Write(context.Background(), response(req, "{}"))
		return true
	}})
	f.send(ping("1"))
	f.want(pong("1"))
	f.send(`{"jsonrpc":"2.0","method":"n"}`)
	f.read()
	if want := []string{"ping", "n"}; !slices.Equal(seen, want) {
		t.Errorf("saw %q, want %q", seen, want)
	}
}

func TestPeer(t *testing.T) {
	t.Parallel()
	var bad []string
	f := open(t, Transport{Peer: true, MaxLine: 200, OnBadLine: func(line []byte, err error) {
		bad = append(bad, string(line))
	}})
	noise := []string{"Starting...", `{"foo":1}`, strings.Repeat("y", 201), "[]"}
	note := `{"jsonrpc":"2.0","method":"n"}`
	for _, line := range noise {
		f.send(line, note)
		f.read()
	}
	f.send("[" + note + ",5," + note + "]")
	f.read()
	f.read()
	if want := append(noise, "5"); !slices.Equal(bad, want) {
		t.Errorf("told of %q, want %q", bad, want)
	}
	f.send(ping("1"), ping("1")) // left to the SDK
	f.read()
	f.answer(f.read(), "{}")
	f.want(pong("1")) // and nothing before it

	f.conn.Close()
	f.want("EOF")
	f.send("last words", strings.Repeat("z", 300)) // read, so they do not block
	if _, err := f.conn.Read(t.Context()); err != io.EOF {
		t.Errorf("Read: %v", err)
	}
	select {
	case <-f.conn.Drained():
		t.Error("drained before the end")
	default:
	}
	f.in.Close()
	<-f.conn.Drained()
}

func TestPeerReadsOnAfterBrokenPipe(t *testing.T) {
	t.Parallel()
	outR, outW := io.Pipe()
	outR.Close()
	c := (&Transport{Peer: true, In: strings.NewReader(pong("1") + "\n"), Out: outW}).Open()
	if err := c.Write(t.Context(), &jsonrpc.Request{Method: "m"}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write: %v", err)
	}
	if _, err := c.Read(t.Context()); err != nil {
		t.Errorf("the child's last answer: %v", err)
	}
	if _, err := c.Read(t.Context()); err != io.EOF {
		t.Errorf("Read: %v", err)
	}
}

func TestConnectNeedsStreams(t *testing.T) {
	t.Parallel()
	if _, err := (&Transport{}).Connect(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestDeliver(t *testing.T) {
	var got []string
	tr := Transport{In: strings.NewReader("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\nnoise\n{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n"), Out: io.Discard, Peer: true,
		Deliver: func(msg jsonrpc.Message) func() {
			got = append(got, fmt.Sprintf("%T", msg))
			return nil
		}}
	c := tr.Open()
	if msg, err := c.Read(t.Context()); err != io.EOF {
		t.Errorf("Read gave %v, %v", msg, err)
	}
	if want := []string{"*jsonrpc2.Response", "*jsonrpc2.Request"}; !slices.Equal(got, want) {
		t.Errorf("delivered %q, want %q", got, want)
	}
}
