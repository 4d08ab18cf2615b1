// Package wire is MCP's stdio framing, one JSON-RPC message per line, as a
// transport of go-sdk, for either end: a server on its own standard streams and
// a client of a child process.
//
// It is there because one bad line ends a session on the SDK's own transport,
// silently and with exit code 0, and because answers that are ready a moment
// after the end of the input are lost there. Here a server answers a bad line and
// goes on, a client skips it, and answers have a grace period. It is also where
// most of the cost of a small call was: see [Decode] and [Conn.Write].
//
// The package knows streams only. What concerns the process whose streams they
// are, such as stray prints, is the caller's.
package wire

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// DefaultMaxLine is the longest line that is accepted, in bytes: 64 MiB. Files
	// of 20 MB as an argument are real; escaping can triple them.
	DefaultMaxLine = 64 << 20

	// DefaultEOFGrace is how long calls may go on after the end of the input. It
	// leaves room for the rest of a shutdown within the second that clients wait
	// before they kill.
	DefaultEOFGrace = 500 * time.Millisecond
)

// A Transport says how to talk over a pair of streams. It implements
// mcp.Transport; like any transport it serves for one connection. In and Out are
// required, and the zero value of every other field is the default.
type Transport struct {
	// In is read by a goroutine of the connection until it ends.
	In io.Reader

	// Out gets every message in one call of Write. Close closes it if it is an
	// io.Closer.
	Out io.Writer

	// MaxLine is the longest line to accept, in bytes; 0 means DefaultMaxLine. A
	// longer one is passed over without being held in memory, and refused.
	MaxLine int

	// EOFGrace is how long after the end of the input answers are still awaited
	// and written; 0 means DefaultEOFGrace, below 0 no wait. It ends early when no
	// call is left. Calls of subscriptions/listen, which last as long as the
	// session, are not waited for. Without effect if Peer is set.
	EOFGrace time.Duration

	// Peer makes the connection a client's: bad lines are skipped and never
	// answered, since what a child prints by mistake is not a request; batches are
	// taken in every version; at the end of In the session ends at once; and when
	// the session ends In is read on, to nowhere, so that a child that says
	// something more on its way out neither blocks nor dies of a broken pipe.
	Peer bool

	// OnBadLine, if set, is told of every line that is refused or skipped, or the
	// first bytes of one that is too long, and why. For a member of a batch, line
	// is the member. It is called by the goroutine that reads, so it must be
	// quick, and must not keep or change line.
	OnBadLine func(line []byte, err error)

	// Intercept, if set, is shown every call and notification before the SDK is,
	// in the order of arrival, and returns true for those it takes over. A call
	// that it takes is answered with [Conn.Write].
	//
	// It may run a call itself, on the goroutine that reads, which spares a small
	// call most of its cost. After a millisecond or two another goroutine reads on;
	// one that is about to wait calls readOn, and nobody waits with it. If the wait is
	// brief, as for a disk, another goroutine reads on only when there is something to
	// read already. readOn is nil for a member of a batch, and then a call is to be run
	// elsewhere.
	Intercept func(c *Conn, req *jsonrpc.Request, readOn func(brief bool)) bool

	// Deliver, if set, gets every message in place of [Conn.Read], which then only
	// waits for the end. It is called by the goroutine that reads, in the order of
	// arrival, so it must be quick. What it returns, if not nil, may take its time:
	// the goroutine that reads does that too, and after a millisecond or two another
	// one reads on. The step to another goroutine that this spares is a tenth of a
	// small call.
	Deliver func(jsonrpc.Message) (then func())
}

// Connect starts a connection. It fails only if In or Out is nil.
func (t *Transport) Connect(context.Context) (mcp.Connection, error) {
	if t.In == nil || t.Out == nil {
		return nil, errors.New("wire: a transport needs In and Out")
	}
	return t.Open(), nil
}

// Open is Connect for those who want the methods that [Conn] has beyond those of
// an mcp.Connection. It panics if In or Out is nil.
func (t *Transport) Open() *Conn {
	if t.In == nil || t.Out == nil {
		panic("wire: a transport needs In and Out")
	}
	c := &Conn{
		opts:    *t,
		msgs:    make(chan jsonrpc.Message),
		done:    make(chan struct{}),
		drained: make(chan struct{}),
		writing: make(chan struct{}, 1),
		calls:   make(map[jsonrpc.ID]call),
	}
	if c.opts.MaxLine <= 0 {
		c.opts.MaxLine = DefaultMaxLine
	}
	if c.opts.EOFGrace == 0 {
		c.opts.EOFGrace = DefaultEOFGrace
	}
	widen(c.opts.In)
	widen(c.opts.Out)
	c.now, c.ready = openNow(c.opts.Out), openReady(c.opts.In)
	c.relief.conn = c
	c.relief.clock = time.AfterFunc(time.Hour, c.relief.tick)
	c.relief.clock.Stop()
	first := &reader{conn: c, lines: newLineReader(c.opts.In, c.opts.MaxLine)}
	c.reader.Store(first)
	go first.loop()
	return c
}
