package mcps

import (
	"maps"
	"slices"
	"strings"

	"zenmcp/core"
)

// Masker takes out of a text what only the server should know: the values of its env
// and headers, what ${NAME} stood for, and what [core.Masker] does by itself. A server
// may repeat any of it in what it prints and answers.
func (s *Server) Masker() *strings.Replacer { return core.Masker(s.secrets()...) }

func (s *Server) secrets() []string {
	values := slices.Concat(s.expanded, core.SecretsOf(s.Args...), core.SecretsOf(s.URL))
	values = slices.AppendSeq(slices.AppendSeq(values, maps.Values(s.Env)), maps.Values(s.Headers))
	if s.OAuth != nil {
		values = append(values, s.OAuth.ClientSecret)
	}
	return values
}

// A maskedError is one whose text has lost its secrets.
type maskedError struct {
	error
	text string
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.error }

// secrets are the tokens of a sign-in.
func (w *wallet) secrets() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.grant == nil {
		return nil
	}
	return []string{w.grant.Secret, w.grant.Token.AccessToken, w.grant.Token.RefreshToken}
}

// masked takes what only the server should know out of an error, and the keys of
// config.json: a server may repeat what it was given or has read.
func (c *connections) masked(err error, server *Server, call *core.Call) error {
	values := server.secrets()
	if server.Transport != Stdio {
		values = append(values, c.source.wallet(server).secrets()...)
	}
	for _, endpoint := range call.Scope.Config().Endpoints {
		key, _ := core.ExpandEnv(endpoint.APIKey, c.source.opts.LookupEnv) // one that is not set is nothing
		values = append(values, key)
	}
	return &maskedError{err, core.Masker(values...).Replace(err.Error())}
}
