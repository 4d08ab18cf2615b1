package mcps

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"zenmcp/core"
	"zenmcp/core/proc"
)

// connections are what one client holds: connections of its own, a part in those
// that its agent shares, and the memory of what it has loaded. Runs of
// sub-agents use those of their client.
type connections struct {
	source *Source
	own    *pool
	shared *pool

	mu     sync.Mutex
	loaded map[string]bool
}

// connections finds, or makes, those of the client at the top of the scope.
func (s *Source) connections(scope *core.Scope) *connections {
	client := scope.Client()
	return core.Local(client, func() *connections {
		c := &connections{source: s, own: s.newPool(client), loaded: map[string]bool{}}
		var leave func() error
		c.shared, leave = s.join(client)
		client.OnClose(func() error { return errors.Join(c.own.close(), leave()) })
		return c
	})
}

func (c *connections) markLoaded(server string) {
	c.mu.Lock()
	c.loaded[server] = true
	c.mu.Unlock()
}

func (c *connections) isLoaded(server string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loaded[server]
}

// maxSignIns is how often a person is asked to sign in for one call. More than
// once is right for a server that wants another scope, or has moved.
const maxSignIns = 2

// use runs f with a session of the server, starting one if need be. When the
// connection is lost in f, f is run once more on a new one, provided that what
// it does has surely not been done, or may be repeated. When the server wants a
// sign-in, and there is a person for it, f is run once more after that.
func (c *connections) use(ctx context.Context, server *Server, call *core.Call, f func(*session) (repeatable bool, err error)) error {
	reconnected, signIns := false, 0
	for {
		repeatable, err := c.once(ctx, server, call, f)
		if err == nil {
			return nil
		}
		var lost *lostError
		var refused *authError
		var failed *startError
		canSignIn := c.source.opts.SignIn != nil
		switch {
		case ctx.Err() != nil:
		case errors.As(err, &refused) && !canSignIn:
			err = fmt.Errorf(`%w; in a terminal run zen-mcp call load_mcp '{"server":%q}', or put a key into the "headers" of its entry`, err, server.Name)
		case errors.As(err, &refused) && signIns < maxSignIns:
			signIns++
			core.Waits(ctx) // for a person
			if err = c.source.signIn(ctx, server, refused); err == nil {
				continue
			}
		case errors.As(err, &failed) || !errors.As(err, &lost):
		case lost.sent && !repeatable:
			err = fmt.Errorf("%w; the call may have done its work, so look before you repeat it", err)
		case !reconnected:
			reconnected = true
			continue
		}
		return fmt.Errorf("MCP server %q: %w", server.Name, c.masked(err, server, call))
	}
}

// once runs f with a session. A server that does not start has done nothing.
func (c *connections) once(ctx context.Context, server *Server, call *core.Call, f func(*session) (bool, error)) (repeatable bool, err error) {
	p := c.own
	if server.Shared {
		p = c.shared
	}
	slot := p.slot(server)
	s, err := slot.acquire(ctx, call.Elicit != nil || server.Shared)
	if err != nil {
		return true, &startError{err}
	}
	defer slot.release(s)
	return f(s)
}

// A startError is that of a server that could not be connected to, which is not
// tried again at once: the slot knows when.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// A sharedPool is a pool and how many clients use it. It ends with the last.
type sharedPool struct {
	pool    *pool
	clients int
}

// join gives the pool of the servers that clients of one agent share.
func (s *Source) join(client *core.Scope) (*pool, func() error) {
	id := client.Agent().ID
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.shared[id]
	if sp == nil {
		sp = &sharedPool{pool: s.newPool(client)}
		s.shared[id] = sp
	}
	sp.clients++
	return sp.pool, func() error {
		s.mu.Lock()
		sp.clients--
		last := sp.clients == 0
		if last {
			delete(s.shared, id)
		}
		s.mu.Unlock()
		if last {
			return sp.pool.close()
		}
		return nil
	}
}

// A pool is connections to servers, one for each at most. While the run of a sub-agent
// goes on with an entry that has changed since it began, there is one for that as well.
type pool struct {
	source *Source
	log    *slog.Logger
	dial   func(ctx context.Context, server *Server, ask bool) (*session, error)
	// procs are the children of the pool; what a session left behind ends with it.
	procs proc.Set

	mu     sync.Mutex
	slots  map[string][]*slot // by the name of the server, one for each entry it has had
	closed bool
}

func (s *Source) newPool(client *core.Scope) *pool {
	p := &pool{source: s, log: client.Log(), slots: map[string][]*slot{}}
	p.dial = func(ctx context.Context, server *Server, ask bool) (*session, error) {
		d := &dialer{source: s, procs: &p.procs, server: server, ask: ask, log: p.log.With("mcp_server", server.Name)}
		return d.dial(ctx)
	}
	s.pools.Store(p, true)
	return p
}

// offers reports whether this is what the entry of a server says now.
func (s *Source) offers(server *Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.offered, server.same)
}

// retire ends connections to servers that are not these, as their entries say now.
func (s *Source) retire(servers []*Server) {
	s.mu.Lock()
	s.offered = servers
	s.mu.Unlock()
	for key := range s.pools.Range {
		p := key.(*pool)
		p.mu.Lock()
		slots := p.all()
		p.mu.Unlock()
		for _, sl := range slots {
			sl.outdate(!s.offers(sl.server))
		}
	}
}

// all lists the slots. The caller holds p.mu.
func (p *pool) all() []*slot { return slices.Concat(slices.Collect(maps.Values(p.slots))...) }

func (p *pool) slot(server *Server) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	slots := p.slots[server.Name]
	if i := slices.IndexFunc(slots, func(sl *slot) bool { return sl.server.same(server) }); i >= 0 {
		return slots[i]
	}
	sl := &slot{pool: p, server: server, closed: p.closed, outdated: !p.source.offers(server)}
	p.slots[server.Name] = append(slots, sl)
	return sl
}

// close ends all connections, at once, and returns when nothing is left.
func (p *pool) close() error {
	p.source.pools.Delete(p)
	p.mu.Lock()
	p.closed = true
	slots := p.all()
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, sl := range slots {
		wg.Go(sl.close)
	}
	wg.Wait()
	return p.procs.Close()
}

// A slot is the place of one server in a pool, as one entry describes it: at most one
// connection, at most one start at a time.
type slot struct {
	pool   *pool
	server *Server

	mu       sync.Mutex
	closed   bool
	outdated bool // the entry says something else now, or is gone
	current  *session
	starting *start
	idle     *time.Timer // that looks whether the session is idle; nil before the first
	idleSet  bool
	lastUse  time.Time
	closers  sync.WaitGroup // sessions that are being closed

	// The breaker. A server that does not start, or ends as soon as it has, is
	// not started over and over.
	failures int
	retryAt  time.Time
	lastErr  error
}

// A start is a connection in the making, which any number of callers wait for.
// It is given up when none is left.
type start struct {
	done    chan struct{}
	cancel  context.CancelCauseFunc
	waiting int
	err     error // once done is closed
}

const (
	freeTries  = 3                // starts that may fail before the breaker opens
	minBackoff = time.Second      // of the first pause after that; each is twice as long
	maxBackoff = 30 * time.Second // (contract §9)
	// shortLife is how long a session must last to prove that the server works.
	shortLife = 10 * time.Second
	// outdatedIdle is the longest idle time under an entry that is outdated: what still
	// uses it is the run of a sub-agent, which does not say when it is over.
	outdatedIdle = time.Minute
)

var errEnding = errors.New("the server that you call through is ending")

// acquire gives a session that is not stopped before release. Whoever comes
// while it is being started waits for the same start.
func (sl *slot) acquire(ctx context.Context, ask bool) (*session, error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	for {
		if sl.closed {
			return nil, errEnding
		}
		if s := sl.usable(); s != nil {
			s.running++
			return s, nil
		}
		if sl.starting == nil {
			if wait := time.Until(sl.retryAt); wait > 0 {
				return nil, fmt.Errorf("it failed %d times in a row and is not started again for %v; the last time: %w",
					sl.failures, wait.Round(time.Second), sl.lastErr)
			}
			sl.begin(ask)
		}
		if err := sl.await(ctx, sl.starting); err != nil {
			return nil, err
		}
	}
}

// usable is the current session. A dead one is forgotten.
func (sl *slot) usable() *session {
	if s := sl.current; s != nil && !s.alive() {
		sl.forget(s)
	}
	return sl.current
}

// outdate notes whether the entry is outdated. When it becomes so its session ends when
// its calls have; who goes on with the entry gets another one.
func (sl *slot) outdate(outdated bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	became := outdated && !sl.outdated
	sl.outdated = outdated
	s := sl.current
	if !became || s == nil {
		return
	}
	sl.pool.log.Info("the entry of an MCP server has changed", "mcp_server", sl.server.Name)
	sl.current, sl.failures, sl.retryAt = nil, 0, time.Time{}
	sl.stopTimer()
	s.retired = true
	if s.running == 0 {
		sl.closeLater(s)
	}
}

// forget drops a session that has died, and counts that if it died young.
func (sl *slot) forget(s *session) {
	if sl.current != s {
		return
	}
	sl.current = nil
	sl.stopTimer()
	if time.Since(s.started) < shortLife && !errors.Is(s.peer.err, errSessionGone) {
		sl.failed(s.peer.err)
	} else {
		sl.failures = 0
	}
	sl.closeLater(s)
}

func (sl *slot) failed(err error) {
	sl.failures++
	sl.lastErr = err
	if over := sl.failures - freeTries; over >= 0 {
		sl.retryAt = time.Now().Add(min(minBackoff<<min(over, 10), maxBackoff))
	}
}

func (sl *slot) closeLater(s *session) { sl.closers.Go(s.close) }

// begin starts the server. The caller holds sl.mu.
func (sl *slot) begin(ask bool) {
	ctx, cancel := context.WithCancelCause(context.Background())
	st := &start{done: make(chan struct{}), cancel: cancel}
	sl.starting = st
	go func() {
		s, err := sl.pool.dial(ctx, sl.server, ask)
		cancel(nil)
		sl.mu.Lock()
		defer sl.mu.Unlock()
		defer close(st.done)
		sl.starting = nil
		switch {
		case err != nil:
			st.err = err
			if context.Cause(ctx) != errNobodyWaits {
				sl.failed(err)
			}
		case sl.closed:
			st.err = errEnding
			sl.closeLater(s)
		default:
			sl.current = s
			sl.used()
			go sl.watch(s)
		}
	}()
}

var errNobodyWaits = errors.New("nobody waits for the start any more")

// await waits for a start, without the lock.
func (sl *slot) await(ctx context.Context, st *start) error {
	st.waiting++
	sl.mu.Unlock()
	core.Waits(ctx)
	var err error
	select {
	case <-st.done:
		err = st.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	sl.mu.Lock()
	if st.waiting--; st.waiting == 0 {
		st.cancel(errNobodyWaits)
	}
	return err
}

// watch notices the end of a session that nobody is calling.
func (sl *slot) watch(s *session) {
	<-s.peer.done
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.current == s {
		sl.pool.log.Info("an MCP server has ended its connection", "mcp_server", sl.server.Name, "reason", s.peer.err)
		sl.forget(s)
	}
}

// release says that a call is over.
func (sl *slot) release(s *session) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	s.running--
	if s.running > 0 {
		return
	}
	if s.retired {
		sl.closeLater(s)
	} else if sl.current == s {
		sl.used()
	}
}

// used notes that a session is not called any more, and has it stopped when that
// stays so for long. Calls that run keep it from being stopped at all (B61). The
// timer is not set anew for each call, which would wake a thread each time.
func (sl *slot) used() {
	sl.lastUse = time.Now()
	if limit := sl.idleLimit(); limit > 0 && !sl.idleSet {
		sl.lookIn(limit)
	}
}

// idleLimit is how long a session may be idle; 0 or less is for ever.
func (sl *slot) idleLimit() time.Duration {
	limit := sl.server.IdleTimeout
	if sl.outdated && (limit <= 0 || limit > outdatedIdle) {
		return outdatedIdle
	}
	return limit
}

func (sl *slot) lookIn(d time.Duration) {
	sl.idleSet = true
	if sl.idle == nil {
		sl.idle = time.AfterFunc(d, sl.look)
	} else {
		sl.idle.Reset(d)
	}
}

// look is called by the timer.
func (sl *slot) look() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.idleSet = false
	s := sl.current
	if s == nil || s.running > 0 {
		return
	}
	limit := sl.idleLimit()
	if limit <= 0 {
		return
	}
	if left := limit - time.Since(sl.lastUse); left > 0 {
		sl.lookIn(left)
		return
	}
	sl.pool.log.Info("stopping an MCP server that was idle", "mcp_server", sl.server.Name, "after", limit)
	sl.current, sl.failures = nil, 0
	sl.closeLater(s)
}

func (sl *slot) stopTimer() {
	if sl.idle != nil {
		sl.idle.Stop()
		sl.idleSet = false
	}
}

func (sl *slot) close() {
	sl.mu.Lock()
	sl.closed = true
	sl.stopTimer()
	st, s := sl.starting, sl.current
	sl.current = nil
	if st != nil {
		st.cancel(errEnding)
	}
	sl.mu.Unlock()
	if s != nil {
		s.close()
	}
	if st != nil {
		<-st.done
	}
	sl.closers.Wait()
}
