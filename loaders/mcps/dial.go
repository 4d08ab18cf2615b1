package mcps

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"zenmcp/core/proc"
)

// A dialer makes a session with one server.
type dialer struct {
	source *Source
	procs  *proc.Set
	server *Server
	ask    bool // the caller can put questions to a user
	log    *slog.Logger
}

// probeTimeout is how long a server may think about server/discover. Old servers
// exist that never answer a method they do not know.
const probeTimeout = 3 * time.Second

var errNotReady = errors.New("the server did not get ready in time")

// dial connects within the entry's connectTimeout.
func (d *dialer) dial(ctx context.Context) (*session, error) {
	limit := d.server.ConnectTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("%w (%v, the connectTimeout of its entry)", errNotReady, limit))
	defer cancel()
	s, err := d.negotiate(ctx)
	if err != nil {
		return nil, err
	}
	d.log.Info("connected to an MCP server", "transport", d.server.Transport, "protocol", s.version)
	s.follow(d.ask)
	return s, nil
}

// negotiate finds the era that the server lives in. What was found is remembered,
// so that the next start goes the right way at once.
func (d *dialer) negotiate(ctx context.Context) (*session, error) {
	if d.server.Transport != SSE && d.server.Protocol != Legacy && !d.source.isLegacy(d.server) {
		s, err := d.probe(ctx)
		if s != nil || err != nil {
			return s, err
		}
	}
	s, err := d.open(ctx, d.server.Transport)
	if err != nil {
		return nil, err
	}
	if err = s.initialize(ctx, d.ask); err == nil {
		d.source.rememberLegacy(d.server)
		return s, nil
	}
	err = d.because(s, err)
	s.close()
	if status := (*statusError)(nil); d.server.Inferred && errors.As(err, &status) && status.wantsSSE() {
		return d.fallBack(ctx, err)
	}
	return nil, err
}

// probe tries the modern era. It returns nothing at all when the legacy one is
// to be tried on a connection of its own.
func (d *dialer) probe(ctx context.Context) (*session, error) {
	s, err := d.open(ctx, d.server.Transport)
	if err != nil {
		return nil, err
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if d.server.Protocol == Auto {
		limited, cancel = context.WithTimeout(ctx, probeTimeout)
	}
	err = s.discover(limited)
	cancel()
	if err == nil {
		return s, nil
	}
	if isFinal(err) || ctx.Err() != nil || d.server.Protocol == Modern {
		err = d.because(s, err)
		s.close()
		return nil, err
	}
	d.log.Debug("the server does not speak the newest protocol", "error", s.mask.Replace(err.Error()))
	// A server that has answered, if only with an error, is fit for the next
	// question; of one that was silent or has ended that is not known.
	var answered *faultError
	if errors.As(err, &answered) && s.alive() && s.initialize(ctx, d.ask) == nil {
		d.source.rememberLegacy(d.server)
		return s, nil
	}
	s.close()
	return nil, nil
}

// fallBack tries the older HTTP transport after the newer one was refused.
func (d *dialer) fallBack(ctx context.Context, refused error) (*session, error) {
	s, err := d.open(ctx, SSE)
	if err == nil {
		if err = s.initialize(ctx, d.ask); err == nil {
			return s, nil
		}
		s.close()
	}
	return nil, fmt.Errorf("streamable HTTP: %w; SSE: %w", refused, err)
}

// open makes the connection, without a handshake.
func (d *dialer) open(ctx context.Context, transport Transport) (*session, error) {
	s := newSession(d.server, d.source.opts.Version, d.log)
	var err error
	switch transport {
	case Stdio:
		err = openStdio(s, d.procs, d.dir())
	case SSE:
		err = openSSE(ctx, s, d.source.wallet(d.server))
	default:
		openHTTP(s, d.source.wallet(d.server))
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// dir is where a child starts: the project, or the entry's cwd below it
// (decision 25).
func (d *dialer) dir() string {
	if filepath.IsAbs(d.server.Dir) {
		return d.server.Dir
	}
	return filepath.Join(d.source.opts.Places.Project, d.server.Dir)
}

// because adds a child's last words to an error that does not have them.
func (d *dialer) because(s *session, err error) error {
	var lost *lostError
	if l, ok := s.peer.link.(*stdioLink); ok && !errors.As(err, &lost) {
		if words := l.lastWords(); words != "" {
			return fmt.Errorf("%w; it said: %s", err, words)
		}
	}
	return err
}

// isFinal reports errors that another way of asking would not change.
func isFinal(err error) bool {
	var lost *lostError
	var auth *authError
	var status *statusError
	if errors.As(err, &status) && status.status == http.StatusUnauthorized {
		return true
	}
	return errors.As(err, &auth) || errors.As(err, &lost) && !lost.sent && isDial(err)
}

// address tells servers apart that may be of different eras.
func (s *Server) address() string {
	if s.Transport == Stdio {
		return strings.Join(append([]string{s.Command}, s.Args...), "\x00")
	}
	return s.URL
}

func (s *Source) isLegacy(server *Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return server.Protocol == Auto && s.legacy[server.address()]
}

func (s *Source) rememberLegacy(server *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.legacy[server.address()] = true
}
