package mcps

import (
	"context"
	"errors"
	"log/slog"

	"zenmcp/core/proc"
)

// ErrRenewalDue is the error of a sign-in that has expired and would be renewed by
// a source that may write.
var ErrRenewalDue = errors.New("the sign-in has expired; the next use renews it")

// NeedsSignIn reports whether a server refused for want of a sign-in.
func NeedsSignIn(err error) bool {
	var refused *authError
	return errors.As(err, &refused)
}

// NotInTime reports whether a server did not get ready within its connectTimeout.
func NotInTime(err error) bool { return errors.Is(err, errNotReady) }

// Servers lists the servers that Discover offers.
func (s *Source) Servers(ctx context.Context) []*Server {
	found, _ := s.Discover(ctx) // whose error is about others
	return found.(*offer).servers
}

// Program is the file that a stdio server's command starts. The error says where
// it was looked for.
func (s *Source) Program(server *Server) (string, error) {
	d := dialer{source: s, server: server}
	return proc.FindProgram(server.command(d.dir()), server.environ()...)
}

// Tried is what a server said when it was tried.
type Tried struct {
	Protocol string   // the revision
	Tools    []string // the names
	// Resources and Prompts count those that are listed.
	Resources, Prompts int
	Warnings           []string // about lists and tools that are not right
}

// Try connects to a server as load_mcp does, reads its lists, and ends the
// connection and all that was started. It takes no longer than the connectTimeout
// of the entry for the connection, and no longer than ctx in all.
func (s *Source) Try(ctx context.Context, server *Server, log *slog.Logger) (tried Tried, err error) {
	var procs proc.Set
	defer func() { err = errors.Join(err, procs.Close()) }()
	d := &dialer{source: s, procs: &procs, server: server, log: log}
	conn, err := d.dial(ctx)
	if err != nil {
		return Tried{}, err
	}
	defer conn.close()
	m, err := conn.manifest(ctx)
	if err != nil {
		return Tried{}, err
	}
	tried = Tried{Protocol: m.version, Resources: len(m.resources), Prompts: m.prompts, Warnings: m.warnings}
	for _, t := range m.tools {
		tried.Tools = append(tried.Tools, t.name)
	}
	return tried, nil
}
