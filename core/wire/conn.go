package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var (
	_ mcp.Transport  = (*Transport)(nil)
	_ mcp.Connection = (*Conn)(nil)
)

// A Conn is one connection over a pair of streams. It implements mcp.Connection;
// its methods may be called concurrently.
//
// One goroutine at a time reads and decodes, see [reader]. It never waits for the
// peer to take something: one that does not read its answers must not keep us from
// seeing its cancellations and its end.
type Conn struct {
	opts    Transport
	msgs    chan jsonrpc.Message
	drained chan struct{} // closed when In has ended

	endOnce sync.Once
	done    chan struct{} // closed when the session is over
	err     error         // why; set before done is closed

	reader atomic.Pointer[reader] // that is in charge
	relief relief
	ready  func() bool // see openReady

	// writing is held, by a value in it, during a write to Out. It is no mutex, so
	// that one can stop waiting for it when a writer is stuck.
	writing chan struct{}
	buf     []byte           // of the writer
	now     func([]byte) int // see openNow

	mu       sync.Mutex // guards what follows; never held during input or output
	calls    map[jsonrpc.ID]call
	awaited  int           // calls whose answers hold up the end of the session
	queue    [][]byte      // lines to be written by sendQueue
	queued   int           // their number, and the one being written
	backlog  int           // their size in bytes
	idle     chan struct{} // if not nil, closed when awaited and queued are 0
	version  string        // negotiated by initialize, "" before
	initCall *initCall     // the initialize that is being answered, if any
}

// A call is a request of the peer that has no answer yet.
type call struct {
	batch  *batch // that the answer is a part of, or nil
	listen bool   // subscriptions/listen: ends with the session, so nothing waits for it
}

// An initCall is an initialize whose answer decides whether batches are allowed.
type initCall struct {
	id       jsonrpc.ID
	answered chan struct{}
}

// SessionID returns "": a pair of streams has one session, without a name.
func (c *Conn) SessionID() string { return "" }

// Done returns a channel that is closed when the session is over: after the end
// of the input and the grace, after a failed write (not if Peer is set: the
// child's last words may still be on their way), or by Close.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the session is over: io.EOF after the end of the input and after
// Close, else the error of the stream; nil as long as it is not over.
func (c *Conn) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Drained returns a channel that is closed when In has given its last byte. Who
// owns a child process waits for this before waiting for the process, so that
// nothing it said is lost.
func (c *Conn) Drained() <-chan struct{} { return c.drained }

// Read returns the next message. When the session is over it returns [Conn.Err],
// at the end of the input only after all messages, and after the answers to them
// or the grace. It returns early if ctx is cancelled.
func (c *Conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.msgs:
		return msg, nil
	case <-c.done:
		return nil, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends the session: Read returns io.EOF, and writers that are stuck are
// released with an error where the stream allows that. It closes Out if that is
// an io.Closer, and it stops reading In (by a deadline, or else by closing it)
// unless Peer is set. It returns nil. Closing twice is fine.
func (c *Conn) Close() error {
	c.end(io.EOF)
	return nil
}

// end makes err the reason for the end, if it is the first, and lets go of the
// streams.
func (c *Conn) end(err error) {
	c.endOnce.Do(func() {
		c.err = err
		close(c.done)
		if out, ok := c.opts.Out.(io.Closer); ok {
			out.Close()
		}
		if c.opts.Peer {
			return
		}
		// A file is not closed: that can block, when it is not served by the poller.
		if in, ok := c.opts.In.(interface{ SetReadDeadline(time.Time) error }); ok {
			in.SetReadDeadline(time.Unix(1, 0))
		} else if in, ok := c.opts.In.(io.Closer); ok {
			in.Close()
		}
	})
}

// ended reports whether the session is over.
func (c *Conn) ended() bool { return c.Err() != nil }

// register notes a call that will be answered. It returns false if a call with
// the same ID is still without an answer: the SDK would drop the second one in
// silence. A client leaves that to the SDK, as it answers no bad lines.
func (c *Conn) register(req *jsonrpc.Request, b *batch) bool {
	if c.opts.Peer || !req.IsCall() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, used := c.calls[req.ID]; used {
		return false
	}
	in := call{batch: b, listen: b == nil && req.Method == "subscriptions/listen"}
	c.calls[req.ID] = in
	if !in.listen {
		c.awaited++
	}
	if b != nil {
		b.left++
	}
	if req.Method == "initialize" && c.initCall == nil {
		c.initCall = &initCall{id: req.ID, answered: make(chan struct{})}
	}
	return true
}

func duplicateFault(req *jsonrpc.Request) *fault {
	id, _ := json.Marshal(req.ID.Raw()) // a string or a number: cannot fail
	return invalidFault(id, "the ID is in use by a call that is not answered yet")
}

// refuse reports a bad line and, unless we are the client, answers it.
func (c *Conn) refuse(line []byte, bad *fault) {
	if c.opts.OnBadLine != nil {
		c.opts.OnBadLine(line, bad.err)
	}
	if !c.opts.Peer {
		c.sendLater(append(bad.answer(), '\n'))
	}
}

// inputEnded lets the calls that are running end, and then ends the session.
func (c *Conn) inputEnded(err error) {
	if !c.opts.Peer && !c.waitIdle(c.opts.EOFGrace) {
		c.abandonCalls()
		c.waitIdle(flushGrace)
	}
	if !errors.Is(err, io.EOF) {
		err = fmt.Errorf("reading: %w", err)
	}
	c.end(err)
}

// flushGrace is how long to wait for lines that are ready when the grace is over.
// It is only ever used up by a peer that does not read them.
const flushGrace = 100 * time.Millisecond

// waitIdle waits until every answer is written, for d at most, and reports
// whether there is nothing left to wait for.
func (c *Conn) waitIdle(d time.Duration) bool {
	c.mu.Lock()
	idle := make(chan struct{})
	c.idle = idle
	c.checkIdle()
	c.mu.Unlock()

	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-c.done:
		return true
	case <-timer.C:
		return false
	}
}

// checkIdle tells waitIdle when there is nothing left to wait for. c.mu is held.
func (c *Conn) checkIdle() {
	if c.idle != nil && c.awaited == 0 && c.queued == 0 {
		close(c.idle)
		c.idle = nil
	}
}

// abandonCalls stops waiting for answers, and sends what batches have of them.
func (c *Conn) abandonCalls() {
	c.mu.Lock()
	var partial [][]byte
	for id, in := range c.calls {
		if in.batch != nil && len(in.batch.parts) > 0 {
			partial = append(partial, in.batch.array())
			in.batch.parts = nil
		}
		if !in.listen {
			c.awaited-- // which leaves those that are being written
		}
		delete(c.calls, id)
	}
	c.mu.Unlock()
	for _, line := range partial {
		c.sendLater(line)
	}
}
