package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// wellKnown is where clients look for the metadata of a protected resource, the
// path of the resource behind it: RFC 9728 section 3.1.
const wellKnown = "/.well-known/oauth-protected-resource"

// oauth accepts the access tokens (JWT, RFC 9068) that an authorization server
// issues for this one. The addresses of the agents are the resources: a token for
// PUBLIC/mcp/ID is for that agent, one for PUBLIC itself is for all of them.
type oauth struct {
	issuer string
	base   string // the public URL, without a slash at its end
	root   string // its scheme and host
	path   string // its path
	first  string // the agent at /mcp
	http   *http.Client

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil until the issuer's metadata are known
	retry    time.Time             // not to be asked again before, after a failure
	err      error
}

// errIssuer says that nothing can be said of a token.
var errIssuer = errors.New("the authorization server does not answer; try again later")

const (
	issuerTimeout = 10 * time.Second
	issuerRetry   = 5 * time.Second
	maxMetadata   = 1 << 20
)

// algorithms are those that a token may be signed with: the asymmetric ones.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

func newOAuth(issuer, publicURL, first string) *oauth {
	o := &oauth{issuer: issuer, base: strings.TrimSuffix(publicURL, "/"), first: first, http: &http.Client{Timeout: issuerTimeout}}
	if u, err := url.Parse(o.base); err == nil {
		o.root, o.path = u.Scheme+"://"+u.Host, u.Path
	}
	return o
}

// verify checks signature, issuer and times of a token, and tells whose it is.
// Which agents it is for, its audience says; the caller checks that.
func (o *oauth) verify(ctx context.Context, token string) (*principal, error) {
	if strings.Count(token, ".") != 2 {
		return nil, errors.New("unknown token")
	}
	verifier, err := o.discovered(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errIssuer, err)
	}
	claims, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "oidc: "), "id token", "token"))
	}
	who := &principal{name: "oauth:" + claims.Subject}
	for _, audience := range claims.Audience {
		address, ours := strings.CutPrefix(strings.TrimSuffix(audience, "/"), o.base)
		id, named := strings.CutPrefix(address, "/mcp/")
		switch {
		case !ours:
		case address == "":
			who.agents = append(who.agents, allAgents)
		case address == "/mcp":
			who.agents = append(who.agents, o.first)
		case named:
			who.agents = append(who.agents, id)
		}
	}
	if who.agents == nil {
		return nil, fmt.Errorf("the token is for %q, not for %s", claims.Audience, o.base)
	}
	if claims.Subject == "" {
		return nil, errors.New("the token names no subject")
	}
	return who, nil
}

// discovered is the verifier, for which the issuer is asked once. A server must be
// able to start while its issuer is down.
func (o *oauth) discovered(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.verifier != nil || time.Now().Before(o.retry) {
		return o.verifier, o.err
	}
	keys, err := o.findKeys(context.WithoutCancel(ctx)) // not only for the one who asks
	if err != nil {
		o.err, o.retry = err, time.Now().Add(issuerRetry)
		return nil, err
	}
	set := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), o.http), keys)
	o.verifier = oidc.NewVerifier(o.issuer, set, &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: algorithms})
	o.err = nil
	return o.verifier, nil
}

// findKeys asks the issuer where its keys are, at the places that the protocol's
// clients try too: RFC 8414 section 3 and OpenID Connect Discovery section 4.
func (o *oauth) findKeys(ctx context.Context) (string, error) {
	u, err := url.Parse(o.issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(u.Path, "/")
	var errs []error
	const openID, oauth2 = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"
	for _, p := range slices.Compact([]string{path + openID, openID + path, oauth2 + path}) {
		keys, err := o.fetchKeysURL(ctx, u.Scheme+"://"+u.Host+p)
		if err == nil {
			return keys, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

func (o *oauth) fetchKeysURL(ctx context.Context, at string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", err
	}
	res, err := o.http.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", at, res.Status)
	}
	var meta struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxMetadata)).Decode(&meta); err != nil {
		return "", fmt.Errorf("%s: %w", at, err)
	}
	if meta.Issuer != o.issuer || meta.Keys == "" {
		return "", fmt.Errorf("%s: metadata of issuer %q with keys at %q; want those of %q", at, meta.Issuer, meta.Keys, o.issuer)
	}
	return meta.Keys, nil
}

// metadataURL is where the metadata of the resource at path are.
func (o *oauth) metadataURL(path string) string { return o.root + wellKnown + o.path + path }

// serveMetadata serves the metadata of the resource whose path stands behind
// [wellKnown]. They are public, for browsers too.
func (o *oauth) serveMetadata(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, wellKnown), o.path)
	auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource:               o.base + strings.TrimSuffix(path, "/"),
		ResourceName:           "zen-mcp",
		AuthorizationServers:   []string{o.issuer},
		BearerMethodsSupported: []string{"header"},
	}).ServeHTTP(w, r)
}
