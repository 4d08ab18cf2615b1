package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A principal is who calls, as far as a credential tells.
type principal struct {
	name   string   // "" is anybody
	agents []string // by id; "*" is all
}

var anybody = &principal{agents: []string{allAgents}}

func (p *principal) mayUse(agent string) bool {
	return slices.Contains(p.agents, agent) || slices.Contains(p.agents, allAgents)
}

type principalKey struct{}

// principalOf is who made a request. In a session it is who began it, and nobody
// else can use it.
func principalOf(ctx context.Context) *principal {
	if p, ok := ctx.Value(principalKey{}).(*principal); ok {
		return p
	}
	return anybody
}

// A refusal is why a request is not served.
type refusal struct {
	status int
	reason string // in metrics
	text   string // for whoever reads the response
	code   string // error of WWW-Authenticate, RFC 6750 section 3.1
}

func refuse(status int, reason, format string, args ...any) *refusal {
	return &refusal{status: status, reason: reason, text: fmt.Sprintf(format, args...)}
}

// authenticate says who made a request.
func (g *gate) authenticate(r *http.Request) (*principal, *refusal) {
	if !g.closed() {
		return anybody, nil
	}
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	shown = strings.TrimSpace(shown)
	if !strings.EqualFold(scheme, "Bearer") || shown == "" {
		return nil, refuse(http.StatusUnauthorized, "token", "a token is needed: send Authorization: Bearer TOKEN")
	}
	if g.options.Tokens != nil {
		if t := findToken(g.options.Tokens(), shown); t != nil {
			if !t.Expires.IsZero() && !time.Now().Before(t.Expires) {
				return nil, invalidToken("the token %q expired at %s", t.Name, t.Expires.UTC().Format(time.RFC3339))
			}
			return &principal{name: t.Name, agents: t.Agents}, nil
		}
	}
	if g.oauth == nil {
		return nil, invalidToken("unknown token")
	}
	who, err := g.oauth.verify(r.Context(), shown)
	switch {
	case errors.Is(err, errIssuer):
		return nil, refuse(http.StatusServiceUnavailable, "issuer", "%v", err)
	case err != nil:
		return nil, invalidToken("%v", err)
	}
	return who, nil
}

func invalidToken(format string, args ...any) *refusal {
	r := refuse(http.StatusUnauthorized, "token", format, args...)
	r.code = "invalid_token"
	return r
}

// authorize says whether a principal may use an agent.
func (g *gate) authorize(who *principal, a *agent) *refusal {
	if who.mayUse(a.id) {
		return nil
	}
	r := refuse(http.StatusForbidden, "agent", "the token of %q is not for agent %q", who.name, a.id)
	r.code = "insufficient_scope"
	return r
}

// challenge is the value of WWW-Authenticate. Texts of ours have no characters
// that a quoted string must escape but the quotes.
func (g *gate) challenge(r *http.Request, why *refusal) string {
	parts := []string{`Bearer realm="zen-mcp"`}
	if g.oauth != nil {
		parts = append(parts, fmt.Sprintf(`resource_metadata="%s"`, g.oauth.metadataURL(r.URL.Path)))
	}
	if why.code != "" {
		parts = append(parts, fmt.Sprintf(`error="%s"`, why.code),
			fmt.Sprintf(`error_description="%s"`, strings.Map(printable, strings.ReplaceAll(why.text, `"`, "'"))))
	}
	return strings.Join(parts, ", ")
}

// printable keeps what an error_description may hold: RFC 6750 section 3.
func printable(r rune) rune {
	if r < ' ' || r > '~' || r == '\\' {
		return '?'
	}
	return r
}
