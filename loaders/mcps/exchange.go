package mcps

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"zenmcp/core"
	"zenmcp/core/rawjson"
	"zenmcp/core/wire"
)

// An exchange is one POST and what comes back.
type exchange struct {
	link     *httpLink
	id       int64
	delivery *delivery
	answered atomic.Bool
}

func (x *exchange) run(ctx context.Context, body []byte, header http.Header) error {
	l := x.link
	// The caller's context ends the exchange, but not so hard once the answer is
	// there: the connection is good for another call. Nor while the server may be
	// about to get the call: see delivery.
	own, cancel := context.WithCancel(l.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		keep := x.delivery.left()
		if x.answered.Load() {
			keep = lateEnd
		}
		time.AfterFunc(keep, cancel)
	})()
	resp, err := l.doPost(own, l.server.URL, header, body, x.delivery)
	if err != nil {
		return &lostError{cause: err, sent: !isDial(err)}
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && resp.StatusCode < 300 {
		l.mu.Lock()
		l.sessionID = id
		l.mu.Unlock()
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return x.refused(resp, header.Get("Mcp-Session-Id") != "")
	}
	if x.id == 0 {
		_, err := io.CopyN(io.Discard, resp.Body, 64<<10)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	}
	return x.receive(own, resp)
}

// refused makes an error of a status that is none of success.
func (x *exchange) refused(resp *http.Response, inSession bool) error {
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what is there is shown
	if x.id == 0 {
		if resp.StatusCode == http.StatusNotFound && inSession {
			x.link.peer.lose(errSessionGone)
		}
		return &statusError{status: resp.StatusCode}
	}
	if refused := x.link.wantsSignIn(resp); refused != nil {
		return refused
	}
	if msg, err := wire.Decode(bytes.TrimSpace(head)); err == nil {
		if answer, ok := msg.(*jsonrpc.Response); ok && answer.Error != nil && !(resp.StatusCode == http.StatusNotFound && inSession) {
			return &refusal{fault(answer.Error), &statusError{status: resp.StatusCode}}
		}
	}
	if resp.StatusCode == http.StatusNotFound && inSession {
		// In this order: of this call it is known that it was not done, and its caller
		// must not find the session alive.
		then := x.link.peer.end(x.id, event{err: &lostError{cause: errSessionGone}})
		x.link.peer.lose(errSessionGone)
		then()
		return nil
	}
	return x.link.statusError(resp.StatusCode, bytes.NewReader(head))
}

// A refusal is a JSON-RPC error that came with a status of its own.
type refusal struct {
	fault  error
	status *statusError
}

func (e *refusal) Error() string   { return e.fault.Error() }
func (e *refusal) Unwrap() []error { return []error{e.fault, e.status} }

// receive delivers the answer. A stream that breaks off is taken up again if the
// server gave its events numbers.
func (x *exchange) receive(ctx context.Context, resp *http.Response) error {
	body := bufio.NewReaderSize(resp.Body, 16<<10)
	// Servers exist that label one as the other, so the first byte decides.
	if first, err := body.Peek(1); err == nil && (first[0] == '{' || first[0] == '[') {
		return x.receiveJSON(body)
	}
	if !isEventStream(resp) {
		return x.receiveJSON(body)
	}
	end := readStream(body, x.deliver)
	for resumes := 0; !x.done(); resumes++ {
		if end.messages > 0 {
			resumes = 0
		}
		if end.id == "" || resumes == maxResumes {
			return &lostError{cause: fmt.Errorf("the stream ended before the answer%s", end.why()), sent: true}
		}
		delay := end.retry
		if delay == 0 {
			delay = time.Second
		}
		if err := pause(ctx, delay); err != nil {
			return err
		}
		end = x.resume(ctx, end)
	}
	return nil
}

func (x *exchange) resume(ctx context.Context, end streamEnd) streamEnd {
	header := x.link.header()
	header.Set("Last-Event-Id", end.id)
	end.messages = 0
	resp, err := x.link.get(ctx, x.link.server.URL, header)
	if err != nil {
		end.err = err
		return end
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !isEventStream(resp) {
		end.err = &statusError{status: resp.StatusCode}
		return end
	}
	next := readStream(resp.Body, x.deliver)
	if next.id == "" {
		next.id = end.id
	}
	if next.retry == 0 {
		next.retry = end.retry
	}
	return next
}

func (x *exchange) done() bool { return x.link.peer.find(x.id) == nil }

func (x *exchange) deliver(msg jsonrpc.Message) {
	if answer, ok := msg.(*jsonrpc.Response); ok && answer.ID == requestID(x.id) {
		x.answered.Store(true)
	}
	if then := x.link.peer.deliver(msg, x.link.peer.find(x.id)); then != nil {
		then() // right here: nobody else waits for this stream
	}
}

func (x *exchange) receiveJSON(body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if err != nil {
		return &lostError{cause: err, sent: true}
	}
	if len(text) > maxBody {
		return fmt.Errorf("the answer is longer than %d MB", maxBody>>20)
	}
	messages, err := decodeText(text)
	if err != nil {
		if len(bytes.TrimSpace(text)) == 0 {
			return &lostError{cause: errors.New("the server sent no answer"), sent: true}
		}
		return fmt.Errorf("the server's answer is not JSON-RPC (%w); it begins with %q", err, core.Clip(x.link.masked(string(text[:min(len(text), 400)])), 100))
	}
	for _, msg := range messages {
		x.deliver(msg)
	}
	if !x.done() {
		return errors.New("the server's answer is to another request")
	}
	return nil
}

// decodeText decodes a message, or a batch of them, that may be spread over
// lines. The lines are joined, since on our own wires a message is one line.
func decodeText(text []byte) ([]jsonrpc.Message, error) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	if bytes.ContainsAny(text, "\r\n") {
		var line bytes.Buffer
		if err := json.Compact(&line, text); err != nil {
			return nil, err
		}
		text = line.Bytes()
	}
	parts := []json.RawMessage{text}
	if rawjson.KindOf(text) == rawjson.Array {
		var err error
		if parts, err = rawjson.Elements(text); err != nil {
			return nil, err
		}
	}
	messages := make([]jsonrpc.Message, 0, len(parts))
	for _, part := range parts {
		msg, err := wire.Decode(part)
		if err != nil {
			return nil, err
		}
		messages = append(messages, msg)
	}
	return messages, nil
}
