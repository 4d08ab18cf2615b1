package mcps

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"zenmcp/configs"
	"zenmcp/core/rawjson"
)

// Sign-in to HTTP servers. go-sdk finds the authorization server, registers the
// client and does the code flow with PKCE; what is ours is the loopback listener
// to which the browser comes back, and the tokens, which are kept in the home
// under mcp-oauth, one file for each address, for the user alone.
//
// A sign-in needs a person, so it is done only where [Options.SignIn] says how
// to reach one: `zen-mcp call load_mcp` in a terminal. A server process uses the
// tokens, and refreshes them; without any its error says what to run.

// tokenDir is where the tokens are, below the home (contract §10).
const tokenDir = "mcp-oauth"

// signInLimit is how long a person has for it.
const signInLimit = 5 * time.Minute

// A grant is what a token file says.
type grant struct {
	Server   string        `json:"server"` // the address it was given for; it goes nowhere else
	ClientID string        `json:"clientId"`
	Secret   string        `json:"clientSecret,omitempty"`
	Port     int           `json:"callbackPort"` // that the client was registered with
	AuthURL  string        `json:"authUrl"`
	TokenURL string        `json:"tokenUrl"`
	Style    int           `json:"authStyle"`
	Scopes   []string      `json:"scopes,omitempty"`
	Token    *oauth2.Token `json:"token"`
}

func (g *grant) config() *oauth2.Config {
	return &oauth2.Config{ClientID: g.ClientID, ClientSecret: g.Secret, Scopes: g.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: g.TokenURL, AuthStyle: oauth2.AuthStyle(g.Style)}}
}

// A wallet holds the tokens of one address. All connections to it share one.
type wallet struct {
	file     string
	server   string
	readOnly bool // see Options

	mu      sync.Mutex
	grant   *grant    // nil: nobody has signed in
	read    time.Time // the file's time of change when it was read
	signing chan struct{}
}

// wallet finds, or makes, the wallet of a server.
func (s *Source) wallet(server *Server) *wallet {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wallets[server.URL]
	if w == nil {
		sum := sha256.Sum256([]byte(server.URL))
		w = &wallet{server: server.URL, readOnly: s.opts.ReadOnly, signing: make(chan struct{}, 1)}
		if home := s.opts.Places.Home; home != "" {
			w.file = filepath.Join(home, tokenDir, fmt.Sprintf("%x.json", sum[:12]))
		}
		s.wallets[server.URL] = w
	}
	return w
}

// load reads the file if another process has changed it. The caller holds w.mu.
func (w *wallet) load() error {
	info, err := os.Stat(w.file)
	if errors.Is(err, fs.ErrNotExist) || w.file == "" {
		return nil
	}
	if err != nil {
		return err
	}
	if info.ModTime().Equal(w.read) {
		return nil
	}
	raw, err := os.ReadFile(w.file)
	if err != nil {
		return err
	}
	var g grant
	if err := json.Unmarshal(raw, &g); err != nil {
		return fmt.Errorf("the token file %q: %w; remove it and sign in again", w.file, err)
	}
	if g.Server == w.server && g.Token != nil {
		w.grant = &g
	}
	w.read = info.ModTime()
	return nil
}

// save writes the file. The caller holds w.mu.
func (w *wallet) save(ctx context.Context) error {
	if w.file == "" {
		return errors.New("there is no home in which to keep the tokens")
	}
	raw, err := rawjson.Marshal(w.grant)
	if err != nil {
		return err
	}
	if err := configs.WriteFile(ctx, w.file, raw, true); err != nil {
		return err
	}
	if info, err := os.Stat(w.file); err == nil {
		w.read = info.ModTime()
	}
	return nil
}

// authorize sets the header of a request, if somebody has signed in. An expired
// token is refreshed first; when that is refused the request goes without one,
// and the server says the rest.
func (w *wallet) authorize(ctx context.Context, client *http.Client, req *http.Request) error {
	if req.Header.Get("Authorization") != "" {
		return nil // the entry has its own
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.load(); err != nil || w.grant == nil {
		return err
	}
	if !w.grant.Token.Valid() {
		if err := w.refresh(ctx, client); err != nil {
			return err
		}
	}
	if w.grant.Token.AccessToken != "" {
		w.grant.Token.SetAuthHeader(req)
	}
	return nil
}

// refresh gets a new token. The caller holds w.mu.
func (w *wallet) refresh(ctx context.Context, client *http.Client) error {
	if w.grant.Token.RefreshToken == "" {
		return nil
	}
	if w.readOnly {
		return ErrRenewalDue
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	old := *w.grant.Token
	old.Expiry = time.Unix(1, 0) // whatever it says, it is not taken any more
	fresh, err := w.grant.config().TokenSource(ctx, &old).Token()
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < 500 {
		w.grant.Token.AccessToken = "" // revoked, or used by another process
		return nil
	}
	if err != nil {
		return fmt.Errorf("refreshing the sign-in: %w", err)
	}
	w.grant.Token = fresh
	return w.save(ctx)
}

// renew is asked after a refusal of the token that a request had. It reports
// whether there is another one to try.
func (w *wallet) renew(ctx context.Context, client *http.Client, used string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.load(); err != nil || w.grant == nil || used == "" {
		return false, err
	}
	now := func() string { return w.grant.Token.Type() + " " + w.grant.Token.AccessToken }
	if now() == used {
		if err := w.refresh(ctx, client); err != nil {
			return false, err
		}
	}
	return w.grant.Token.AccessToken != "" && now() != used, nil
}

// signIn has a person sign in to a server that refused us.
func (s *Source) signIn(ctx context.Context, server *Server, refused *authError) error {
	w := s.wallet(server)
	ctx, cancel := context.WithTimeoutCause(ctx, signInLimit, fmt.Errorf("nobody signed in within %v", signInLimit))
	defer cancel()
	select { // one browser window for one server
	case w.signing <- struct{}{}:
		defer func() { <-w.signing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	w.mu.Lock()
	err := w.load()
	before := w.grant
	w.mu.Unlock()
	if err != nil {
		return err
	}
	b, err := listenForBrowser(server, before)
	if err != nil {
		return err
	}
	defer b.close()
	err = s.authorize(ctx, server, b, before, refused)
	if errors.Is(err, errOtherAuthority) {
		err = s.authorize(ctx, server, b, nil, refused)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("sign-in: %w", err)
	}
	return nil
}

// errOtherAuthority means that the server has a new authorization server, which
// does not know the client that was registered with the old one.
var errOtherAuthority = errors.New("the authorization server is another one now")

// authorize runs go-sdk's flow, which wants to see the response that refused us.
func (s *Source) authorize(ctx context.Context, server *Server, b *browserListener, before *grant, refused *authError) error {
	w := s.wallet(server)
	config, stored := b.handlerConfig(server, before)
	config.AuthorizationCodeFetcher = func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		if stored && !strings.HasPrefix(args.URL, before.AuthURL) {
			return nil, errOtherAuthority
		}
		if err := s.opts.SignIn(ctx, server.Name, args.URL); err != nil {
			return nil, err
		}
		return b.wait(ctx)
	}
	config.NewTokenSource = func(ctx context.Context, c *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
		return w.keep(ctx, c, token, b.port)
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
	if err != nil {
		return err
	}
	return handler.Authorize(ctx, req, &http.Response{StatusCode: refused.status, Header: refused.header, Body: http.NoBody})
}

// keep takes what a sign-in gave. The source that it returns never refreshes:
// that is the wallet's, and a refresh token may be good for one use only.
func (w *wallet) keep(ctx context.Context, c *oauth2.Config, token *oauth2.Token, port int) (oauth2.TokenSource, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grant = &grant{Server: w.server, ClientID: c.ClientID, Secret: c.ClientSecret, Port: port,
		AuthURL: c.Endpoint.AuthURL, TokenURL: c.Endpoint.TokenURL, Style: int(c.Endpoint.AuthStyle), Scopes: c.Scopes, Token: token}
	return oauth2.StaticTokenSource(token), w.save(ctx)
}

// A browserListener is where the browser comes back to.
type browserListener struct {
	port   int
	server *http.Server
	result chan callback
}

type callback struct {
	result *auth.AuthorizationResult
	err    error
}

// listenForBrowser takes the port of the entry, or that of the last sign-in,
// under which the client is registered, or any.
func listenForBrowser(server *Server, before *grant) (*browserListener, error) {
	ports := []int{0}
	switch {
	case server.OAuth != nil && server.OAuth.CallbackPort > 0:
		ports = []int{server.OAuth.CallbackPort}
	case before != nil && before.Port > 0:
		ports = []int{before.Port, 0}
	}
	var listener net.Listener
	var err error
	for _, port := range ports {
		if listener, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the port to which the browser comes back: %w", err)
	}
	b := &browserListener{port: listener.Addr().(*net.TCPAddr).Port, result: make(chan callback, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", b.callback)
	b.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go b.server.Serve(listener)
	return b, nil
}

func (b *browserListener) redirectURL() string {
	return fmt.Sprintf("http://127.0.0.1:%d/callback", b.port)
}

func (b *browserListener) close() { b.server.Close() }

func (b *browserListener) callback(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c := callback{result: &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}}
	text := "Signed in. You can close this window."
	if reason := q.Get("error"); reason != "" || c.result.Code == "" {
		c.err = fmt.Errorf("the authorization server refused: %s %s", reason, q.Get("error_description"))
		text = "Not signed in: " + reason
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><title>zen-mcp</title><p>%s</p>", html.EscapeString(text))
	select {
	case b.result <- c:
	default: // the first one counts
	}
}

func (b *browserListener) wait(ctx context.Context) (*auth.AuthorizationResult, error) {
	select {
	case c := <-b.result:
		return c.result, c.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// handlerConfig says who we are: the client of the entry, the one that was
// registered before, which stored reports, or a new one.
func (b *browserListener) handlerConfig(server *Server, before *grant) (c *auth.AuthorizationCodeHandlerConfig, stored bool) {
	c = &auth.AuthorizationCodeHandlerConfig{RedirectURL: b.redirectURL(), RequestRefreshToken: true, AcceptUnadvertisedIss: true}
	own := server.OAuth
	if own == nil {
		own = &OAuth{}
	}
	if len(own.Scopes) > 0 {
		c.ScopeFilter = func([]string) []string { return own.Scopes }
	}
	id, secret := own.ClientID, own.ClientSecret
	if strings.HasPrefix(id, "https://") { // the address of a document about the client
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: id}
		id = ""
	} else if id == "" && before != nil && before.Port == b.port {
		id, secret, stored = before.ClientID, before.Secret, true
	}
	if id == "" {
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "zen-mcp", RedirectURIs: []string{b.redirectURL()},
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
		}}
		return c, false
	}
	c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: id}
	if secret != "" {
		c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: secret}
	}
	return c, stored
}
