// Package mcpserver publishes agents as MCP servers: each agent's tools, as its
// permissions leave them, over stdio and streamable HTTP, in every revision of
// the protocol from 2024-11-05 to 2026-07-28. It turns core's values into MCP's
// and knows nothing of what the tools do. [Server.Reload] changes what is published
// while clients are connected, and tells them.
//
// On stdio a process takes its standard streams for the protocol alone
// ([CaptureStdout], [CaptureStdin]) and serves the one session it has on them
// ([Server.ServeStdio]).
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"zenmcp/core"
	"zenmcp/core/wire"
)

// modern is the first protocol revision without sessions.
const modern = "2026-07-28"

// Options say what a [Server] publishes.
type Options struct {
	// Version is the program's version, as shown to clients.
	Version string
	// Env is shared by all scopes and holds configuration and catalog.
	Env *core.Env
	// Agents are published; the first one is the default. At least one. See
	// [Server.Reload].
	Agents []core.AgentDefinition
	// Dir is the working directory of every scope: absolute.
	Dir string
	// Roots confine the file tools; nil confines nothing.
	Roots *core.Roots
	// SessionTimeout is how long a session over HTTP, or what belongs to a
	// credential, is kept when nobody uses it; 0 is for ever. It should be long:
	// people think for hours, and a lost session is lost work.
	SessionTimeout time.Duration
	// MaxSessions is how many of them there may be; 0 is any number. Over it the
	// one goes that was not used for the longest time.
	MaxSessions int
	// Limits bound what each principal may ask for.
	Limits Limits
	// Audit gets one line of JSON per call, each in one Write; nil gets none.
	Audit io.Writer
	// Tracer makes a span of each call; nil makes none.
	Tracer trace.Tracer
	// HTTP says who may come in over HTTP.
	HTTP HTTPOptions
}

// A Server publishes agents. It is made once and serves any number of clients.
type Server struct {
	options Options
	log     *slog.Logger
	agents  []*agent
	clients clients
	work    tally // requests and calls that end by themselves
	limits  limiter
	metrics *metrics // nil on stdio, where nobody could ask for them
	audit   *audit
	tracer  trace.Tracer

	writeLimit time.Duration
	draining   atomic.Bool // the server shuts down, but calls go on
	reloading  sync.Mutex  // one reload at a time
	// closing ends when the server shuts down; every call ends with it.
	closing  context.Context
	shutdown context.CancelCauseFunc
}

// errShutdown is why calls end when the server does.
var errShutdown = errors.New("the server is shutting down")

// New makes a server. It fails when an agent's scope cannot be made, for example
// because the working directory lies outside the roots.
func New(options Options) (*Server, error) {
	s := &Server{options: options, log: options.Env.Log, writeLimit: writeLimit, limits: limiter{Limits: options.Limits}, tracer: options.Tracer}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if options.Audit != nil {
		s.audit = &audit{log: s.log, out: options.Audit}
	}
	s.clients.idle, s.clients.most = options.SessionTimeout, options.MaxSessions
	s.closing, s.shutdown = context.WithCancelCause(context.Background())
	for _, definition := range options.Agents {
		a, err := newAgent(s, definition)
		if err != nil {
			return nil, fmt.Errorf("agent %q: %w", definition.ID, err)
		}
		s.agents = append(s.agents, a)
	}
	if len(s.agents) == 0 {
		return nil, errors.New("a server needs an agent")
	}
	return s, nil
}

// Close cancels all calls and ends all scopes, after their calls if these end
// within two seconds.
func (s *Server) Close() error {
	s.shutdown(errShutdown)
	errs := []error{s.clients.close()}
	for _, a := range s.agents {
		errs = append(errs, a.shared.close())
	}
	return errors.Join(errs...)
}

// ServeStdio serves the first agent to the client at the other end of t, until
// the client leaves, which is no error, or ctx ends.
func (s *Server) ServeStdio(ctx context.Context, t *wire.Transport) error {
	a := s.agents[0]
	short := newShortPath(a)
	transport := *t
	transport.Intercept = short.intercept
	stdio := OpenStdio(ctx, &transport)
	defer stdio.cancel(nil)
	// What runs beside the SDK ends with the session as well.
	defer context.AfterFunc(stdio.Context(), func() { a.shared.cancel(context.Cause(stdio.Context())) })()
	session, err := a.mcp.Connect(stdio.Context(), stdio, nil)
	if err == nil {
		short.session.Store(session)
		err = stdio.wait(session, s.work.wait)
	}
	return errors.Join(err, s.Close())
}

// instructions tell a model in three lines what is here.
func instructions(scope *core.Scope, tools []core.Tool) string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	reach := "Paths are not confined."
	if roots := scope.Roots(); len(roots) > 0 {
		reach = fmt.Sprintf("File tools reach %s only.", quoteList(roots))
	}
	return fmt.Sprintf("Tools of an agent on this machine: %s.\nRelative paths belong to %q. %s\nA failing call says what to do next.",
		strings.Join(names, ", "), scope.Dir(), reach)
}

func quoteList(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = fmt.Sprintf("%q", item)
	}
	return strings.Join(quoted, ", ")
}
