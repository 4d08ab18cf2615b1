package mcpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerName    = "Mcp-Name"
	headerMethod  = "Mcp-Method"

	methodCall      = "tools/call"
	methodCancelled = "notifications/cancelled"
	methodListen    = "subscriptions/listen"

	eventStream = "text/event-stream"

	// maxBody is the most that one HTTP request may carry, in bytes.
	maxBody = 64 << 20
	// keepAlive is how long an event stream may be silent: proxies cut silent
	// ones after a minute or less.
	keepAlive = 15 * time.Second
)

// HTTPOptions say who may come in over HTTP. The zero value lets everybody in who
// reaches the address.
type HTTPOptions struct {
	// Tokens are the credentials that are accepted now; nil are none.
	Tokens func() []Token
	// OAuthIssuer is the authorization server whose access tokens are accepted as
	// well, if not empty. Their audience must be PublicURL or an agent's address
	// below it.
	OAuthIssuer string
	// PublicURL is where clients find the server, if a proxy stands between.
	PublicURL string
	// AllowedHosts are names, with or without a port, that the Host header may
	// have besides localhost and addresses; "*" is any.
	AllowedHosts []string
	// AllowedOrigins are those whose web pages may call besides the server's own,
	// such as https://app.example; "*" is any.
	AllowedOrigins []string
}

// A gate decides which requests come in.
type gate struct {
	options HTTPOptions
	hosts   []string
	oauth   *oauth // nil without an issuer
	log     *slog.Logger
	metrics *metrics
}

func newGate(s *Server) *gate {
	g := &gate{options: s.options.HTTP, log: s.log, metrics: s.metrics, hosts: s.options.HTTP.AllowedHosts}
	if u, err := url.Parse(g.options.PublicURL); err == nil && u.Host != "" {
		g.hosts = append(slices.Clone(g.hosts), u.Host)
	}
	if g.options.OAuthIssuer != "" {
		g.oauth = newOAuth(g.options.OAuthIssuer, g.options.PublicURL, s.agents[0].id)
	}
	return g
}

// closed reports whether a credential is needed.
func (g *gate) closed() bool { return g.options.Tokens != nil || g.oauth != nil }

// guard lets requests through to next that come from where they may and say who
// sends them. Nothing of the body is read before.
func (g *gate) guard(next func(http.ResponseWriter, *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := g.checkHost(r)
		if why == nil {
			why = g.checkOrigin(w, r)
		}
		if why == nil && isPreflight(r) {
			answerPreflight(w, r)
			return
		}
		var who *principal
		if why == nil {
			who, why = g.authenticate(r)
		}
		if why != nil {
			g.refuse(w, r, why)
			return
		}
		if stream, ok := w.(*stream); ok {
			stream.principal = who.name
		}
		if who != anybody {
			r = r.WithContext(context.WithValue(r.Context(), principalKey{}, who))
		}
		next(w, r)
	})
}

func (g *gate) refuse(w http.ResponseWriter, r *http.Request, why *refusal) {
	g.log.Debug("refused", "status", why.status, "reason", why.text, "from", r.RemoteAddr)
	g.metrics.refused.WithLabelValues(why.reason).Inc()
	if why.status == http.StatusUnauthorized || why.code != "" {
		w.Header().Set("WWW-Authenticate", g.challenge(r, why))
	}
	http.Error(w, why.text, why.status)
}

// Handler serves all agents over streamable HTTP: the first at /mcp, each one at
// /mcp/ID; /healthz, /readyz, and /metrics for whoever may call. One endpoint serves every
// revision of the protocol. It is to be called once.
func (s *Server) Handler() http.Handler {
	s.metrics = newMetrics(s)
	g := newGate(s)
	endpoints := map[string]*endpoint{}
	for _, a := range s.agents {
		endpoints[a.id] = newEndpoint(a)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", g.guard(s.metrics.handler().ServeHTTP))
	if g.oauth != nil {
		mux.HandleFunc(wellKnown, g.oauth.serveMetadata)
		mux.HandleFunc(wellKnown+"/", g.oauth.serveMetadata)
	}
	serve := g.guard(func(w http.ResponseWriter, r *http.Request) {
		e := endpoints[cmp.Or(r.PathValue("agent"), s.agents[0].id)]
		if e == nil {
			http.NotFound(w, r)
			return
		}
		if why := g.authorize(principalOf(r.Context()), e.agent); why != nil {
			g.refuse(w, r, why)
			return
		}
		e.ServeHTTP(w, r)
	})
	mux.Handle("/mcp", serve)
	mux.Handle("/mcp/{agent}", serve)
	return s.entrance(mux)
}

// ready answers 200 as long as new calls are welcome.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ready\n")
}

// entrance is where every request comes in: it gets a name and, for debugging, a
// line in the log.
func (s *Server) entrance(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := r.Header.Get(headerRequest)
		if id == "" || len(id) > 128 {
			id = rand.Text()
			r.Header.Set(headerRequest, id)
		}
		w.Header().Set(headerRequest, id)
		if s.draining.Load() {
			w.Header().Set("Connection", "close") // the next request goes elsewhere
		}
		stream := newStream(w, s.writeLimit)
		defer func() {
			stream.stop()
			s.log.Debug("request", "id", id, "method", r.Method, "path", r.URL.Path, "status", stream.status, "principal", stream.principal,
				"from", r.RemoteAddr, "took", time.Since(began))
		}()
		next.ServeHTTP(stream, r)
	})
}

// An endpoint is one agent's address. The SDK serves either the revisions with
// sessions or the one without; the endpoint tells the requests apart.
type endpoint struct {
	agent                 *agent
	sessions, sessionless http.Handler
}

// newEndpoint makes the endpoint of an agent. The gate checks what the SDK's
// protection of localhost would.
func newEndpoint(a *agent) *endpoint {
	get := func(*http.Request) *mcp.Server { return a.mcp }
	return &endpoint{
		agent: a,
		sessions: mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
			Logger: sdkLog(a.server.log), MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true,
		}),
		sessionless: mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
			Logger: sdkLog(a.server.log), MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true, Stateless: true,
			// The specification makes closing the response the way to cancel.
			PropagateRequestCancellation: true,
		}),
	}
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// What answers soon is worth waiting for when the server shuts down.
	if r.Method == http.MethodPost && r.Header.Get(headerMethod) != methodListen {
		defer e.agent.server.work.begin()()
	}
	sessionless, err := isSessionless(w, r)
	if err == nil && sessionless {
		err = e.serveSessionless(w, r)
	} else if err == nil {
		err = e.serveSession(w, r)
	}
	if err != nil { // of the body, before anything else
		status := http.StatusBadRequest
		var tooBig *http.MaxBytesError
		if errors.As(err, &tooBig) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), status)
	}
}

func (e *endpoint) serveSessionless(w http.ResponseWriter, r *http.Request) error {
	decodeName(r.Header)
	r.Header.Del(headerSession)
	done, err := e.serveShort(w, r)
	if err == nil && !done {
		e.sessionless.ServeHTTP(w, r)
	}
	return err
}

func (e *endpoint) serveSession(w http.ResponseWriter, r *http.Request) error {
	if id := r.Header.Get(headerSession); id != "" {
		clients := &e.agent.server.clients
		c := clients.session(id, principalOf(r.Context()).name, e.agent)
		if c == nil {
			e.agent.server.metrics.refused.WithLabelValues("session").Inc()
			http.Error(w, "session not found: initialize a new one", http.StatusNotFound)
			return nil
		}
		// An open stream keeps a session too: its client listens.
		defer clients.use(c, false)()
		if r.Method == http.MethodDelete {
			c.cancel(errSessionEnded)
		}
		if done, err := e.serveShortSession(w, r, c); done || err != nil {
			return err
		}
	}
	e.sessions.ServeHTTP(w, r)
	return nil
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
	body, err := readBody(w, r)
	if err != nil {
		return false, err
	}
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
	return named || message.Method == "server/discover" || message.Method == methodListen, nil
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
