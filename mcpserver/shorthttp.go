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

	"zenmcp/core/rawjson"
	"zenmcp/core/wire"
)

// serveShort answers a plain tools/call of the revision without sessions, and
// reports whether the request is one. The SDK makes a session for each request,
// which costs many times what a small tool does. All else, and every error of the
// protocol, is left to it, with the body as it was.
func (e *endpoint) serveShort(w http.ResponseWriter, r *http.Request) (bool, error) {
	if !isPlainPost(r) {
		return false, nil
	}
	body, err := readBody(w, r)
	if err != nil {
		return false, err
	}
	msg, err := wire.Decode(bytes.TrimSpace(body))
	if err != nil {
		return false, nil
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() || req.Method != methodCall {
		return false, nil
	}
	params, ok := parsePlainCall(req.Params)
	if !ok || params.name != r.Header.Get(headerName) || !isPlainModern(params) {
		return false, nil
	}
	client, err := e.agent.client(r.Context(), nil)
	if err != nil {
		return false, nil
	}
	v, err := client.open()
	if err != nil {
		return false, nil
	}
	tool, ok := v.published.Tool(params.name)
	if !ok {
		return false, nil
	}
	run := &running{agent: e.agent, client: client, tool: tool, modern: true, seen: e.agent.observed(params.name, params.arguments)}
	run.seen.principal, run.seen.request = principalOf(r.Context()).name, r.Header.Get(headerRequest)
	run.respond(w, r, req.ID)
	return true, nil
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
	if r.Method != http.MethodPost || h.Get(headerVersion) != modern || h.Get(headerMethod) != methodCall || h.Get("Last-Event-ID") != "" {
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
	if c.token != nil || c.meta[traceParent] != nil || string(c.meta[mcp.MetaKeyProtocolVersion]) != strconv.Quote(modern) ||
		rawjson.KindOf(c.meta[mcp.MetaKeyClientInfo]) != rawjson.Object {
		return false
	}
	capabilities, err := rawjson.Members(c.meta[mcp.MetaKeyClientCapabilities])
	for _, m := range capabilities {
		if m.Name == "elicitation" {
			return false
		}
	}
	//lint:ignore SA1019 clients send it as long as it is there
	return err == nil && isLogLevel(c.meta[mcp.MetaKeyLogLevel])
}

// isLogLevel reports whether raw is absent or a level: the SDK refuses others.
func isLogLevel(raw json.RawMessage) bool {
	switch strings.Trim(string(raw), `"`) {
	case "", "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency":
		return true
	}
	return false
}

// respond runs the call and sends its result.
func (run *running) respond(w http.ResponseWriter, r *http.Request, id jsonrpc.ID) {
	to := newResponse(w)
	defer to.stop()
	ctx, cancel := context.WithCancelCause(withTrace(r.Context(), nil, r.Header))
	defer cancel(nil)
	defer context.AfterFunc(run.client.ctx, func() { cancel(context.Cause(run.client.ctx)) })()
	res := run.run(ctx, nil)
	if r.Context().Err() != nil {
		return // nobody is there any more
	}
	message := &jsonrpc.Response{ID: id}
	members, err := encodeResult(res)
	if err == nil {
		raw := &rawResult{modern: true, members: members}
		raw.Meta = mcp.Meta{mcp.MetaKeyServerInfo: run.agent.info}
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
