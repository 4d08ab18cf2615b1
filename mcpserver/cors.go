package mcpserver

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// checkHost refuses a request that was not meant for this server: a browser that
// was tricked into resolving an attacker's name to our address sends that name
// (DNS rebinding). Addresses cannot be forged so, names must be known.
func (g *gate) checkHost(r *http.Request) *refusal {
	host := strings.ToLower(r.Host)
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	allowed := func(h string) bool { return h == "*" || strings.EqualFold(h, host) || strings.EqualFold(h, name) }
	addr, err := netip.ParseAddr(name)
	switch {
	case name == "localhost", err == nil && (addr.IsLoopback() || !onLoopback(r)), slices.ContainsFunc(g.hosts, allowed):
		return nil
	}
	return refuse(http.StatusForbidden, "host", "host %q is not served here; --allowed-host %s allows it", r.Host, name)
}

// onLoopback reports whether a request came over a loopback address.
func onLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}

// checkOrigin refuses the requests of web pages from elsewhere, and tells the
// browsers of those that are welcome so.
func (g *gate) checkOrigin(w http.ResponseWriter, r *http.Request) *refusal {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil // not a browser, or a page of ours that only reads
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	switch {
	case slices.Contains(g.options.AllowedOrigins, origin), slices.Contains(g.options.AllowedOrigins, "*"):
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After")
	case !sameOrigin(origin, r.Host):
		return refuse(http.StatusForbidden, "origin", "pages of %q may not call this server; --allowed-origin %s allows it", origin, origin)
	}
	return nil
}

// sameOrigin reports whether a page was served by this very host and port. It is
// safe because Host is checked too.
func sameOrigin(origin, host string) bool {
	_, at, ok := strings.Cut(origin, "://")
	return ok && at == host
}

// isPreflight reports whether a browser asks if it may send a request. It must be
// answered without a token, which browsers do not send with the question.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// answerPreflight allows all headers that are asked for, by name: a wildcard does
// not cover Authorization, and the names of Mcp-Param-* vary.
func answerPreflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "7200")
	w.WriteHeader(http.StatusNoContent)
}
