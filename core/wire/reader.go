package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A reader is the goroutine that reads In, for as long as it is in charge. It does
// what a message asks for itself: starting a goroutine for a small call, which wakes
// a thread on another core, costs more than the call. While that takes its time
// another reader goes on, and this one ends when it is back.
type reader struct {
	conn  *Conn
	lines *lineReader // used only while in charge
	// turn counts the beginnings and ends of what messages ask for, so it is odd in
	// between. Only then can it become relieved.
	turn atomic.Uint64
	more atomic.Bool // than the line that was read last is in the buffer
}

// relieved is the turn of a reader that is no longer in charge. It is even.
const relieved = math.MaxUint64 - 1

// loop takes In apart until it ends, or until another reader is in charge.
func (r *reader) loop() {
	c := r.conn
	for r.inCharge() {
		line, err := r.lines.next()
		r.more.Store(r.lines.buffered())
		switch {
		case c.ended():
			if c.opts.Peer && (err == nil || errors.Is(err, errTooLong)) {
				io.Copy(io.Discard, c.opts.In)
			}
			close(c.drained)
			return
		case errors.Is(err, errTooLong):
			c.refuse(line, invalidFault(nil, "line longer than the limit of %d bytes", c.opts.MaxLine))
			continue
		}
		r.accept(bytes.Trim(line, " \t\r"))
		if err != nil && r.inCharge() {
			c.inputEnded(err)
			close(c.drained)
			return
		}
	}
}

func (r *reader) inCharge() bool { return r.turn.Load() != relieved }

// accept handles one line.
func (r *reader) accept(line []byte) {
	c := r.conn
	if len(line) == 0 {
		return
	}
	if line[0] == '[' {
		r.acceptBatch(line)
		return
	}
	msg, bad := decode(line)
	if bad != nil {
		c.refuse(line, bad)
		return
	}
	if req, ok := msg.(*jsonrpc.Request); ok && !c.register(req, nil) {
		c.refuse(line, duplicateFault(req))
		return
	}
	r.deliver(msg, true)
}

// deliver hands a message on. One that is not alone is a member of a batch.
func (r *reader) deliver(msg jsonrpc.Message, alone bool) {
	c := r.conn
	if req, ok := msg.(*jsonrpc.Request); ok && c.opts.Intercept != nil && r.intercept(req, alone) {
		return
	}
	if c.opts.Deliver != nil {
		switch then := c.opts.Deliver(msg); {
		case then == nil:
		case alone:
			r.during(func(func(bool)) { then() })
		default: // there are members to deliver yet
			go then()
		}
		return
	}
	select {
	case c.msgs <- msg:
	case <-c.done:
	}
}

// intercept shows a message to Intercept.
func (r *reader) intercept(req *jsonrpc.Request, alone bool) (taken bool) {
	c := r.conn
	if !alone { // what comes behind the batch may be about any member
		return c.opts.Intercept(c, req, nil)
	}
	r.during(func(readOn func(bool)) { taken = c.opts.Intercept(c, req, readOn) })
	return taken
}

// during does what may take its time.
func (r *reader) during(do func(readOn func(brief bool))) {
	turn := r.turn.Add(1)
	defer r.turn.CompareAndSwap(turn, turn+1)
	c := r.conn
	c.relief.watch()
	do(func(brief bool) {
		if !brief || r.more.Load() || c.ready == nil || c.ready() {
			r.leave(turn)
		}
	})
}

// leave puts another reader in charge, if this one still is and in that turn.
func (r *reader) leave(turn uint64) {
	if r.turn.CompareAndSwap(turn, relieved) {
		next := &reader{conn: r.conn, lines: r.lines}
		r.conn.reader.Store(next)
		go next.loop()
	}
}

// reliefAfter is how long a message may keep the reader before another one reads
// on; it can be twice as long until that is noticed.
const reliefAfter = time.Millisecond

// A relief has another reader go on when a message keeps the one in charge. Its
// clock ticks only while there are messages: to set a timer for each of them would
// wake a thread each time, which is what a reader spares.
type relief struct {
	conn    *Conn
	ticking atomic.Bool
	clock   *time.Timer
	// What was seen at the last tick.
	reader *reader
	turn   uint64
}

// watch starts the clock.
func (w *relief) watch() {
	if !w.ticking.Load() && w.ticking.CompareAndSwap(false, true) {
		w.clock.Reset(reliefAfter)
	}
}

// tick is called by the clock.
func (w *relief) tick() {
	r := w.conn.reader.Load()
	turn := r.turn.Load()
	if r != w.reader || turn != w.turn {
		w.reader, w.turn = r, turn
		w.clock.Reset(reliefAfter)
		return
	}
	if turn%2 == 1 {
		r.leave(turn)
	}
	// Nothing has happened since the last tick.
	w.ticking.Store(false)
	if r.turn.Load() != turn {
		w.watch()
	}
}
