package mcps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"zenmcp/core"
	"zenmcp/core/wire"
)

const (
	// maxBody is the longest answer, or event, that is taken, in bytes. It is
	// what is taken of a child.
	maxBody = wire.DefaultMaxLine
	// getTimeout is how long a server may take to answer a GET with headers.
	// Servers exist that never do (go-sdk's client then hangs for ever).
	getTimeout = 10 * time.Second
	// maxResumes is how often a stream that broke off is taken up again without
	// anything new coming.
	maxResumes = 5
	// lateEnd is how long the end of an answered stream is awaited, so that its
	// connection can serve the next call.
	lateEnd = 200 * time.Millisecond
)

// errSessionGone means that the server does not know our session any more, as
// after a restart. What was asked in it has not been done.
var errSessionGone = errors.New("the server does not know the session any more")

// A statusError is an HTTP status where an answer belongs.
type statusError struct {
	status int
	body   string // the beginning of what came with it
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("HTTP status %d %s", e.status, http.StatusText(e.status))
	if e.body != "" {
		text += ": " + e.body
	}
	return text
}

// statusError takes what came with a status, as far as it is there.
func (e *httpEnd) statusError(status int, body io.Reader) *statusError {
	head, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	text := e.masked(string(head)) // before it is cut, since half a secret is one too
	return &statusError{status, core.Clip(strings.Join(strings.Fields(text), " "), 200)}
}

// masked takes what only the server should know out of a text of its own.
func (e *httpEnd) masked(text string) string {
	return core.Masker(slices.Concat(e.server.secrets(), e.wallet.secrets())...).Replace(text)
}

// wantsSSE reports the statuses with which a server of the older HTTP transport
// refuses the newer one.
func (e *statusError) wantsSSE() bool {
	switch e.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable:
		return true
	}
	return false
}

// An authError is a refusal for want of a sign-in. It is a tool's error, never
// an HTTP status of ours.
type authError struct {
	status int
	header http.Header // of the response
}

func (e *authError) Error() string {
	return fmt.Sprintf("HTTP status %d: the server wants a sign-in", e.status)
}

// wantsSignIn makes an authError of a response that asks for a sign-in, or for
// one that permits more; nil of all others. Where the entry has a credential of its
// own nobody can sign in, and what the server says of that credential is the error.
func (e *httpEnd) wantsSignIn(resp *http.Response) *authError {
	for name := range e.server.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil
		}
	}
	short := resp.StatusCode == http.StatusForbidden && strings.Contains(resp.Header.Get("Www-Authenticate"), "insufficient_scope")
	if resp.StatusCode != http.StatusUnauthorized && !short {
		return nil
	}
	return &authError{status: resp.StatusCode, header: resp.Header}
}

// isDial reports that no connection could be made at all.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// An httpLink is streamable HTTP: each message is a POST, each answer comes on
// its response. In the legacy era there may be a session, and one more stream,
// of a GET, for what belongs to no call.
type httpLink struct {
	httpEnd
	peer *peer
	log  *slog.Logger

	mu        sync.Mutex
	sessionID string
	version   string
}

// httpEnd is what both HTTP transports have in common.
type httpEnd struct {
	server *Server
	wallet *wallet
	client *http.Client
	ctx    context.Context // ends with the link
	cancel context.CancelFunc
}

func newHTTPEnd(server *Server, w *wallet) httpEnd {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	transport.MaxIdleConns = 0
	ctx, cancel := context.WithCancel(context.Background())
	return httpEnd{server: server, wallet: w, ctx: ctx, cancel: cancel, client: &http.Client{Transport: transport, CheckRedirect: checkRedirect}}
}

// checkRedirect follows a server to another path of its own only. Headers, keys
// among them, do not go to strangers, and a POST does not become a GET.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 5:
		return errors.New("the server redirects without end")
	case req.Method != first.Method:
		return fmt.Errorf("the server redirects to %q; put that address into the entry", withoutSecrets(req.URL))
	case req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme && req.URL.Scheme != "https":
		return fmt.Errorf("the server redirects to another host, %q; put that address into the entry if you trust it", withoutSecrets(req.URL))
	}
	return nil
}

func withoutSecrets(u *url.URL) string {
	clean := *u
	clean.User, clean.RawQuery, clean.Fragment = nil, "", ""
	return clean.String()
}

// do sends a request with the entry's headers, or with our token, and takes the
// address, which may hold a key, out of errors. A token that is refused is
// renewed once.
func (e *httpEnd) do(req *http.Request) (*http.Response, error) {
	for name, value := range e.server.Headers {
		req.Header.Set(name, value)
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
	if req.Header.Get("Authorization") != "" {
		return e.plain(req)
	}
	if err := e.wallet.authorize(req.Context(), e.client, req); err != nil {
		return nil, err
	}
	resp, err := e.plain(req)
	used := req.Header.Get("Authorization")
	if err != nil || resp.StatusCode != http.StatusUnauthorized || used == "" {
		return resp, err
	}
	fresh, err := e.wallet.renew(req.Context(), e.client, used)
	if err != nil || !fresh {
		return resp, nil // the refusal says more
	}
	resp.Body.Close()
	again := req.Clone(req.Context())
	again.Header.Del("Authorization")
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	if err := e.wallet.authorize(again.Context(), e.client, again); err != nil {
		return nil, err
	}
	return e.plain(again)
}

func (e *httpEnd) plain(req *http.Request) (*http.Response, error) {
	resp, err := e.client.Do(req)
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return resp, err
}

// get opens a stream of events. The server has getTimeout for the headers.
func (e *httpEnd) get(ctx context.Context, address string, header http.Header) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(getTimeout, func() { cancel(fmt.Errorf("no answer to a GET within %v", getTimeout)) })
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("Accept", "text/event-stream")
	resp, err := e.do(req)
	if !timer.Stop() && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel(err)
		if resp != nil {
			resp.Body.Close()
		}
		return nil, err
	}
	resp.Body = &cancelBody{resp.Body, cancel}
	return resp, nil
}

// cancelBody ends the context of a request with its body.
type cancelBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *cancelBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

func openHTTP(s *session, w *wallet) {
	s.peer.link = &httpLink{httpEnd: newHTTPEnd(s.server, w), peer: s.peer, log: s.log}
}

func (l *httpLink) ready(version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = version
}

// header has what every message of ours carries.
func (l *httpLink) header() http.Header {
	h := http.Header{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.version != "" {
		h.Set("Mcp-Protocol-Version", l.version)
	}
	if l.sessionID != "" {
		h.Set("Mcp-Session-Id", l.sessionID)
	}
	return h
}

func (l *httpLink) send(ctx context.Context, msg jsonrpc.Message, r *request) error {
	body, err := wire.Append(nil, msg)
	if err != nil {
		return err
	}
	var id int64 // of a call; 0 for everything else
	if call, ok := msg.(*jsonrpc.Request); ok && call.IsCall() {
		id = call.ID.Raw().(int64)
	}
	x := &exchange{link: l, id: id, delivery: r.delivery}
	return x.run(ctx, body, l.requestHeader(r))
}

func (l *httpLink) post(ctx context.Context, msg jsonrpc.Message, r *request, failed func(error) func()) {
	l.mu.Lock()
	if l.version < modernVersion {
		r.delivery = newDelivery()
	}
	l.mu.Unlock()
	apart(ctx, func(ctx context.Context) error { return l.send(ctx, msg, r) }, failed)
}

func (l *httpLink) requestHeader(r *request) http.Header {
	h := l.header()
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if h.Get("Mcp-Protocol-Version") < modernVersion || r.method == "" {
		return h
	}
	h.Set("Mcp-Method", r.method)
	if r.name != "" {
		h.Set("Mcp-Name", headerValue(r.name))
	}
	for name, values := range r.headers {
		h[name] = values
	}
	return h
}

func (l *httpLink) abandon(ctx context.Context, c *pending, reason string) error {
	if !c.req.delivery.await(ctx) {
		return nil // closing the POST has said it, or there was none
	}
	return l.send(ctx, cancelled(c.id, reason), &request{method: "notifications/cancelled"})
}

// close tells the server that the session is over, and ends all streams.
func (l *httpLink) close() error {
	header := l.header()
	if header.Get("Mcp-Session-Id") != "" && !errors.Is(l.peer.reason(), errSessionGone) {
		ctx, cancel := context.WithTimeout(l.ctx, time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodDelete, l.server.URL, nil)
		if err == nil {
			req.Header = header
			if resp, err := l.do(req); err == nil { // servers need not offer it, so how it ends does not matter
				resp.Body.Close()
			}
		}
	}
	l.cancel()
	l.client.CloseIdleConnections()
	return nil
}

// listen reads the GET stream for as long as the link lives. A server that has
// none says so with a status, and is not asked again.
func (l *httpLink) listen(open func()) {
	var last streamEnd
	for failures := 0; l.ctx.Err() == nil; failures++ {
		header := l.header()
		if last.id != "" {
			header.Set("Last-Event-Id", last.id)
		}
		resp, err := l.get(l.ctx, l.server.URL, header)
		open()
		switch {
		case err != nil:
			l.log.Debug("no stream for notifications", "error", l.masked(err.Error()))
			if failures == 0 {
				return
			}
		case resp.StatusCode == http.StatusNotFound && header.Get("Mcp-Session-Id") != "" && failures > 0:
			resp.Body.Close()
			l.peer.lose(errSessionGone)
			return
		case resp.StatusCode != http.StatusOK || !isEventStream(resp):
			resp.Body.Close()
			return
		default:
			end := readStream(resp.Body, l.peer.deliverApart)
			resp.Body.Close()
			if end.id != "" {
				last.id = end.id
			}
			last.retry = end.retry
			if end.messages > 0 {
				failures = 0
			}
		}
		delay := last.retry
		if delay == 0 {
			delay = min(time.Second<<min(failures, 5), 30*time.Second)
		}
		if pause(l.ctx, delay) != nil {
			return
		}
		// What was said in between is not known.
		l.peer.other(&jsonrpc.Request{Method: "notifications/tools/list_changed"}, nil)
	}
}
