package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core/wire"
)

// ErrClientGone is in the cause of a stdio session's context when the client has
// gone away: it closed our input, no longer takes our output, or has died.
var ErrClientGone = errors.New("the client is gone")

// unwind is how long handlers have, once they are cancelled, to kill what they
// started and return. With [wire.DefaultEOFGrace] before it, a process is gone
// within a second of the end of its input, whatever its tools do.
const unwind = 250 * time.Millisecond

// A Stdio is the one session of a process that a client has started and talks to
// over the standard streams.
type Stdio struct {
	conn   *wire.Conn
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// OpenStdio starts to read from t, usually made of the files that [CaptureStdin]
// and [CaptureStdout] return, and to watch the process that started this one (see
// [Stdio.Context]). Cancelling ctx ends the session.
func OpenStdio(ctx context.Context, t *wire.Transport) *Stdio {
	s := openStdio(ctx, t)
	watchParent(s.ctx, func() {
		s.cancel(fmt.Errorf("%w: the process that started this one has ended", ErrClientGone))
	})
	return s
}

func openStdio(ctx context.Context, t *wire.Transport) *Stdio {
	s := &Stdio{conn: t.Open()}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	context.AfterFunc(s.ctx, func() { s.conn.Close() })
	go func() {
		<-s.conn.Done()
		s.cancel(fmt.Errorf("%w: %w", ErrClientGone, s.conn.Err()))
	}()
	return s
}

// Context returns the context of the session. It is cancelled when the context
// given to [OpenStdio] is, or, with ErrClientGone in the cause, when the client
// has gone away, for which there are three signs:
//
//   - The input has ended, the running calls are answered or
//     [wire.Transport.EOFGrace] is over.
//   - An answer could not be written.
//   - The process that started this one has ended (on Unix, and unless that was
//     process 1). The end of the input says the same, but does not come when
//     another child of the client has inherited the writing end.
//
// Calls are cancelled through their own contexts; this one is for all else that
// must end with the session.
func (s *Stdio) Context() context.Context { return s.ctx }

// Connect makes a Stdio an mcp.Transport, for use instead of Serve. It never
// fails.
func (s *Stdio) Connect(context.Context) (mcp.Connection, error) { return s.conn, nil }

// Serve lets server serve the session until [Stdio.Context] is cancelled. Running
// calls are then cancelled, and Serve waits 250 ms at most for them to return:
// mcp.Server.Run would wait as long as they like, without cancelling them.
//
// It returns nil when the client has gone away, which is how a session ends, and
// otherwise the cause of the cancellation.
func (s *Stdio) Serve(server *mcp.Server) error {
	defer s.cancel(nil)
	session, err := server.Connect(s.ctx, s, nil)
	if err != nil {
		return err
	}
	return s.wait(session, func(time.Duration) {})
}

// wait is Serve once there is a session. others waits, for a time at most, for calls
// that the SDK does not know.
func (s *Stdio) wait(session *mcp.ServerSession, others func(time.Duration)) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		session.Wait() // says no more than the cause does
	}()
	select {
	case <-ended:
	case <-s.ctx.Done():
	}
	s.conn.Close() // fails the SDK's Read, upon which it cancels the calls
	<-s.ctx.Done()
	limit := time.Now().Add(unwind)
	timer := time.NewTimer(unwind)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	others(time.Until(limit))
	if cause := context.Cause(s.ctx); !errors.Is(cause, ErrClientGone) {
		return cause
	}
	return nil
}
