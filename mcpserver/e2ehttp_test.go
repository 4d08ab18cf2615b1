package mcpserver_test

import (
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// serveAgents serves the agents one, which may not use exec, and two, which may
// not use glob, each to a token of its own.
func serveAgents(t *testing.T) (dir, address string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"agents/one.json": `{"permissions": {"tools": {"deny": ["exec"]}}}`,
		"agents/two.json": `{"permissions": {"tools": {"deny": ["glob"]}}}`,
		"tokens.yaml":     "- {name: one, token: one-secret, agents: [one]}\n- {name: two, token: two-secret, agents: [two]}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, serveHTTP(t, dir, "--agent", "one", "--agent", "two", "--token-file", filepath.Join(dir, "tokens.yaml"))
}

// TestTwoClientsWithDifferentAgents: at once, of both SDKs, in both eras.
func TestTwoClientsWithDifferentAgents(t *testing.T) {
	t.Parallel()
	program(t)
	dir, address := serveAgents(t)
	for _, c := range []struct{ sdk, era, agent, has, lacks string }{{"v1", "legacy", "one", "glob", "exec"}, {"v2", "modern", "two", "exec", "glob"}} {
		t.Run(c.agent, func(t *testing.T) {
			t.Parallel()
			out, errs, err := nodeWith(t, []string{"TOKEN=" + c.agent + "-secret"}, "client.mjs", c.sdk, c.era, address+"/"+c.agent)
			if err != nil {
				t.Fatalf("%v\n%s%s", err, out, errs)
			}
			var r clientReport
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			checkReport(t, r, dir)
			if !slices.Contains(r.Tools, c.has) || slices.Contains(r.Tools, c.lacks) {
				t.Errorf("tools = %v; want %s and not %s", r.Tools, c.has, c.lacks)
			}
		})
	}
	t.Run("another's token", func(t *testing.T) {
		t.Parallel()
		_, errs, err := nodeWith(t, []string{"TOKEN=one-secret"}, "client.mjs", "v2", "modern", address+"/two")
		if err == nil || !strings.Contains(errs, "the token of 'one' is not for agent 'two'") {
			t.Errorf("%v\n%s", err, errs)
		}
	})
}

// TestConformanceBehindTokens: the suite cannot send a token, so a proxy adds it.
func TestConformanceBehindTokens(t *testing.T) {
	t.Parallel()
	program(t)
	_, address := serveAgents(t)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = at.Scheme, at.Host // and the client's own Host
		r.Out.Header.Set("Authorization", "Bearer two-secret")
	}})
	t.Cleanup(proxy.Close)
	t.Run("suite", func(t *testing.T) { conform(t, proxy.URL+"/mcp/two") })
}
