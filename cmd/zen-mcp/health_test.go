package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHealth: a health check asks the address that the server was given, and its
// exit code is the answer.
func TestHealth(t *testing.T) {
	t.Parallel()
	answers := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				status = http.StatusTeapot
			}
			http.Error(w, text, status)
		}
	}
	ready := httptest.NewServer(answers(200, "ready"))
	draining := httptest.NewServer(answers(503, "shutting down"))
	secure := httptest.NewTLSServer(answers(200, "ready"))
	gone := httptest.NewServer(answers(200, "ready"))
	gone.Close()
	for _, s := range []*httptest.Server{ready, draining, secure} {
		t.Cleanup(s.Close)
	}
	at := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	port := at(ready)[strings.LastIndex(at(ready), ":"):]
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--http " + at(ready), 0, "ready\n"},
		{"--http " + port, 0, "ready\n"},
		{"--http 0.0.0.0" + port, 0, "ready\n"},
		{"--tls-cert cert.pem --http " + at(secure), 0, "ready\n"},
		{"--http " + at(draining), 1, "503 Service Unavailable: shutting down"},
		{"--http " + at(secure), 1, "400 Bad Request"},
		{"--http " + at(gone), 1, "no answer"},
		{"", 2, "--http ADDR"},
		{"--http 8080", 2, `"8080": use HOST:PORT`},
		{"now --http :8080", 2, "no arguments"},
	} {
		var out bytes.Buffer
		args := append([]string{"health"}, strings.Fields(c.args)...)
		if got := run(t.Context(), args, streams{strings.NewReader(""), &out, &out}); got != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("health %s: exit %d, %q; want %d, %q", c.args, got, out.String(), c.code, c.says)
		}
	}
	every := httpOptions{addr: "[::]:1"}
	if url, err := every.readyURL(); err != nil || url != "http://[::1]:1/readyz" {
		t.Errorf("%q is asked at %q, %v", every.addr, url, err)
	}
}
