package mcpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ServeOptions say how [ServeHTTP] serves.
type ServeOptions struct {
	// Grace is how long running calls may go on when the server shuts down.
	Grace time.Duration
	// CertFile and KeyFile hold a certificate with its chain and its key, in PEM.
	// They are read again when they change. Without them it is plain HTTP.
	CertFile, KeyFile string
	// Log gets what an operator wants to know; nil discards.
	Log *slog.Logger
	// Ready, if not nil, is called when requests are served.
	Ready func()
}

// ServeHTTP serves on l until ctx ends. It does so before there is a server:
// /healthz answers at once, all else is 503 until start has made one.
//
// When ctx ends it stops to accept connections, lets calls go on for the grace
// period, cancels those that are left, ends all streams, closes the server, and
// returns nil. No answer of a call that has ended is lost.
func ServeHTTP(ctx context.Context, l net.Listener, o ServeOptions, start func(context.Context) (*Server, error)) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	v := &service{}
	// No write timeout: event streams live as long as their clients, and each
	// write has a limit of its own.
	v.web = &http.Server{Handler: v, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(sdkLog(o.Log).Handler(), slog.LevelDebug)}
	serve := v.web.Serve
	if o.CertFile != "" {
		if err := v.useTLS(o); err != nil {
			return err
		}
		serve = func(l net.Listener) error { return v.web.ServeTLS(l, "", "") }
	}
	stopped := make(chan error, 1)
	go func() { stopped <- serve(l) }()
	s, err := start(ctx)
	if err != nil {
		return errors.Join(err, v.web.Close())
	}
	handler := s.Handler()
	v.handler.Store(&handler)
	if o.Ready != nil {
		o.Ready()
	}
	select {
	case err := <-stopped:
		return errors.Join(err, s.Close())
	case <-ctx.Done():
	}
	s.draining.Store(true)
	l.Close() // refuses connections; those that are open go on
	return v.drain(s, o.Grace)
}

// A service is the address of a server that may not be there yet.
type service struct {
	web     *http.Server
	handler atomic.Pointer[http.Handler]
}

// ServeHTTP implements http.Handler.
func (v *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch handler := v.handler.Load(); {
	case handler != nil:
		(*handler).ServeHTTP(w, r)
	case r.URL.Path == "/healthz":
		io.WriteString(w, "ok\n")
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "starting", http.StatusServiceUnavailable)
	}
}

func (v *service) useTLS(o ServeOptions) error {
	certificate, err := watch(o.Log, func() (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		return &c, err
	}, o.CertFile, o.KeyFile)
	if err != nil {
		return err
	}
	v.web.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate.get(), nil }}
	return nil
}

// unwindLimit is how long cancelled calls may take to come back, and streams to
// end.
const unwindLimit = 2 * time.Second

// drain ends what goes on: first by itself, then because it must.
func (v *service) drain(s *Server, grace time.Duration) error {
	s.work.wait(grace)
	s.shutdown(errShutdown)
	s.work.wait(unwindLimit)
	err := s.Close() // ends the sessions, and with them their streams
	ctx, cancel := context.WithTimeout(context.Background(), unwindLimit)
	defer cancel()
	if stopErr := v.web.Shutdown(ctx); stopErr != nil {
		stopErr = v.web.Close()
		err = errors.Join(err, stopErr)
	}
	return err
}

// A tally counts what goes on.
type tally struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0; nil unless somebody waits
}

// begin counts one until the returned function is called.
func (t *tally) begin() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	return t.end
}

func (t *tally) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// wait waits until nothing goes on, but no longer than the limit.
func (t *tally) wait(limit time.Duration) {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return
	}
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	t.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-none:
	case <-timer.C:
	}
}
