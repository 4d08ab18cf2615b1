package mcps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"zenmcp/core"
)

// A link carries JSON-RPC messages to one server: a child's pipes, or HTTP. What
// comes back it hands to [peer.deliver], in the order of the wire.
type link interface {
	// send carries one message to the server. For a request it may block until
	// the answer has been delivered, and ends soon after ctx does.
	send(ctx context.Context, msg jsonrpc.Message, r *request) error
	// post is send for a caller that does not wait, not even for a server that does
	// not read. failed is told of an error, at most once, and what it returns is done
	// once it is settled whether the connection is over as well.
	post(ctx context.Context, msg jsonrpc.Message, r *request, failed func(error) (then func()))
	// ready says which revision is spoken from now on: "" before a handshake.
	ready(version string)
	// abandon tells the server that nobody waits for the call any more.
	abandon(ctx context.Context, c *pending, reason string) error
	// close ends the connection and what belongs to it.
	close() error
}

// A request is what the caller of a method says about it.
type request struct {
	method string
	fields []byte // the members of params, without the braces
	meta   []byte // the members of params._meta, without the braces
	// progress asks the server for progress, which keeps the call alive, and is
	// told of it. Nil asks for none.
	progress func(core.Progress)
	// ask puts an elicitation to the user of whoever called; nil if nobody can
	// be asked. client tells callers apart.
	ask    func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	client any

	timeout    time.Duration // of silence; 0 means none
	maxTimeout time.Duration // in all; 0 means none

	name    string      // of the tool or resource, for the header Mcp-Name
	headers http.Header // further headers of a call over HTTP

	delivery *delivery // set by links over HTTP
}

// A peer is our end of a connection: it numbers requests and finds, for what
// comes back, the call that it belongs to. Results are the server's own bytes.
type peer struct {
	link link
	// other gets every notification and request but progress. It is called by
	// the goroutine that reads, so it must be quick. call is the call whose
	// stream brought the message, nil when that cannot be told.
	other func(msg *jsonrpc.Request, call *pending)

	mu    sync.Mutex
	last  int64
	calls map[int64]*pending
	watch watch
	err   error         // why the connection is over; set before done is closed
	done  chan struct{} // closed when it is over

	farewells int           // messages about abandoned calls that are on their way
	quiet     chan struct{} // if not nil, closed when there are none
}

func newPeer(other func(*jsonrpc.Request, *pending)) *peer {
	p := &peer{other: other, calls: map[int64]*pending{}, done: make(chan struct{})}
	p.watch.calls = p.open
	return p
}

// A lostError ends calls whose connection ended.
type lostError struct {
	cause error
	// sent says that the server may have got the request, and so may have done
	// what was asked.
	sent bool
}

func (e *lostError) Error() string { return e.cause.Error() }
func (e *lostError) Unwrap() error { return e.cause }

// maxData is how many bytes of a JSON-RPC error's data are shown.
const maxData = 2000

// A faultError is a JSON-RPC error of the server's.
type faultError struct {
	code    int64
	message string
	data    json.RawMessage
}

func (e *faultError) Error() string {
	text := strings.TrimSpace(e.message)
	if text == "" {
		text = "an error without a message"
	}
	if data := string(e.data); data != "" && data != "null" {
		if len(data) > maxData { // between words, since half a secret would not be masked
			data = data[:strings.LastIndexAny(data[:maxData], ` ",:`)+1] + "…"
		}
		text += ": " + data
	}
	return fmt.Sprintf("%s (JSON-RPC error %d)", text, e.code)
}

// fault is err with our words, if it is a JSON-RPC error.
func fault(err error) error {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return &faultError{e.Code, e.Message, e.Data}
	}
	return err
}

// A silenceError ends a call that ran into one of its limits.
type silenceError struct {
	limit time.Duration
	total bool // the cap of the whole call, not the limit of silence
}

func (e *silenceError) Error() string {
	if e.total {
		return fmt.Sprintf("not done after %v, the maxTotalTimeout of its entry", e.limit)
	}
	return fmt.Sprintf("no answer and no progress for %v, the timeout of its entry", e.limit)
}

// call sends a request and waits for its result.
func (p *peer) call(ctx context.Context, r *request) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := p.register(ctx, r)
	if err != nil {
		return nil, err
	}
	msg := &jsonrpc.Request{ID: requestID(c.id), Method: r.method, Params: r.params(c.id)}
	p.link.post(ctx, msg, r, func(err error) func() { return p.end(c.id, event{err: err}) })
	result, err := c.wait(p)
	cancel() // what is not sent yet is not sent after its own cancellation
	if p.forget(c.id) {
		p.abandon(c, err)
	}
	return result, err
}

func (p *peer) register(ctx context.Context, r *request) (*pending, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, &lostError{cause: p.err}
	}
	p.last++
	c := &pending{id: p.last, req: r, ctx: ctx, Parker: core.ParkerOf(ctx)}
	c.limits.start(r)
	p.calls[c.id] = c
	return c, nil
}

// forget reports whether the call was still without an answer.
func (p *peer) forget(id int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, open := p.calls[id]
	delete(p.calls, id)
	return open
}

// abandon tells the server, without keeping the caller waiting.
func (p *peer) abandon(c *pending, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.farewells++
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		// Nobody is left to tell if it fails, and a server need not obey.
		_ = p.link.abandon(ctx, c, why.Error())

		p.mu.Lock()
		defer p.mu.Unlock()
		if p.farewells--; p.farewells == 0 && p.quiet != nil {
			close(p.quiet)
			p.quiet = nil
		}
	}()
}

// settle waits, for d at most, until the server has heard what was given up: it
// may otherwise work on for nobody.
func (p *peer) settle(d time.Duration) {
	p.mu.Lock()
	if p.farewells == 0 {
		p.mu.Unlock()
		return
	}
	quiet := make(chan struct{})
	p.quiet = quiet
	p.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-quiet:
	case <-timer.C:
	}
}

// open lists the calls without an answer.
func (p *peer) open() []*pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.calls))
}

// apart sends on a goroutine of its own. What ends because the call was given up is
// no answer to it: the server has to be told.
func apart(ctx context.Context, send func(context.Context) error, failed func(error) (then func())) {
	ctx = core.Apart(ctx)
	go func() {
		if err := send(ctx); err != nil && ctx.Err() == nil {
			failed(err)()
		}
	}()
}

// params joins the members of params and of _meta.
func (r *request) params(id int64) json.RawMessage {
	if r.progress == nil && len(r.meta) == 0 {
		if len(r.fields) == 0 {
			return nil
		}
		return slices.Concat([]byte{'{'}, r.fields, []byte{'}'})
	}
	out := make([]byte, 0, len(r.fields)+len(r.meta)+64)
	out = append(append(out, '{'), r.fields...)
	if len(r.fields) > 0 {
		out = append(out, ',')
	}
	out = append(out, `"_meta":{`...)
	if r.progress != nil {
		out = strconv.AppendInt(append(out, `"progressToken":`...), id, 10)
		if len(r.meta) > 0 {
			out = append(out, ',')
		}
	}
	return append(append(out, r.meta...), "}}"...)
}

func requestID(n int64) jsonrpc.ID {
	id, err := jsonrpc.MakeID(float64(n))
	if err != nil {
		panic("mcps: a number is a valid request ID: " + err.Error())
	}
	return id
}

// notify sends a notification.
func (p *peer) notify(ctx context.Context, method string, params json.RawMessage) error {
	return p.link.send(ctx, &jsonrpc.Request{Method: method, Params: params}, &request{method: method})
}

// respond answers a request of the server's.
func (p *peer) respond(ctx context.Context, id jsonrpc.ID, result json.RawMessage, fault *jsonrpc.Error) {
	msg := &jsonrpc.Response{ID: id, Result: result}
	if fault != nil {
		msg.Result, msg.Error = nil, fault
	}
	// If it cannot be sent the connection is ending, which has its own news.
	_ = p.link.send(ctx, msg, &request{})
}

// deliver takes one message from the server. call is the call on whose stream it
// came, nil when the stream serves all. What it returns, if not nil, wakes a caller
// and may take as long as that likes: a caller may be run until it has to wait again,
// which includes what it tells its own client. It is for a goroutine that nobody else
// needs meanwhile.
func (p *peer) deliver(msg jsonrpc.Message, call *pending) (then func()) {
	switch msg := msg.(type) {
	case *jsonrpc.Response:
		if id, ok := msg.ID.Raw().(int64); ok {
			return p.end(id, event{result: msg.Result, err: fault(msg.Error)})
		}
	case *jsonrpc.Request:
		if msg.Method == "notifications/progress" && !msg.IsCall() {
			return p.progress(msg.Params)
		}
		p.other(msg, call)
	}
	return nil
}

// deliverApart is deliver for a stream that serves all calls.
func (p *peer) deliverApart(msg jsonrpc.Message) {
	if then := p.deliver(msg, nil); then != nil {
		go then()
	}
}

// end ends a call, if it was not given up. The caller hears of it by then, or when
// the connection is over if that comes first: who learns that a call was not done
// makes it again, and must not find the connection alive.
func (p *peer) end(id int64, e event) (then func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[id]
	if c == nil {
		return func() {}
	}
	delete(p.calls, id)
	e.end = true
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = &e
	return c.finish
}

func (p *peer) progress(params json.RawMessage) (then func()) {
	var n struct {
		Token    any     `json:"progressToken"`
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
		Message  string  `json:"message"`
	}
	if json.Unmarshal(params, &n) != nil {
		return nil
	}
	id, ok := n.Token.(float64)
	if !ok {
		return nil
	}
	p.mu.Lock()
	c := p.calls[int64(id)]
	p.mu.Unlock()
	if c == nil || c.req.progress == nil {
		return nil
	}
	c.add(event{progress: &core.Progress{Done: n.Progress, Total: n.Total, Message: n.Message}})
	return c.Unpark
}

// find returns the pending call of that number, or nil.
func (p *peer) find(id int64) *pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[id]
}

// lose ends the connection for all calls. The first reason counts.
func (p *peer) lose(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.err = err
	close(p.done)
	p.watch.stop()
	for _, c := range p.calls {
		go c.Unpark() // each may want to connect anew
	}
}

// reason is why the connection is over, nil while it is not.
func (p *peer) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// errAmbiguous means that a question cannot be brought to the one it is for.
var errAmbiguous = errors.New("several clients use this connection at once, so it is not known whom to ask")

// asker finds the call that an elicitation without a stream of its own belongs
// to: the latest that can ask. With calls of several clients in flight there is
// no telling, and a guess would show one user another's business.
func (p *peer) asker() (*pending, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var latest *pending
	var client any
	for _, c := range p.calls {
		if c.req.client == nil {
			continue
		}
		if client != nil && client != c.req.client {
			return nil, errAmbiguous
		}
		client = c.req.client
		if c.req.ask != nil && (latest == nil || c.id > latest.id) {
			latest = c
		}
	}
	return latest, nil
}
