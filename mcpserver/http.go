package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerName    = "Mcp-Name"

	// maxBody is the most that one HTTP request may carry, in bytes.
	maxBody = 64 << 20
	// keepAlive is how long an event stream may be silent: proxies cut silent
	// ones after a minute or less.
	keepAlive = 15 * time.Second
)

// Handler serves all agents over streamable HTTP: the first at /mcp, each one at
// /mcp/ID, and /healthz. One endpoint serves every revision of the protocol.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	for i, a := range s.agents {
		e := newEndpoint(a)
		mux.Handle("/mcp/"+a.definition.ID, e)
		if i == 0 {
			mux.Handle("/mcp", e)
		}
	}
	return mux
}

// ServeHTTP serves [Server.Handler] on a listener until ctx ends, then shuts down:
// it stops accepting, ends the calls and the streams, and returns nil.
func (s *Server) ServeHTTP(ctx context.Context, l net.Listener) error {
	// No write timeout: event streams live as long as their clients.
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(l) }()
	select {
	case err := <-stopped:
		return errors.Join(err, s.Close())
	case <-ctx.Done():
	}
	s.shutdown(errShutdown)
	s.clients.close()
	grace, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	return errors.Join(err, s.Close())
}

// An endpoint is one agent's address. The SDK serves either the revisions with
// sessions or the one without; the endpoint tells the requests apart.
type endpoint struct {
	agent                 *agent
	sessions, sessionless http.Handler
}

func newEndpoint(a *agent) *endpoint {
	get := func(*http.Request) *mcp.Server { return a.mcp }
	return &endpoint{
		agent: a,
		sessions: mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
			Logger: sdkLog(a.server.log), MaxRequestBodyBytes: maxBody,
		}),
		sessionless: mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
			Logger: sdkLog(a.server.log), MaxRequestBodyBytes: maxBody, Stateless: true,
			// The specification makes closing the response the way to cancel.
			PropagateRequestCancellation: true,
		}),
	}
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host) {
		http.Error(w, fmt.Sprintf("origin %q is not allowed here", origin), http.StatusForbidden)
		return
	}
	sessionless, err := isSessionless(w, r)
	if err != nil {
		status := http.StatusBadRequest
		var tooBig *http.MaxBytesError
		if errors.As(err, &tooBig) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), status)
		return
	}
	stream := newStream(w)
	defer stream.stop()
	if sessionless {
		decodeName(r.Header)
		r.Header.Del(headerSession)
		e.sessionless.ServeHTTP(stream, r)
		return
	}
	if id := r.Header.Get(headerSession); id != "" {
		clients := &e.agent.server.clients
		c := clients.session(id, principalOf(r.Context()).name, e.agent)
		if c == nil {
			http.Error(w, "session not found: initialize a new one", http.StatusNotFound)
			return
		}
		// An open stream keeps a session too: its client listens.
		defer clients.use(c, false)()
		if r.Method == http.MethodDelete {
			c.cancel(errSessionEnded)
		}
	}
	e.sessions.ServeHTTP(stream, r)
}

// sameOrigin reports whether a page was served by this very host and port. It is
// safe because Host is checked too, by the SDK.
func sameOrigin(origin, host string) bool {
	_, at, ok := strings.Cut(origin, "://")
	return ok && at == host
}

// isSessionless decides which revision a request speaks. The header decides
// where there is one. Without it, the body does: a client of the new revision
// that forgot the header must hear so from the side that knows the rule.
func isSessionless(w http.ResponseWriter, r *http.Request) (bool, error) {
	version := r.Header.Get(headerVersion)
	switch {
	case version >= modern:
		return true, nil
	case r.Method != http.MethodPost, version != "" && r.Header.Get(headerSession) != "":
		return false, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return false, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var message struct {
		Method string `json:"method"`
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &message) != nil {
		return false, nil // the SDK says what is wrong with it
	}
	_, named := message.Params.Meta[mcp.MetaKeyProtocolVersion]
	return named || message.Method == "server/discover" || message.Method == "subscriptions/listen", nil
}

// decodeName decodes the Base64 form of Mcp-Name, which clients must use for
// names that are not ASCII and go-sdk v1.8.0 does not know.
func decodeName(h http.Header) {
	name, ok := strings.CutPrefix(h.Get(headerName), "=?base64?")
	if !ok {
		return
	}
	if name, ok = strings.CutSuffix(name, "?="); ok {
		if decoded, err := base64.StdEncoding.DecodeString(name); err == nil {
			h.Set(headerName, string(decoded))
		}
	}
}
