package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"zenmcp/mcpserver"
)

// tokenVariable holds a token for all agents. There is no flag for it: arguments
// can be read by others on the machine.
const tokenVariable = "ZEN_MCP_TOKEN"

// httpOptions are the flags of serve that --http needs.
type httpOptions struct {
	addr           string
	tokenFile      string
	oauthIssuer    string
	publicURL      string
	allowedHosts   []string
	allowedOrigins []string
	sessionTimeout time.Duration
	maxSessions    int
	limits         mcpserver.Limits
	serve          mcpserver.ServeOptions
}

func (h *httpOptions) register(set *pflag.FlagSet) {
	set.StringVar(&h.addr, "http", "", "serve streamable HTTP at `ADDR` instead of stdio; \":8080\" is 127.0.0.1:8080")
	set.StringVar(&h.serve.CertFile, "tls-cert", "", "serve HTTPS with the certificate and chain in this `FILE` (PEM)")
	set.StringVar(&h.serve.KeyFile, "tls-key", "", "the key of --tls-cert, in this `FILE` (PEM)")
	set.StringVar(&h.tokenFile, "token-file", "", "accept the tokens in this `FILE`, which zen-mcp token makes; $"+tokenVariable+" is one for all agents")
	set.StringVar(&h.oauthIssuer, "oauth-issuer", "", "accept access tokens that the authorization server at this `URL` issued for --public-url")
	set.StringVar(&h.publicURL, "public-url", "", "the `URL` at which clients reach the server, without /mcp")
	set.StringSliceVar(&h.allowedHosts, "allowed-host", nil, "serve this host `NAME` too, with a port or without; * is any")
	set.StringSliceVar(&h.allowedOrigins, "allowed-origin", nil, "let web pages of this `ORIGIN` call, for example https://app.example; * is any")
	set.DurationVar(&h.sessionTimeout, "session-timeout", 2*time.Hour, "end a session that nobody used for `TIME`")
	set.IntVar(&h.maxSessions, "max-sessions", 1000, "keep at most `N` sessions; the one unused for longest makes room")
	set.DurationVar(&h.serve.Grace, "grace", 10*time.Second, "when shutting down, let calls go on for `TIME`")
	set.IntVar(&h.limits.Calls, "max-calls", 256, "let one client have `N` calls running; 0 is any number")
	set.IntVar(&h.limits.PerMinute, "max-calls-per-minute", 0, "let one client begin `N` calls a minute; 0 is any number")
	set.DurationVar(&h.limits.Timeout, "call-timeout", 10*time.Minute, "stop a call after `TIME`; 0 never does")
}

// apply sets the options that the flags are about.
func (h *httpOptions) apply(to *mcpserver.Options, log *slog.Logger) error {
	if h.publicURL != "" {
		if u, err := url.Parse(h.publicURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return errUsage{fmt.Errorf("--public-url %q: use a whole URL such as https://mcp.example", h.publicURL)}
		}
	} else if h.oauthIssuer != "" {
		return errUsage{errors.New("--oauth-issuer needs --public-url, which is what its tokens must be for")}
	}
	tokens, err := h.tokens(log)
	if err != nil {
		return err
	}
	to.SessionTimeout, to.MaxSessions = h.sessionTimeout, h.maxSessions
	to.Limits = h.limits
	to.HTTP = mcpserver.HTTPOptions{
		Tokens: tokens, OAuthIssuer: h.oauthIssuer, PublicURL: h.publicURL,
		AllowedHosts: h.allowedHosts, AllowedOrigins: h.allowedOrigins,
	}
	return nil
}

// tokens finds the tokens of the environment and the file; nil without either.
func (h *httpOptions) tokens(log *slog.Logger) (func() []mcpserver.Token, error) {
	var fixed []mcpserver.Token
	if token := os.Getenv(tokenVariable); token != "" {
		os.Unsetenv(tokenVariable) // what tools start must not inherit it
		if len(token) < 16 {
			log.Warn("the token can be guessed: zen-mcp token makes a better one", "variable", tokenVariable)
		}
		fixed = append(fixed, mcpserver.Token{Name: tokenVariable, Sum: sha256.Sum256([]byte(token)), Agents: []string{"*"}})
	}
	if h.tokenFile == "" {
		if fixed == nil {
			return nil, nil
		}
		return func() []mcpserver.Token { return fixed }, nil
	}
	file, err := mcpserver.OpenTokenFile(h.tokenFile, log)
	if err != nil {
		return nil, errUsage{fmt.Errorf("--token-file: %w", err)}
	}
	if fixed == nil {
		return file.Tokens, nil
	}
	return func() []mcpserver.Token { return slices.Concat(file.Tokens(), fixed) }, nil
}

// hostPort divides --http; without a host it is loopback.
func (h *httpOptions) hostPort() (host, port string, err error) {
	host, port, err = net.SplitHostPort(h.addr)
	if err != nil {
		return "", "", fmt.Errorf("--http %q: use HOST:PORT, for example 127.0.0.1:8080", h.addr)
	}
	return cmp.Or(host, "127.0.0.1"), port, nil
}

// address completes --http and refuses what would be open to others: an address
// that is not loopback, without a credential.
func (h *httpOptions) address() (string, error) {
	host, port, err := h.hostPort()
	if err != nil {
		return "", err
	}
	ip := net.ParseIP(host)
	local := strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
	if !local && h.tokenFile == "" && h.oauthIssuer == "" && os.Getenv(tokenVariable) == "" {
		return "", fmt.Errorf("--http %q can be reached by others: ask them for a token with --token-file FILE (zen-mcp token makes one), $%s or --oauth-issuer URL", h.addr, tokenVariable)
	}
	return net.JoinHostPort(host, port), nil
}

func serveHTTP(ctx context.Context, o *options, std streams) error {
	if len(o.roots) == 0 {
		return errUsage{errors.New("over HTTP the file tools need --root DIR to stay in; --root / lets them reach everything")}
	}
	addr, err := o.http.address()
	if err != nil {
		return errUsage{err}
	}
	if (o.http.serve.CertFile == "") != (o.http.serve.KeyFile == "") {
		return errUsage{errors.New("--tls-cert and --tls-key need each other")}
	}
	sys, err := newSystem(o, std)
	if err != nil {
		return err
	}
	defer sys.close()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("--http %q: %w", o.http.addr, err)
	}
	defer l.Close()
	o.http.serve.Log = sys.log
	o.http.serve.Ready = func() { o.http.announce(l.Addr(), sys.log, std.err) }
	return mcpserver.ServeHTTP(ctx, l, o.http.serve, func(ctx context.Context) (*mcpserver.Server, error) { return sys.server(ctx, o) })
}

// announce says where the server is, and what is risky about it.
func (h *httpOptions) announce(at net.Addr, log *slog.Logger, out io.Writer) {
	scheme := "https"
	if h.serve.CertFile == "" {
		scheme = "http"
		if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
			log.Warn("tokens and contents pass the network in the clear: use --tls-cert, or a proxy that speaks TLS")
		}
	}
	fmt.Fprintf(out, "zen-mcp: serving at %s://%s/mcp\n", scheme, at)
}
