package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxBacklog is how many bytes of complaints about bad lines are kept for a peer
// that sends them and does not read; further ones are dropped.
const maxBacklog = 16 << 20

// Write sends a message as one line in one write, or adds an answer to the batch
// that it belongs to, which is sent when complete.
//
// Params and results are sent as the caller encoded them, without a second look:
// a third of the cost of a big answer was spent on checking and copying it. An
// answer that cannot be encoded is replaced by an internal error.
//
// Write waits while another message is being written. It returns ctx.Err() if ctx
// is cancelled before its turn, mcp.ErrConnectionClosed when the session is over, and
// the stream's error when that fails, which ends the session unless Peer is set.
func (c *Conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	resp, ok := msg.(*jsonrpc.Response)
	if !ok || c.opts.Peer {
		return c.send(ctx, func(buf []byte) ([]byte, error) { return appendLine(buf, msg) })
	}
	in, known := c.answered(resp)
	if known {
		defer c.settle(in) // once written, so that the end of the input waits for it
	}
	if in.batch != nil {
		return c.writePart(ctx, in.batch, resp)
	}
	return c.send(ctx, func(buf []byte) ([]byte, error) { return appendLine(buf, resp) })
}

// Post is Write of a message that is no answer, by a goroutine of its own if need
// be: it never waits for the peer to take the message. failed is told the error of
// such a write, at most once.
func (c *Conn) Post(ctx context.Context, msg jsonrpc.Message, failed func(error)) {
	if c.now != nil {
		select {
		case c.writing <- struct{}{}:
			rest, err := c.writeNow(msg)
			if len(rest) > 0 {
				go func() {
					err := c.write(rest)
					<-c.writing
					if err != nil {
						failed(err)
					}
				}()
				return
			}
			<-c.writing
			if err != nil {
				failed(err)
			}
			return
		default: // somebody else is writing
		}
	}
	go func() {
		if err := c.Write(ctx, msg); err != nil {
			failed(err)
		}
	}()
}

// writeNow writes what the stream takes of a message without waiting, and returns
// the rest. The caller holds c.writing.
func (c *Conn) writeNow(msg jsonrpc.Message) (rest []byte, err error) {
	buf, err := appendLine(c.buf[:0], msg)
	if err != nil {
		return nil, err
	}
	rest = buf[c.now(buf):]
	if len(rest) == 0 && cap(buf) <= keepSize {
		c.buf = buf
	} else {
		c.buf = nil
	}
	return rest, nil
}

// answered forgets the call that resp answers. That comes before the write: the
// peer may use the ID again as soon as it has the answer.
func (c *Conn) answered(resp *jsonrpc.Response) (in call, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in, known = c.calls[resp.ID]
	delete(c.calls, resp.ID)
	if init := c.initCall; init != nil && init.id == resp.ID {
		var result struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if resp.Error == nil && json.Unmarshal(resp.Result, &result) == nil {
			c.version = result.ProtocolVersion
		}
		c.initCall = nil
		close(init.answered)
	}
	return in, known
}

// Drop says that a call gets no answer, since its client has cancelled it. In a
// batch the others' answers do without. It does not wait for the peer.
func (c *Conn) Drop(id jsonrpc.ID) {
	in, known := c.answered(&jsonrpc.Response{ID: id})
	if !known {
		return
	}
	if in.batch != nil {
		if line := c.partDone(in.batch, nil); line != nil {
			c.sendLater(line)
		}
	}
	c.settle(in)
}

// settle counts an answer as given.
func (c *Conn) settle(in call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !in.listen {
		c.awaited--
	}
	c.checkIdle()
}

// send writes what fill appends to the buffer.
func (c *Conn) send(ctx context.Context, fill func([]byte) ([]byte, error)) error {
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return mcp.ErrConnectionClosed
	}
	defer func() { <-c.writing }()
	if ctx.Err() != nil { // what follows a cancelled message may be on its way already
		return ctx.Err()
	}
	buf, err := fill(c.buf[:0])
	if err != nil {
		return err
	}
	if cap(buf) <= keepSize {
		c.buf = buf
	}
	return c.write(buf)
}

// write writes to Out. The caller holds c.writing.
func (c *Conn) write(buf []byte) error {
	_, err := c.opts.Out.Write(buf)
	switch {
	case err == nil:
		return nil
	case c.ended():
		return mcp.ErrConnectionClosed
	}
	err = fmt.Errorf("writing: %w", err)
	if !c.opts.Peer {
		c.end(err)
	}
	return err
}

// sendLater has a line written by another goroutine, for the one that reads.
func (c *Conn) sendLater(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.backlog > maxBacklog {
		return
	}
	c.queue = append(c.queue, line)
	c.backlog += len(line)
	if c.queued++; c.queued == 1 {
		go c.sendQueue()
	}
}

// sendQueue writes the queue until it is empty.
func (c *Conn) sendQueue() {
	for more := true; more; {
		c.mu.Lock()
		line := c.queue[0]
		c.queue[0] = nil
		c.queue = c.queue[1:]
		c.mu.Unlock()

		// An error has ended the session, so there is nobody to tell.
		_ = c.send(context.Background(), func(buf []byte) ([]byte, error) { return append(buf, line...), nil })

		c.mu.Lock()
		c.queued--
		c.backlog -= len(line)
		more = c.queued > 0
		c.checkIdle()
		c.mu.Unlock()
	}
}

// appendLine appends msg and a line feed.
func appendLine(buf []byte, msg jsonrpc.Message) ([]byte, error) {
	buf, err := Append(buf, msg)
	return append(buf, '\n'), err
}

// Append appends msg as the SDK would encode it, but does not look into params and
// results: those are sent as the caller encoded them. It fails only for requests.
func Append(buf []byte, msg jsonrpc.Message) ([]byte, error) {
	if line, ok := appendPlain(buf, msg); ok {
		return line, nil
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if resp, ok := msg.(*jsonrpc.Response); ok && err != nil {
		data, err = jsonrpc.EncodeMessage(&jsonrpc.Response{ID: resp.ID, Error: &jsonrpc.Error{
			Code:    jsonrpc.CodeInternalError,
			Message: "encoding the answer: " + err.Error(),
		}})
	}
	return append(buf, data...), err
}

// appendPlain appends messages of the common shapes. It returns buf as it was,
// and false, for all others, among them those with a line feed or a carriage return
// in the raw part, which the SDK takes out: the latter ends a line too in event
// streams, and for readers of some languages.
func appendPlain(buf []byte, msg jsonrpc.Message) ([]byte, bool) {
	line := append(buf, `{"jsonrpc":"2.0"`...)
	var name string
	var raw json.RawMessage
	switch msg := msg.(type) {
	case *jsonrpc.Response:
		if msg.Error != nil || len(msg.Result) == 0 {
			return buf, false
		}
		var ok bool
		if line, ok = appendID(append(line, `,"id":`...), msg.ID); !ok {
			return buf, false
		}
		name, raw = `,"result":`, msg.Result
	case *jsonrpc.Request:
		if msg.IsCall() {
			var ok bool
			if line, ok = appendID(append(line, `,"id":`...), msg.ID); !ok {
				return buf, false
			}
		}
		if msg.Method == "" || !isPlain(msg.Method) {
			return buf, false
		}
		line = append(append(append(line, `,"method":"`...), msg.Method...), '"')
		name, raw = `,"params":`, msg.Params
	}
	if bytes.IndexByte(raw, '\n') >= 0 || bytes.IndexByte(raw, '\r') >= 0 {
		return buf, false
	}
	if len(raw) > 0 {
		line = append(append(line, name...), raw...)
	}
	return append(line, '}'), true
}

// appendID appends an ID, and reports false for those the SDK has to encode.
func appendID(buf []byte, id jsonrpc.ID) ([]byte, bool) {
	switch v := id.Raw().(type) {
	case int64:
		return strconv.AppendInt(buf, v, 10), true
	case string:
		if isPlain(v) {
			return append(append(append(buf, '"'), v...), '"'), true
		}
	}
	return buf, false
}

// isPlain reports whether s is encoded as itself: ASCII without quotes,
// backslashes and control characters.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// answer encodes the refusal of a frame.
func (f *fault) answer() []byte {
	id := f.id
	if id == nil {
		id = json.RawMessage("null")
	}
	line := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	message, _ := json.Marshal(f.err) // of a number and a string: cannot fail
	line = append(append(line, `,"error":`...), message...)
	return append(line, '}')
}
