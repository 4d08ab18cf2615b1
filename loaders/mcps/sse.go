package mcps

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"zenmcp/core/wire"
)

func isEventStream(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// An event of a stream, as the HTML standard defines it.
type sseEvent struct {
	name  string // "" means message
	id    string
	retry time.Duration
	data  []byte
}

var errEventTooLong = fmt.Errorf("an event is longer than %d MB", maxBody>>20)

// An sseReader takes a stream of events apart.
type sseReader struct{ r *bufio.Reader }

func newSSEReader(r io.Reader) *sseReader {
	if br, ok := r.(*bufio.Reader); ok {
		return &sseReader{br}
	}
	return &sseReader{bufio.NewReaderSize(r, 16<<10)}
}

// next reads one event. Comments, and events that nothing came of, are skipped.
// An event that the end of the stream cuts off is none.
func (s *sseReader) next() (sseEvent, error) {
	var e sseEvent
	any := false
	for {
		line, err := s.line()
		if err != nil {
			return sseEvent{}, err
		}
		if len(line) == 0 {
			if any {
				return e, nil
			}
			continue
		}
		if len(e.data)+len(line) > maxBody {
			return sseEvent{}, errEventTooLong
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
		case "event":
			e.name = string(value)
		case "id":
			e.id = string(value)
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		default:
			continue // a comment, or a field of the future
		}
		any = true
	}
}

// line reads a line without its end. It is valid until the next call.
func (s *sseReader) line() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) && len(long) <= maxBody {
			line, err = s.r.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
}

// A streamEnd tells how far a stream came.
type streamEnd struct {
	id       string        // of the last event that has one
	retry    time.Duration // what the server asked to wait; 0 if nothing
	messages int
	err      error // io.EOF at a proper end
}

func (e streamEnd) why() string {
	if e.err == nil || errors.Is(e.err, io.EOF) {
		return ""
	}
	return ": " + e.err.Error()
}

// readStream hands on the messages of a stream until its end. What is no message
// is passed over, like noise on a child's stdout.
func readStream(r io.Reader, deliver func(jsonrpc.Message)) streamEnd {
	var end streamEnd
	events := newSSEReader(r)
	for {
		e, err := events.next()
		if err != nil {
			end.err = err
			return end
		}
		if e.id != "" {
			end.id = e.id
		}
		if e.retry > 0 {
			end.retry = e.retry
		}
		if len(e.data) == 0 || e.name != "" && e.name != "message" {
			continue
		}
		messages, err := decodeText(e.data)
		if err != nil {
			continue
		}
		for _, msg := range messages {
			end.messages++
			deliver(msg)
		}
	}
}

// An sseLink is the HTTP transport of 2024-11-05: one stream of a GET brings
// everything, and names the address to which messages are posted.
type sseLink struct {
	httpEnd
	log     *slog.Logger
	address string // to post to
}

// openSSE opens the stream and waits for the address.
func openSSE(ctx context.Context, s *session, w *wallet) error {
	l := &sseLink{httpEnd: newHTTPEnd(s.server, w), log: s.log}
	s.peer.link = l
	resp, err := l.get(l.ctx, s.server.URL, http.Header{})
	if err != nil {
		return err
	}
	// Only the wait for the address is the caller's; the stream lives longer.
	stop := context.AfterFunc(ctx, l.cancel)
	err = l.begin(resp, s.peer)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		resp.Body.Close()
	}
	return err
}

// begin reads up to the endpoint event, and leaves the rest to a goroutine.
func (l *sseLink) begin(resp *http.Response, p *peer) error {
	refused := l.wantsSignIn(resp)
	switch {
	case refused != nil:
		return refused
	case resp.StatusCode != http.StatusOK:
		return l.statusError(resp.StatusCode, resp.Body)
	case !isEventStream(resp):
		return fmt.Errorf("the answer to a GET is %q, not a stream of events", resp.Header.Get("Content-Type"))
	}
	body := bufio.NewReaderSize(resp.Body, 16<<10)
	events := newSSEReader(body)
	for l.address == "" {
		e, err := events.next()
		if err != nil {
			return fmt.Errorf("the stream ended before it named an address: %w", err)
		}
		if e.name == "endpoint" {
			if l.address, err = l.resolve(string(e.data)); err != nil {
				return err
			}
		}
	}
	go func() {
		defer resp.Body.Close()
		end := readStream(body, p.deliverApart)
		p.lose(fmt.Errorf("the server's stream ended%s", end.why()))
	}()
	return nil
}

// resolve takes the address of the endpoint event, which must be the server's
// own: our headers go there.
func (l *sseLink) resolve(ref string) (string, error) {
	base, err := url.Parse(l.server.URL)
	if err != nil {
		return "", err
	}
	u, err := base.Parse(strings.TrimSpace(ref))
	if err != nil {
		return "", fmt.Errorf("the server named an address that is none: %w", err)
	}
	if u.Host != base.Host || u.Scheme != base.Scheme {
		return "", fmt.Errorf("the server named an address of another host, %q", withoutSecrets(u))
	}
	return u.String(), nil
}

func (l *sseLink) ready(string) {}

func (l *sseLink) send(ctx context.Context, msg jsonrpc.Message, r *request) error {
	body, err := wire.Append(nil, msg)
	if err != nil {
		return err
	}
	// The answer comes on the other stream and may be there first, which ends ctx. A
	// request that is cut off then takes a connection with it that serves others.
	own, cancel := context.WithCancel(l.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(max(lateEnd, r.delivery.left()), cancel) })()
	resp, err := l.doPost(own, l.address, http.Header{"Content-Type": {"application/json"}}, body, r.delivery)
	if err != nil {
		return &lostError{cause: err, sent: !isDial(err)}
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can serve again
	if refused := l.wantsSignIn(resp); refused != nil {
		return refused
	}
	if resp.StatusCode > 299 {
		return &statusError{status: resp.StatusCode}
	}
	return nil
}

func (l *sseLink) post(ctx context.Context, msg jsonrpc.Message, r *request, failed func(error) func()) {
	r.delivery = newDelivery()
	apart(ctx, func(ctx context.Context) error { return l.send(ctx, msg, r) }, failed)
}

func (l *sseLink) abandon(ctx context.Context, c *pending, reason string) error {
	if !c.req.delivery.await(ctx) {
		return nil
	}
	return l.send(ctx, cancelled(c.id, reason), &request{})
}

func (l *sseLink) close() error {
	l.cancel()
	l.client.CloseIdleConnections()
	return nil
}
