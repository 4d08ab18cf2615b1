package mcpserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zenmcp/core"
)

// newHTTP serves agents a and b, and returns the server and its address.
func newHTTP(t *testing.T, set func(*Options)) (*Server, string) {
	t.Helper()
	catalog, err := core.Discover(t.Context(), testTools())
	if err != nil {
		t.Fatal(err)
	}
	env := &core.Env{Log: slog.New(slog.DiscardHandler)}
	env.Update(core.Config{}, catalog)
	options := Options{Version: "test", Env: env, Dir: t.TempDir(), Agents: []core.AgentDefinition{
		{ID: "a", Permissions: core.AllowAll()},
		{ID: "b", Permissions: core.Permissions{core.KindTool: core.Allow("echo")}},
	}}
	if set != nil {
		set(&options)
	}
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() { s.Close(); web.Close() })
	return s, web.URL
}

func token(name, secret string, agents ...string) Token {
	return Token{Name: name, Sum: sha256.Sum256([]byte(secret)), Agents: agents}
}

// withTokens accepts alice for both agents, bob for b, and eve no longer.
func withTokens(o *Options) {
	eve := token("eve", "eve-secret", "*")
	eve.Expires = time.Now().Add(-time.Minute)
	tokens := []Token{token("alice", "alice-secret", "*"), token("bob", "bob-secret", "b"), eve}
	o.HTTP.Tokens = func() []Token { return tokens }
}

// A reply is a response that was read.
type reply struct {
	status int
	header http.Header
	body   string
}

// A request is one that a test makes; headers in pairs.
type request struct {
	method, url, body string
	headers           []string
}

func (q request) make(t *testing.T) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), q.method, q.url, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(q.headers); i += 2 {
		if q.headers[i] == "Host" {
			req.Host = q.headers[i+1]
		}
		req.Header.Set(q.headers[i], q.headers[i+1])
	}
	return req
}

func (q request) do(t *testing.T) reply {
	t.Helper()
	res, err := http.DefaultClient.Do(q.make(t))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(body)}
}

// legacy is an initialize of the last revision with sessions.
const legacyInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// modernCall is a tools/call of the revision without sessions and its headers.
func modernCall(tool, text string) (body string, headers []string) {
	encoded, _ := json.Marshal(text)
	body = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"text":%s},"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, encoded, modern)
	return body, []string{headerVersion, modern, headerMethod, "tools/call", headerName, tool}
}

func bearer(secret string) []string { return []string{"Authorization", "Bearer " + secret} }

func TestWhoMayComeIn(t *testing.T) {
	t.Parallel()
	_, closed := newHTTP(t, withTokens)
	_, open := newHTTP(t, func(o *Options) {
		o.HTTP.AllowedHosts = []string{"mcp.example"}
		o.HTTP.AllowedOrigins = []string{"https://app.example"}
	})
	port := strings.TrimPrefix(open, "http://127.0.0.1")
	call, headers := modernCall("echo", "hello")
	for _, c := range []struct {
		name, at string
		headers  []string
		status   int
		contains string
	}{
		{"nobody asks", open + "/mcp", nil, 200, "hello"},
		{"other agent", open + "/mcp/b", nil, 200, "hello"},
		{"unknown agent", open + "/mcp/nope", nil, 404, ""},
		{"unknown path", open + "/other", nil, 404, ""},
		{"rebinding host", open + "/mcp", []string{"Host", "evil.example"}, 403, "--allowed-host evil.example"},
		{"rebinding host with our port", open + "/mcp", []string{"Host", "evil.example" + port}, 403, "--allowed-host"},
		{"other address", open + "/mcp", []string{"Host", "192.0.2.1"}, 403, "--allowed-host"},
		{"localhost", open + "/mcp", []string{"Host", "localhost" + port}, 200, "hello"},
		{"IPv6 loopback", open + "/mcp", []string{"Host", "[::1]"}, 200, "hello"},
		{"allowed host", open + "/mcp", []string{"Host", "mcp.example"}, 200, "hello"},
		{"allowed host and port", open + "/mcp", []string{"Host", "MCP.example:443"}, 200, "hello"},
		{"foreign page", open + "/mcp", []string{"Origin", "https://evil.example"}, 403, "--allowed-origin https://evil.example"},
		{"page without origin", open + "/mcp", []string{"Origin", "null"}, 403, "--allowed-origin"},
		{"own page", open + "/mcp", []string{"Origin", open}, 200, "hello"},
		{"allowed page", open + "/mcp", []string{"Origin", "https://app.example"}, 200, "hello"},
		{"no token", closed + "/mcp", nil, 401, "Authorization: Bearer"},
		{"no token, unknown agent", closed + "/mcp/nope", nil, 401, ""},
		{"other scheme", closed + "/mcp", []string{"Authorization", "Basic YWxpY2U6eA=="}, 401, ""},
		{"wrong token", closed + "/mcp", bearer("wrong"), 401, "unknown token"},
		{"expired token", closed + "/mcp", bearer("eve-secret"), 401, "expired at"},
		{"right token", closed + "/mcp", bearer("alice-secret"), 200, "hello"},
		{"scheme in lower case", closed + "/mcp", []string{"Authorization", "bearer alice-secret"}, 200, "hello"},
		{"token for all, unknown agent", closed + "/mcp/nope", bearer("alice-secret"), 404, ""},
		{"token for another agent", closed + "/mcp/a", bearer("bob-secret"), 403, `not for agent "a"`},
		{"token for another agent, first", closed + "/mcp", bearer("bob-secret"), 403, ""},
		{"token for its agent", closed + "/mcp/b", bearer("bob-secret"), 200, "hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := request{"POST", c.at, call, append(headers[:len(headers):len(headers)], c.headers...)}.do(t)
			if got.status != c.status || !strings.Contains(got.body, c.contains) {
				t.Errorf("%d %s; want %d with %q", got.status, got.body, c.status, c.contains)
			}
			www := got.header.Get("WWW-Authenticate")
			if (c.status == 401) != strings.HasPrefix(www, `Bearer realm="zen-mcp"`) && c.status != 403 {
				t.Errorf("WWW-Authenticate = %q", www)
			}
			if strings.Contains(got.body+www, "secret") {
				t.Errorf("a token is told: %q, %q", got.body, www)
			}
		})
	}
}

// TestRefusedBeforeTheBody: who is refused need not send what he announced.
func TestRefusedBeforeTheBody(t *testing.T) {
	t.Parallel()
	s, _ := newHTTP(t, withTokens)
	handler := s.Handler()
	for _, header := range [][2]string{{"Host", "evil.example"}, {"Origin", "https://evil.example"}, {"Authorization", "Bearer x"}} {
		req := httptest.NewRequest("POST", "http://localhost/mcp", &unread{t})
		req.Header.Set(header[0], header[1])
		if header[0] == "Host" {
			req.Host = header[1]
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		if w.Code != 403 && w.Code != 401 {
			t.Errorf("%s: %d", header[0], w.Code)
		}
	}
}

type unread struct{ t *testing.T }

func (u *unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	_, at := newHTTP(t, func(o *Options) {
		withTokens(o)
		o.HTTP.AllowedOrigins = []string{"https://app.example"}
	})
	const asked = "authorization, content-type, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name, mcp-param-x, last-event-id"
	preflight := func(origin string) reply {
		return request{"OPTIONS", at + "/mcp/b", "", []string{"Origin", origin,
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", asked}}.do(t)
	}
	got := preflight("https://app.example")
	if got.status != 204 || got.header.Get("Access-Control-Allow-Origin") != "https://app.example" ||
		got.header.Get("Access-Control-Allow-Headers") != asked || got.header.Get("Access-Control-Allow-Methods") != "GET, POST, DELETE" {
		t.Errorf("%d %v", got.status, got.header)
	}
	if got := preflight("https://evil.example"); got.status != 403 || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("foreign page: %d %v", got.status, got.header)
	}
	call, headers := modernCall("echo", "hello")
	for _, secret := range []string{"alice-secret", "wrong", "eve-secret"} {
		got := request{"POST", at + "/mcp", call, append(headers, "Authorization", "Bearer "+secret, "Origin", "https://app.example")}.do(t)
		if got.header.Get("Access-Control-Allow-Origin") != "https://app.example" || got.header.Get("Access-Control-Allow-Credentials") != "" ||
			!strings.Contains(got.header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") || got.header.Get("Vary") != "Origin" {
			t.Errorf("%s: %d %v", secret, got.status, got.header)
		}
	}
}

// TestSessionsHaveAnOwner: a session is unknown to all but the principal and the
// agent that it was opened for.
func TestSessionsHaveAnOwner(t *testing.T) {
	t.Parallel()
	s, at := newHTTP(t, func(o *Options) {
		tokens := []Token{token("alice", "alice-secret", "*"), token("bob", "bob-secret", "*")}
		o.HTTP.Tokens = func() []Token { return tokens }
	})
	got := request{"POST", at + "/mcp/a", legacyInitialize, bearer("alice-secret")}.do(t)
	id := got.header.Get(headerSession)
	if got.status != 200 || id == "" || s.clients.count() != 1 {
		t.Fatalf("initialize: %d %s", got.status, got.body)
	}
	ping := func(method, url, secret, id string) int {
		return request{method, url, `{"jsonrpc":"2.0","id":2,"method":"ping"}`,
			append(bearer(secret), headerVersion, "2025-11-25", headerSession, id)}.do(t).status
	}
	for _, c := range []struct {
		name, method, url, secret, id string
		status                        int
	}{
		{"owner", "POST", at + "/mcp/a", "alice-secret", id, 200},
		{"owner at the first address", "POST", at + "/mcp", "alice-secret", id, 200},
		{"other agent", "POST", at + "/mcp/b", "alice-secret", id, 404},
		{"other principal", "POST", at + "/mcp/a", "bob-secret", id, 404},
		{"other principal listens", "GET", at + "/mcp/a", "bob-secret", id, 404},
		{"other principal deletes", "DELETE", at + "/mcp/a", "bob-secret", id, 404},
		{"unknown", "POST", at + "/mcp/a", "alice-secret", "nope", 404},
		{"the key of a credential", "POST", at + "/mcp/a", "alice-secret", credentialKey("a", "alice"), 404},
		{"still there", "POST", at + "/mcp/a", "alice-secret", id, 200},
		{"deleted", "DELETE", at + "/mcp/a", "alice-secret", id, 204},
		{"gone", "POST", at + "/mcp/a", "alice-secret", id, 404},
	} {
		if status := ping(c.method, c.url, c.secret, c.id); status != c.status {
			t.Errorf("%s: %d; want %d", c.name, status, c.status)
		}
	}
}

func TestTokenFile(t *testing.T) {
	t.Parallel()
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("s3cret")))
	for _, c := range []struct{ name, file, err string }{
		{"plain", "- name: a\n  token: s3cret\n  agents: [x, y]\n", ""},
		{"digest", "- {name: a, sha256: " + sum + ", agents: ['*'], expires: 2127-01-31}\n", ""},
		{"moment", "- {name: a, sha256: " + sum + ", agents: [x], expires: \"2127-01-31T12:00:00Z\"}\n", ""},
		{"empty", "", "it has no tokens; zen-mcp token makes one"},
		{"no name", "- {token: s3cret, agents: [x]}", `token 1 (""): name is missing`},
		{"no agents", "- {name: a, token: s3cret}", `token 1 ("a"): agents is missing: list their ids, or ["*"] for all`},
		{"no token", "- {name: a, agents: [x]}", "give either token or sha256"},
		{"both", "- {name: a, token: s3cret, sha256: " + sum + ", agents: [x]}", "give either token or sha256"},
		{"bad digest", "- {name: a, sha256: 12ab, agents: [x]}", "sha256 must be 64 hexadecimal digits"},
		{"bad day", "- {name: a, token: s3cret, agents: [x], expires: tomorrow}", `expires "tomorrow": use a day`},
		{"unknown field", "- {name: a, token: s3cret, agent: x}", "[1:"},
		{"same name", "- {name: a, token: s3cret, agents: [x]}\n- {name: a, token: t, agents: [x]}", `the name "a" is taken`},
		{"not a list", "name: a", "[1:"},
	} {
		tokens, err := parseTokens([]byte(c.file))
		if c.err == "" {
			if err != nil || len(tokens) != 1 || tokens[0].Name != "a" || findToken(tokens, "s3cret") == nil || findToken(tokens, sum) != nil {
				t.Errorf("%s: %v, %v", c.name, tokens, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %q", c.name, err, c.err)
		}
	}
}

func TestTokenFileIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "tokens.yaml")
		write := func(name string, age time.Duration) {
			t.Helper()
			if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
			at := time.Now().Add(-age)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		write("- {name: a, token: one, agents: ['*']}", 3*time.Hour)
		file, err := OpenTokenFile(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		expect := func(when string, one, two bool) {
			t.Helper()
			if got := findToken(file.Tokens(), "one") != nil; got != one {
				t.Errorf("%s: one is accepted: %v", when, got)
			}
			if got := findToken(file.Tokens(), "two") != nil; got != two {
				t.Errorf("%s: two is accepted: %v", when, got)
			}
		}
		expect("at first", true, false)
		write("- {name: a, token: two, agents: ['*']}", 2*time.Hour)
		time.Sleep(watchInterval)
		expect("after a change", false, true)
		write("- {name: a, to", time.Hour)
		time.Sleep(watchInterval)
		expect("half written", false, true)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(watchInterval)
		expect("removed", false, true)
		if n := strings.Count(log.String(), "level=WARN"); n != 2 {
			t.Errorf("%d warnings in %s", n, log.String())
		}
	})
}
