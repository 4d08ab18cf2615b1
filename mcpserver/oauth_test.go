package mcpserver

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// An issuer is an authorization server with one key.
type issuer struct {
	url   string
	key   *rsa.PrivateKey
	asked atomic.Int64 // for its metadata
	down  atomic.Bool
}

func newIssuer(t *testing.T, metadata string) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc(metadata, func(w http.ResponseWriter, _ *http.Request) {
		if i.asked.Add(1); i.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		json.NewEncoder(w).Encode(map[string]string{"issuer": i.url, "jwks_uri": i.url + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig",
			"n": encode(key.N.Bytes()), "e": "AQAB"}}})
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	i.url = web.URL
	return i
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// sign makes a token; changes replace its claims.
func (i *issuer) sign(t *testing.T, header string, changes map[string]any) string {
	t.Helper()
	claims := map[string]any{"iss": i.url, "sub": "alice", "aud": "https://mcp.example/base",
		"exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	for k, v := range changes {
		claims[k] = v
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed := encode([]byte(header)) + "." + encode(payload)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + encode(signature)
}

const rs256 = `{"alg":"RS256","kid":"k","typ":"at+jwt"}`

func TestAccessTokens(t *testing.T) {
	t.Parallel()
	for _, metadata := range []string{"/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"} {
		i := newIssuer(t, metadata)
		stranger := newIssuer(t, metadata)
		s, at := newHTTP(t, func(o *Options) {
			withTokens(o)
			o.HTTP.OAuthIssuer, o.HTTP.PublicURL = i.url, "https://mcp.example/base/"
		})
		good := i.sign(t, rs256, nil)
		call, headers := modernCall("echo", "hello")
		for _, c := range []struct {
			name, path, token string
			status            int
			contains          string
		}{
			{"for the server", "/mcp/b", good, 200, "hello"},
			{"for the first agent", "/mcp", i.sign(t, rs256, map[string]any{"aud": "https://mcp.example/base/mcp"}), 200, "hello"},
			{"for this agent", "/mcp/b", i.sign(t, rs256, map[string]any{"aud": []string{"https://x.example", "https://mcp.example/base/mcp/b"}}), 200, "hello"},
			{"for another agent", "/mcp/a", i.sign(t, rs256, map[string]any{"aud": "https://mcp.example/base/mcp/b"}), 403, `not for agent "a"`},
			{"for another server", "/mcp", i.sign(t, rs256, map[string]any{"aud": "https://other.example"}), 401, "not for https://mcp.example/base"},
			{"for a server whose name begins like ours", "/mcp", i.sign(t, rs256, map[string]any{"aud": "https://mcp.example/based"}), 401, "not for"},
			{"expired", "/mcp", i.sign(t, rs256, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), 401, "expired"},
			{"not valid yet", "/mcp", i.sign(t, rs256, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}), 401, "not before"},
			{"of another issuer", "/mcp", i.sign(t, rs256, map[string]any{"iss": stranger.url}), 401, "issued by a different provider"},
			{"signed by another key", "/mcp", stranger.sign(t, rs256, map[string]any{"iss": i.url}), 401, "signature"},
			{"unsigned", "/mcp", encode([]byte(`{"alg":"none"}`)) + "." + strings.Split(good, ".")[1] + ".", 401, ""},
			{"signed with a shared secret", "/mcp", i.sign(t, `{"alg":"HS256","kid":"k"}`, nil), 401, ""},
			{"without a subject", "/mcp", i.sign(t, rs256, map[string]any{"sub": ""}), 401, "no subject"},
			{"no token of anybody", "/mcp", "a.b.c", 401, ""},
			{"a token of the file", "/mcp", "alice-secret", 200, "hello"},
		} {
			got := request{"POST", at + c.path, call, append(headers[:len(headers):len(headers)], bearer(c.token)...)}.do(t)
			if got.status != c.status || !strings.Contains(got.body, c.contains) {
				t.Errorf("%s: %d %s; want %d with %q", c.name, got.status, got.body, c.status, c.contains)
			}
			want := fmt.Sprintf(`resource_metadata="https://mcp.example%s/base%s"`, wellKnown, c.path)
			if www := got.header.Get("WWW-Authenticate"); c.status != 200 && !strings.Contains(www, want) {
				t.Errorf("%s: WWW-Authenticate = %s; want %s", c.name, www, want)
			}
		}
		if n := i.asked.Load(); n != 1 {
			t.Errorf("the issuer was asked %d times", n)
		}
		if _, err := s.clients.credential(s.agents[1], "oauth:alice"); err != nil || s.clients.count() != 3 {
			t.Errorf("%d clients, %v; want those of oauth:alice (a, b) and alice (a)", s.clients.count(), err)
		}
	}
}

func TestIssuerThatIsDown(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "/.well-known/openid-configuration")
	i.down.Store(true)
	_, at := newHTTP(t, func(o *Options) { o.HTTP.OAuthIssuer, o.HTTP.PublicURL = i.url, "https://mcp.example/base" })
	call, headers := modernCall("echo", "hello")
	for range 3 {
		got := request{"POST", at + "/mcp", call, append(headers, bearer(i.sign(t, rs256, nil))...)}.do(t)
		if got.status != http.StatusServiceUnavailable {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if n := i.asked.Load(); n != 1 {
		t.Errorf("the issuer was asked %d times within seconds", n)
	}
}

func TestResourceMetadata(t *testing.T) {
	t.Parallel()
	_, at := newHTTP(t, func(o *Options) {
		o.HTTP.OAuthIssuer, o.HTTP.PublicURL = "https://issuer.example", "https://mcp.example/base"
	})
	for path, resource := range map[string]string{
		"": "https://mcp.example/base", "/base": "https://mcp.example/base", "/mcp": "https://mcp.example/base/mcp",
		"/base/mcp": "https://mcp.example/base/mcp", "/base/mcp/b": "https://mcp.example/base/mcp/b",
	} {
		got := request{method: "GET", url: at + wellKnown + path}.do(t)
		var meta struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
		}
		if err := json.Unmarshal([]byte(got.body), &meta); err != nil || got.status != 200 ||
			meta.Resource != resource || fmt.Sprint(meta.Servers) != "[https://issuer.example]" || got.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%q: %d %v %s, %v", path, got.status, got.header, got.body, err)
		}
	}
}
