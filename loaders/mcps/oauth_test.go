package mcps

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
	"zenmcp/core/coretest"
)

// An authority is an MCP server that wants a sign-in, and the authorization
// server for it.
type authority struct {
	t   testing.TB
	url string
	mcp http.Handler

	mu            sync.Mutex
	registrations []string          // redirect addresses
	codes         map[string]string // to the PKCE challenge
	access        map[string]bool   // tokens that are taken
	refresh       map[string]bool
	refreshes     int
	expires       int // seconds that tokens last
	next          int
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t, mcp: streamable(sdkServer(), &mcp.StreamableHTTPOptions{}), codes: map[string]string{}, access: map[string]bool{},
		refresh: map[string]bool{}, expires: 3600}
	mux := http.NewServeMux()
	a.url = serve(t, mux)
	mux.HandleFunc("/mcp", a.serveMCP)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		a.json(w, map[string]any{"resource": a.url + "/mcp", "authorization_servers": []string{a.url}, "scopes_supported": []string{"read"}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		a.json(w, map[string]any{"issuer": a.url, "authorization_endpoint": a.url + "/authorize", "token_endpoint": a.url + "/token",
			"registration_endpoint": a.url + "/register", "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"}, "response_types_supported": []string{"code"}})
	})
	mux.HandleFunc("/register", a.register)
	mux.HandleFunc("/authorize", a.authorize)
	mux.HandleFunc("/token", a.token)
	return a
}

func (a *authority) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		a.t.Error(err)
	}
}

func (a *authority) serveMCP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	ok := a.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	a.mu.Unlock()
	if !ok {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, a.url))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	a.mcp.ServeHTTP(w, r)
}

func (a *authority) register(w http.ResponseWriter, r *http.Request) {
	var client struct {
		RedirectURIs []string `json:"redirect_uris"`
	}
	if err := json.NewDecoder(r.Body).Decode(&client); err != nil {
		a.t.Error(err)
	}
	a.mu.Lock()
	a.registrations = append(a.registrations, client.RedirectURIs[0])
	id := fmt.Sprintf("client%d", len(a.registrations))
	a.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	a.json(w, map[string]any{"client_id": id, "redirect_uris": client.RedirectURIs, "token_endpoint_auth_method": "none"})
}

func (a *authority) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.mu.Lock()
	a.next++
	code := fmt.Sprintf("code%d", a.next)
	a.codes[code] = q.Get("code_challenge")
	a.mu.Unlock()
	if q.Get("code_challenge_method") != "S256" || q.Get("resource") != a.url+"/mcp" {
		a.t.Errorf("asked with %v", q)
	}
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (a *authority) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		a.t.Error(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
	good := false
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		good = a.codes[r.Form.Get("code")] == base64.RawURLEncoding.EncodeToString(sum[:])
	case "refresh_token":
		a.refreshes++
		good = a.refresh[r.Form.Get("refresh_token")]
		delete(a.refresh, r.Form.Get("refresh_token")) // they are for one use
	}
	if !good {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	a.next++
	access, refresh := fmt.Sprintf("access%d", a.next), fmt.Sprintf("refresh%d", a.next)
	a.access[access], a.refresh[refresh] = true, true
	a.json(w, map[string]any{"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "expires_in": a.expires})
}

// revoke takes all access tokens back, and the refresh tokens too if all is set.
func (a *authority) revoke(all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
	if all {
		clear(a.refresh)
	}
}

// A browser is what opens an address and follows it back to the listener.
type browser struct{ opened int }

func (b *browser) open(_ context.Context, _, address string) error {
	b.opened++
	resp, err := http.Get(address)
	if err != nil {
		return err
	}
	resp.Body.Close()
	return nil
}

func signInHarness(t *testing.T, home string, entry args, b *browser) *harness {
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"fix": entry}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(home, "mcp.json"), string(text))
	h := &harness{t: t, project: t.TempDir(), log: &coretest.Buffer{}, env: &core.Env{}}
	o := Options{Places: places(t, home, h.project), Version: "1"}
	if b != nil {
		o.SignIn = b.open
	}
	h.source = New(o)
	h.reload()
	h.scope = h.newScope(core.AgentDefinition{ID: "a", Permissions: core.AllowAll()})
	return h
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	home := t.TempDir()
	entry := args{"url": a.url + "/mcp", "protocol": "legacy"}
	echo := args{"server": "fix", "tool": "echo"}

	// A server process cannot sign in, and says what can.
	server := signInHarness(t, home, entry, nil)
	server.fails(loadName, args{"server": "fix"}, "401", `zen-mcp call load_mcp '{"server":"fix"}'`)

	// A person does, once; the tokens are for the user alone.
	b := &browser{}
	person := signInHarness(t, home, entry, b)
	person.text(loadName, args{"server": "fix"})
	person.text(callName, echo)
	if b.opened != 1 || len(a.registrations) != 1 {
		t.Errorf("%d browsers, %d registrations", b.opened, len(a.registrations))
	}
	files, err := filepath.Glob(filepath.Join(home, tokenDir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("token files %v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	// The server process that was running finds them.
	server.text(loadName, args{"server": "fix"})
	server.text(callName, echo)

	// A token that is taken back is refreshed in the middle of a call, and both
	// processes go on with the new one.
	a.revoke(false)
	server.text(callName, echo)
	person.text(callName, echo)
	if a.refreshes != 1 {
		t.Errorf("%d refreshes", a.refreshes)
	}

	// When all is taken back a person signs in anew, as the client of before.
	a.revoke(true)
	server.fails(callName, echo, "401", "zen-mcp call load_mcp")
	person.text(callName, echo)
	if b.opened != 2 || len(a.registrations) != 1 {
		t.Errorf("after a revocation: %d browsers, %d registrations", b.opened, len(a.registrations))
	}
	server.text(callName, echo)
}

// A token that is about to end is refreshed before it is used.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.expires = 1 // which counts as ended
	b := &browser{}
	h := signInHarness(t, t.TempDir(), args{"url": a.url + "/mcp", "protocol": "legacy"}, b)
	h.text(loadName, args{"server": "fix"})
	h.text(callName, args{"server": "fix", "tool": "echo"})
	if b.opened != 1 || a.refreshes == 0 {
		t.Errorf("%d browsers, %d refreshes", b.opened, a.refreshes)
	}
}

// The client of the entry is used, and a refusal is told.
func TestSignInWithOwnClient(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	var asked url.Values
	h := signInHarness(t, t.TempDir(), args{"url": a.url + "/mcp", "oauth": args{"clientId": "mine", "scopes": []string{"write"}}}, nil)
	h.source.opts.SignIn = func(_ context.Context, _, address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		asked = u.Query()
		resp, err := http.Get(asked.Get("redirect_uri") + "?error=access_denied&error_description=%3Cno%3E&state=" + asked.Get("state"))
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	h.fails(loadName, args{"server": "fix"}, `MCP server "fix"`, "access_denied <no>")
	if asked.Get("client_id") != "mine" || asked.Get("scope") != "write" || len(a.registrations) != 0 {
		t.Errorf("asked with %v; %d registrations", asked, len(a.registrations))
	}
	h.source.opts.SignIn = func(context.Context, string, string) error { return errors.New("no browser here") }
	h.fails(loadName, args{"server": "fix"}, "no browser here")
}

// Where the entry has a token of its own no sign-in would be used, so none is
// asked for: what the server says of that token is what somebody has to know.
func TestOwnTokenRefused(t *testing.T) {
	t.Parallel()
	for status, challenge := range map[int]string{http.StatusUnauthorized: "Bearer", http.StatusForbidden: `Bearer error="insufficient_scope"`} {
		for _, transport := range []string{"http", "sse"} {
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("WWW-Authenticate", challenge)
				http.Error(w, "not with this token", status)
			}))
			b := &browser{}
			entry := args{"url": url, "type": transport, "headers": args{"authorization": "Bearer mine"}}
			signInHarness(t, t.TempDir(), entry, b).fails(loadName, args{"server": "fix"}, `MCP server "fix"`, strconv.Itoa(status), "not with this token")
			if b.opened != 0 {
				t.Errorf("%d over %s: a browser was opened", status, transport)
			}
		}
	}
}

// What a browser is shown is not code of somebody else's.
func TestCallbackPage(t *testing.T) {
	t.Parallel()
	b := &browserListener{result: make(chan callback, 1)}
	w := httptest.NewRecorder()
	b.callback(w, httptest.NewRequest(http.MethodGet, "/callback?error=%3Cscript%3E", nil))
	if strings.Contains(w.Body.String(), "<script>") {
		t.Error(w.Body)
	}
}
