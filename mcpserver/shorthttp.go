package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core/wire"
)

// The SDK makes a session, or a stream, and their goroutines for each request, which
// costs many times what a small tool does. So a plain tools/call is answered before
// it. All else, and every error of the protocol, is left to the SDK, with the body
// as it was.

// serveShort answers a plain call of the revision without sessions, and reports
// whether the request is one.
func (e *endpoint) serveShort(w http.ResponseWriter, r *http.Request) (bool, error) {
	if r.Header.Get(headerVersion) != modern || r.Header.Get(headerMethod) != methodCall || !isPlainPost(r) {
		return false, nil
	}
	req, err := readRequest(w, r)
	if req == nil || err != nil {
		return false, err
	}
	params, ok := plainCallOf(req)
	if !ok || params.name != r.Header.Get(headerName) || !isPlainModern(params) {
		return false, nil
	}
	client, err := e.agent.client(r.Context(), nil)
	if err != nil {
		return false, nil
	}
	run := client.shortRun(r, params)
	if run == nil {
		return false, nil
	}
	run.modern = true
	run.respond(withTrace(r.Context(), nil, r.Header), w, req.ID)
	return true, nil
}

// serveShortSession is serveShort for a client that has a session. It takes what
// cancels a call of its own, too.
func (e *endpoint) serveShortSession(w http.ResponseWriter, r *http.Request, c *client) (bool, error) {
	init := c.session.InitializeParams()
	version := r.Header.Get(headerVersion)
	if init == nil || version != "" && version != init.ProtocolVersion ||
		init.Capabilities != nil && init.Capabilities.Elicitation != nil || !isPlainPost(r) {
		return false, nil
	}
	req, err := readRequest(w, r)
	if req == nil || err != nil {
		return false, err
	}
	if req.Method == methodCancelled && c.cancelCall(req.Params) {
		w.WriteHeader(http.StatusAccepted)
		return true, nil
	}
	params, ok := plainCallOf(req)
	if !ok || params.token != nil || !params.legacy() {
		return false, nil
	}
	run := c.shortRun(r, params)
	if run == nil {
		return false, nil
	}
	// Who is disconnected has not cancelled, in these revisions.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	if !c.beginCall(req.ID, cancel) {
		return false, nil
	}
	defer c.endCall(req.ID)
	run.respond(withTrace(ctx, nil, r.Header), w, req.ID)
	return true, nil
}

// shortRun prepares a call that came over HTTP; nil if there is no such tool.
func (c *client) shortRun(r *http.Request, params plainCall) *running {
	run := c.plainRun(params)
	if run != nil {
		run.seen.principal, run.seen.request = principalOf(r.Context()).name, r.Header.Get(headerRequest)
	}
	return run
}

// readRequest reads the message that the body is, and leaves it to be read again;
// nil if it is no request or notification, or more than one.
func readRequest(w http.ResponseWriter, r *http.Request) (*jsonrpc.Request, error) {
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	msg, err := wire.Decode(bytes.TrimSpace(body))
	if err != nil {
		return nil, nil
	}
	req, _ := msg.(*jsonrpc.Request)
	return req, nil
}

func plainCallOf(req *jsonrpc.Request) (plainCall, bool) {
	if !req.IsCall() || req.Method != methodCall {
		return plainCall{}, false
	}
	return parsePlainCall(req.Params)
}

// beginCall notes a call that its client may cancel; false if it has one of that id.
func (c *client) beginCall(id jsonrpc.ID, cancel context.CancelCauseFunc) bool {
	c.short.Lock()
	defer c.short.Unlock()
	if c.running[id] != nil {
		return false
	}
	if c.running == nil {
		c.running = map[jsonrpc.ID]context.CancelCauseFunc{}
	}
	c.running[id] = cancel
	return true
}

func (c *client) endCall(id jsonrpc.ID) {
	c.short.Lock()
	defer c.short.Unlock()
	delete(c.running, id)
}

// cancelCall obeys a notifications/cancelled, if it is about a noted call.
func (c *client) cancelCall(params json.RawMessage) bool {
	id, ok := cancelledID(params)
	if !ok {
		return false
	}
	c.short.Lock()
	defer c.short.Unlock()
	cancel := c.running[id]
	if cancel != nil {
		cancel(errCancelled)
	}
	return cancel != nil
}

// readBody reads the body and leaves it to be read again.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// isPlainPost reports whether the headers are those of a call as every client
// sends it.
func isPlainPost(r *http.Request) bool {
	h := r.Header
	if r.Method != http.MethodPost || h.Get("Last-Event-ID") != "" {
		return false
	}
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	accept := strings.Join(h.Values("Accept"), ",")
	return err == nil && media == "application/json" && !strings.Contains(accept, ";") &&
		strings.Contains(accept, "application/json") && strings.Contains(accept, eventStream)
}

// isPlainModern reports whether a call says of itself what the revision asks for,
// and wants nothing for which the client would have to be spoken to meanwhile.
func isPlainModern(c plainCall) bool {
	if c.token != nil || c.meta[traceParent] != nil || string(c.meta[mcp.MetaKeyProtocolVersion]) != strconv.Quote(modern) {
		return false
	}
	var info *mcp.Implementation
	if json.Unmarshal(c.meta[mcp.MetaKeyClientInfo], &info) != nil || info == nil {
		return false
	}
	var can *mcp.ClientCapabilities
	if json.Unmarshal(c.meta[mcp.MetaKeyClientCapabilities], &can) != nil || can == nil || can.Elicitation != nil {
		return false
	}
	//lint:ignore SA1019 clients send it as long as it is there
	return isLogLevel(c.meta[mcp.MetaKeyLogLevel])
}

// isLogLevel reports whether raw is absent or a level: the SDK refuses others.
func isLogLevel(raw json.RawMessage) bool {
	switch strings.Trim(string(raw), `"`) {
	case "", "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency":
		return true
	}
	return false
}

// respond runs the call and sends its result. Of one that was cancelled nobody will
// look at it, but a response without an answer looks to some clients like an end of
// the connection.
func (run *running) respond(ctx context.Context, w http.ResponseWriter, id jsonrpc.ID) {
	to := newResponse(w)
	defer to.stop()
	ctx, cancel := run.client.during(ctx)
	defer cancel(nil)
	res := run.run(ctx, nil)
	message := &jsonrpc.Response{ID: id}
	members, err := encodeResult(res)
	if err == nil {
		raw := &rawResult{modern: run.modern, members: members}
		if run.modern {
			raw.Meta = mcp.Meta{mcp.MetaKeyServerInfo: run.agent.info}
		}
		message.Result, err = raw.MarshalJSON()
	}
	message.Error = err
	encoded, err := wire.Append(nil, message)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	to.send(encoded)
}

// A response is one answer: JSON if it is there soon, and else an event stream, which
// is kept alive until then.
type response struct {
	w     http.ResponseWriter
	timer *time.Timer

	mu      sync.Mutex
	streams bool
	sent    bool
}

// soon is how long the answer to a request may take without a sign of life.
const soon = keepAlive / 3

func newResponse(w http.ResponseWriter) *response {
	a := &response{w: w}
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	a.timer = time.AfterFunc(soon, a.stream)
	return a
}

// stream begins an event stream.
func (a *response) stream() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sent {
		return
	}
	a.streams = true
	a.w.Header().Set("Content-Type", eventStream)
	a.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(a.w).Flush() // an error means that the client is gone
}

func (a *response) send(message []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = true
	if a.streams {
		message = append(append([]byte("event: message\ndata: "), message...), "\n\n"...)
	} else {
		a.w.Header().Set("Content-Type", "application/json")
		a.w.Header().Set("Content-Length", strconv.Itoa(len(message)))
	}
	_, _ = a.w.Write(message) // an error means that the client is gone
}

func (a *response) stop() {
	a.timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = true // a timer that is too late does nothing
}
