package builtin

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A vectorRoute is what the server of a vector file answers at a path. {{BASE}} in
// a vector is the address of that server.
type vectorRoute struct {
	Status     int
	Headers    map[string]string
	Body       string
	BodyB64    []byte
	BodyRepeat *vectorRepeat
	DelayMs    int  // before the answer
	CloseEarly bool // after the body, which is shorter than announced
}

func serveRoutes(t *testing.T, routes map[string]vectorRoute) (base string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, ok := routes[r.URL.EscapedPath()]
		if !ok {
			http.NotFound(w, r)
			return
		}
		select {
		case <-time.After(time.Duration(route.DelayMs) * time.Millisecond):
		case <-r.Context().Done():
			return
		}
		w.Header()["Content-Type"] = nil // no guess
		for name, value := range route.Headers {
			w.Header().Set(name, value)
		}
		body := route.Body + string(route.BodyB64)
		if b := route.BodyRepeat; b != nil {
			body += b.Prefix + strings.Repeat(b.Text, b.Count) + b.Suffix
		}
		if !route.CloseEarly {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		w.WriteHeader(route.Status)
		w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}
