package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/llm"
	"zenmcp/core/proc"
	"zenmcp/loaders/mcps"
)

const (
	// serverLimit is how long one MCP server may take. A server has more, the
	// connectTimeout of its entry; who waits here is a person.
	serverLimit = 20 * time.Second
	// endpointLimit is how long an endpoint may take to list its models.
	endpointLimit = 15 * time.Second
)

// servers connects to the MCP servers that the served agents may use, to all of
// them at once.
func (e *exam) servers(ctx context.Context) {
	e.omissions(core.KindMCP)
	var all []tried
	for _, r := range e.offers {
		if source, ok := r.Source.(*mcps.Source); ok {
			for _, s := range source.Servers(ctx) {
				all = append(all, tried{source: source, server: s, permitted: e.permits(core.Capability{Kind: core.KindMCP, Name: s.Name})})
			}
		}
	}
	var wg sync.WaitGroup
	for i := range all {
		if all[i].permitted {
			wg.Go(func() { all[i].connect(ctx, e) })
		}
	}
	wg.Wait()
	for _, t := range all {
		e.server(t)
	}
}

// permits reports whether one of the served agents may use something.
func (e *exam) permits(c core.Capability) bool {
	return slices.ContainsFunc(e.served, func(s served) bool { return s.agent.Permissions.Permits(c) })
}

// A tried server is one and what came of connecting to it.
type tried struct {
	source    *mcps.Source
	server    *mcps.Server
	permitted bool

	program string // the file of a command
	noFile  error
	said    mcps.Tried
	took    time.Duration
	err     error
}

func (t *tried) connect(ctx context.Context, e *exam) {
	if t.server.Transport == mcps.Stdio {
		if t.program, t.noFile = t.source.Program(t.server); t.noFile != nil {
			return
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, serverLimit, errSlow)
	defer cancel()
	begin := time.Now()
	t.said, t.err = t.source.Try(ctx, t.server, e.Log.With("mcp_server", t.server.Name))
	t.took = time.Since(begin)
}

var errSlow = fmt.Errorf("it was not ready within %v, which is as long as doctor waits", serverLimit)

// server tells what came of one server.
func (e *exam) server(t tried) {
	field := "url"
	if t.server.Transport == mcps.Stdio {
		field = "command"
	}
	find := func(id string, err error) {
		e.find(id, e.entry(t.server, field, errors.New(t.masked(err))))
	}
	switch {
	case !t.permitted:
		e.fact(t.server.Name, "not tried: no served agent may use it")
	case t.noFile != nil:
		find("command-missing", t.noFile)
	case mcps.NeedsSignIn(t.err):
		find("mcp-sign-in", fmt.Errorf(`%w: zen-mcp call load_mcp '{"server":%q}'`, t.err, t.server.Name))
	case errors.Is(t.err, mcps.ErrRenewalDue):
		find("mcp-renewal", t.err)
	case mcps.NotInTime(t.err), errors.Is(t.err, errSlow):
		find("mcp-timeout", t.err)
	case t.err != nil:
		find("mcp-unreachable", t.err)
	default:
		e.fact(t.server.Name, "%s; protocol %s, %s, in %v", t.where(), t.said.Protocol, core.Plural(len(t.said.Tools), "tool"), t.took.Round(time.Millisecond))
		for _, w := range t.said.Warnings {
			find("mcp-warning", errors.New(w))
		}
	}
	_, ownPath := t.server.Env["PATH"]
	if t.program != "" && !ownPath && !strings.ContainsAny(t.server.Command, `/\`) {
		e.desktop(t.server.Command, e.entry(t.server, "command", nil))
	}
}

// entry is an error in a field of a server's entry.
func (e *exam) entry(s *mcps.Server, field string, err error) *configs.Problem {
	doc, unreadable := configs.ReadFile(s.Origin)
	if unreadable != nil {
		return &configs.Problem{File: s.Origin, Err: err}
	}
	return doc.Problem(&core.FieldError{Path: []string{"mcpServers", s.Name, field}, Err: err})
}

// where is how the server is reached.
func (t *tried) where() string {
	if t.program != "" {
		return t.program
	}
	return address(t.server.URL)
}

// masked is an error without what only the server should know: it may repeat it.
func (t *tried) masked(err error) string {
	text := err.Error()
	if s := t.server; s.URL != "" {
		text = strings.ReplaceAll(text, s.URL, address(s.URL))
	}
	return t.server.Masker().Replace(text)
}

// address is a URL without what may be a secret in it.
func address(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(no URL)"
	}
	u.RawQuery, u.Fragment = "", ""
	return u.Redacted()
}

// endpoints says which have a key, and with Online whether it is accepted.
func (e *exam) endpoints(ctx context.Context) {
	service := new(llm.Service)
	errs := make([]error, len(e.config.Endpoints))
	listed := make([]bool, len(errs))
	var wg sync.WaitGroup
	for i, endpoint := range e.config.Endpoints {
		if errs[i] = service.Usable(e.config, endpoint.ID); errs[i] != nil || !e.Online {
			continue
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, endpointLimit, fmt.Errorf("no answer within %v", endpointLimit))
			defer cancel()
			listed[i], errs[i] = service.Check(ctx, e.config, endpoint.ID)
		})
	}
	wg.Wait()
	for i, endpoint := range e.config.Endpoints {
		e.endpoint(i, endpoint, listed[i], errs[i])
	}
}

// endpoint tells what came of one endpoint.
func (e *exam) endpoint(i int, endpoint core.Endpoint, listed bool, err error) {
	in := func(field string, err error) error {
		doc := e.configFile()
		if doc == nil {
			return err
		}
		return doc.Problem(&core.FieldError{Path: []string{"endpoints", fmt.Sprint(i), field}, Err: err})
	}
	var unset *core.UnsetError
	switch {
	case errors.As(err, &unset):
		e.find("variable-unset", in("apiKey", unset))
	case errors.Is(err, llm.ErrNoKey):
		e.find("endpoint-no-key", in("id", fmt.Errorf("the endpoint %q has no key", endpoint.ID)))
	case errors.Is(err, llm.ErrRefused):
		e.find("endpoint-refused", in("apiKey", err))
	case err != nil && e.Online:
		e.find("endpoint-unreachable", in("baseUrl", err))
	case err != nil: // told with config.json
	case e.Online && listed:
		e.fact(endpoint.ID, "%s accepts the key", address(endpoint.BaseURL))
	case e.Online:
		e.fact(endpoint.ID, "%s answers; it lists no models, so whether it accepts the key is not known", address(endpoint.BaseURL))
	default:
		e.fact(endpoint.ID, "%s; there is a key (--online tries it)", address(endpoint.BaseURL))
	}
}

// missing reports whether a program was not found.
func missing(err error) bool { return errors.Is(err, proc.ErrNotFound) }
