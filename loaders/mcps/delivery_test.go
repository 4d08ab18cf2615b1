package mcps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes are a network in memory, which stands still with the test's bubble.
type pipes struct {
	accept chan net.Conn
	cut    atomic.Bool // no connection comes about
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if p.cut.Load() {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	ours, theirs := net.Pipe()
	p.accept <- theirs
	return ours, nil
}

func (p *pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p.accept; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p *pipes) Close() error { close(p.accept); return nil }
func (*pipes) Addr() net.Addr { return &net.UnixAddr{} }

// A lateServer may leave a POST lying before it reads it.
type lateServer struct {
	sse     bool
	lies    atomic.Bool // the next POST is left lying
	release chan struct{}
	stream  chan string // what goes to the stream of an SSE server

	mu   sync.Mutex
	read []string // the methods, in the order in which they were read
}

func (s *lateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	flush := http.NewResponseController(w).Flush
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: endpoint\ndata: /messages\n\n")
		for flush() == nil {
			select {
			case answer := <-s.stream:
				fmt.Fprintf(w, "data: %s\n\n", answer)
			case <-r.Context().Done():
				return
			}
		}
	}
	if s.lies.CompareAndSwap(true, false) {
		<-s.release
	}
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		return // it was cut off
	}
	s.mu.Lock()
	s.read = append(s.read, m.Method)
	s.mu.Unlock()
	initialized := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`, m.ID)
	switch {
	case m.Method == "initialize" && !s.sse:
		fmt.Fprint(w, initialized)
	case m.Method == "initialize":
		s.stream <- initialized
		fallthrough
	case m.ID == nil || s.sse:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		if flush() == nil {
			<-r.Context().Done()
		}
	}
}

// since gives what was read after the handshake, once nothing moves any more.
func (s *lateServer) since(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.read[2:]; !slices.Equal(got, want) {
		t.Errorf("the server read %q, want %q", got, want)
	}
}

// lateSession connects to a lateServer.
func lateSession(t *testing.T, s *lateServer, source *Source) (*session, *pipes) {
	network := &pipes{accept: make(chan net.Conn)}
	web := &http.Server{Handler: s}
	go web.Serve(network)
	server := &Server{Name: "late", URL: "http://late.test/mcp"}
	conn := newSession(server, "1", slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		conn.close()
		web.Close()
	})
	end := newHTTPEnd(server, source.wallet(server))
	end.client.Transport.(*http.Transport).DialContext = network.dial
	if s.sse {
		l := &sseLink{httpEnd: end, log: conn.log}
		conn.peer.link = l
		resp, err := l.get(l.ctx, server.URL, http.Header{})
		if err == nil {
			err = l.begin(resp, conn.peer)
		}
		if err != nil {
			t.Fatal(err)
		}
	} else {
		conn.peer.link = &httpLink{httpEnd: end, peer: conn.peer, log: conn.log}
	}
	if err := conn.initialize(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	return conn, network
}

// What cancels a call is sent once the server has the call. It has a connection of
// its own, and is passed over if it is there first.
func TestCancellationIsBehindItsCall(t *testing.T) {
	t.Parallel()
	const called, cancelled = "tools/call", "notifications/cancelled"
	for name, test := range map[string]func(t *testing.T, s *lateServer, leave func()){
		"read late": func(t *testing.T, s *lateServer, leave func()) {
			leave()
			s.since(t)
			close(s.release)
			s.since(t, called, cancelled)
		},
		"read at once": func(t *testing.T, s *lateServer, leave func()) {
			close(s.release)
			s.since(t, called)
			leave()
			s.since(t, called, cancelled)
		},
		"read long ago": func(t *testing.T, s *lateServer, leave func()) {
			close(s.release)
			time.Sleep(arrivalLimit)
			leave() // which ends the POST at the same time
			s.since(t, called, cancelled)
		},
		"not read": func(t *testing.T, s *lateServer, leave func()) {
			time.Sleep(arrivalLimit / 2)
			leave()
			time.Sleep(arrivalLimit/2 - time.Millisecond)
			s.since(t)
			time.Sleep(2 * time.Millisecond)
			s.since(t, cancelled)
			close(s.release)
		},
		"not read for long": func(t *testing.T, s *lateServer, leave func()) {
			time.Sleep(arrivalLimit)
			leave()
			s.since(t, cancelled)
			close(s.release)
		},
	} {
		for _, sse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, SSE %v", name, sse), func(t *testing.T) {
				t.Parallel()
				source := New(Options{Places: places(t, t.TempDir(), t.TempDir())})
				synctest.Test(t, func(t *testing.T) {
					s := &lateServer{sse: sse, release: make(chan struct{}), stream: make(chan string)}
					conn, _ := lateSession(t, s, source)
					s.lies.Store(true)
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan error, 1)
					go func() {
						_, err := conn.peer.call(ctx, &request{method: called})
						done <- err
					}()
					synctest.Wait()
					test(t, s, func() {
						cancel()
						if err := <-done; !errors.Is(err, context.Canceled) {
							t.Errorf("the call ended with %v", err)
						}
					})
				})
			})
		}
	}
}

// A call that never got as far as a connection is not heard of at all.
func TestCancellationOfUnsentCall(t *testing.T) {
	t.Parallel()
	source := New(Options{Places: places(t, t.TempDir(), t.TempDir())})
	synctest.Test(t, func(t *testing.T) {
		s := &lateServer{}
		conn, network := lateSession(t, s, source)
		conn.peer.link.(*httpLink).client.CloseIdleConnections()
		network.cut.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := conn.peer.call(ctx, &request{method: "tools/call"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call ended with %v", err)
		}
		network.cut.Store(false)
		time.Sleep(time.Minute)
		s.since(t)
	})
}

// The end of a POST whose call was given up is no end of the call, or nobody would
// cancel it.
func TestGivenUpIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		apart(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, func(err error) func() {
			t.Errorf("the call failed: %v", err)
			return func() {}
		})
		cancel()
		synctest.Wait()
	})
}
