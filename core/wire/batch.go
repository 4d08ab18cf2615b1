package wire

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// initWait is how long a batch waits for the answer to an initialize that came
// before it. An initialize asks nothing of the client, so it takes no time; the
// limit is for a server that hangs there, whose input must still be seen to end.
const initWait = 500 * time.Millisecond

// A batch is an array of requests that is answered by one array. Conn.mu guards
// it.
type batch struct {
	left  int      // answers to come
	parts [][]byte // answers, in the order in which they came
}

// array encodes the answers as one line.
func (b *batch) array() []byte {
	line := []byte{'['}
	for i, part := range b.parts {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, part...)
	}
	return append(line, ']', '\n')
}

// acceptBatch handles a line that is an array.
func (r *reader) acceptBatch(line []byte) {
	c := r.conn
	members, bad := split(line)
	switch {
	case bad != nil:
	case !c.batchesAllowed():
		bad = invalidFault(nil, "batches are not supported (protocol versions 2024-11-05 and 2025-03-26 have them)")
	case len(members) == 0:
		bad = invalidFault(nil, "the batch is empty")
	}
	if bad != nil {
		c.refuse(line, bad)
		return
	}
	// All members are noted before the first one is delivered: its answer may come
	// at once and must not be taken for the last.
	b := &batch{}
	var msgs []jsonrpc.Message
	for _, member := range members {
		if msg := c.acceptMember(member, b); msg != nil {
			msgs = append(msgs, msg)
		}
	}
	c.mu.Lock()
	refused := b.left == 0 && len(b.parts) > 0
	c.mu.Unlock()
	if refused && !c.opts.Peer {
		c.sendLater(b.array())
	}
	for _, msg := range msgs {
		r.deliver(msg, false)
	}
}

// acceptMember decodes a member of b. If it is bad the refusal becomes a part of
// the answer, and it returns nil.
func (c *Conn) acceptMember(member []byte, b *batch) jsonrpc.Message {
	msg, bad := decode(member)
	if req, ok := msg.(*jsonrpc.Request); ok && !c.register(req, b) {
		bad = duplicateFault(req)
	}
	if bad == nil {
		return msg
	}
	if c.opts.OnBadLine != nil {
		c.opts.OnBadLine(member, bad.err)
	}
	c.mu.Lock()
	b.parts = append(b.parts, bad.answer())
	c.mu.Unlock()
	return nil
}

// batchesAllowed reports whether the negotiated version has batches, waiting for
// an initialize that is being answered: what a client may send does not depend on
// how fast we are.
func (c *Conn) batchesAllowed() bool {
	if c.opts.Peer {
		return true
	}
	c.mu.Lock()
	init := c.initCall
	c.mu.Unlock()
	if init != nil {
		timer := time.NewTimer(initWait)
		defer timer.Stop()
		select {
		case <-init.answered:
		case <-c.done:
		case <-timer.C:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version == "2024-11-05" || c.version == "2025-03-26"
}

// writePart adds an answer to its batch, and sends the batch if it was the last.
func (c *Conn) writePart(ctx context.Context, b *batch, resp *jsonrpc.Response) error {
	part, err := Append(nil, resp)
	if err != nil {
		return err
	}
	if line := c.partDone(b, part); line != nil {
		return c.send(ctx, func(buf []byte) ([]byte, error) { return append(buf, line...), nil })
	}
	return nil
}

// partDone counts a part of a batch as done, with its answer or, if that is nil,
// without one. After the last part it returns the line to send, if there is one.
func (c *Conn) partDone(b *batch, part []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if part != nil {
		b.parts = append(b.parts, part)
	}
	if b.left--; b.left > 0 || len(b.parts) == 0 {
		return nil
	}
	return b.array()
}

// split returns the elements of a JSON array.
func split(line []byte) ([][]byte, *fault) {
	s := scanner{b: line}
	if i := s.value(0, 0); i < 0 {
		return nil, parseFault(&s)
	} else if i = s.space(i); i < len(line) {
		s.fail(i, "text after the JSON value")
		return nil, parseFault(&s)
	}
	var elements [][]byte
	i := s.space(1)
	for end := line[i] == ']'; !end; {
		after := s.value(i, 1)
		elements = append(elements, line[i:after:after])
		i, end = s.next(after, ']')
	}
	return elements, nil
}
