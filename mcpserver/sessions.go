package mcpserver

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// A client is whom a scope belongs to: the process on stdio; over HTTP a session,
// or, in the revision without sessions, a credential of an agent. Whoever comes
// without either shares one client per agent.
type client struct {
	agent     *agent
	principal string             // "" is anybody
	session   *mcp.ServerSession // nil unless it is one
	// ctx ends with the client; its calls end with it. The SDK waits for the
	// calls of a session that is closed, without cancelling them.
	ctx    context.Context
	cancel context.CancelCauseFunc

	short   sync.Mutex
	running map[jsonrpc.ID]context.CancelCauseFunc // of calls on the short path

	view   atomic.Pointer[view]
	mu     sync.Mutex // of who makes a view
	closed bool

	// The rest belongs to the lock of clients.
	requests, calls int
	place           *list.Element // nil once it has ended
	timer           *time.Timer
}

// during is a context that ends with the client as well as with ctx. cancel ends it,
// and must be called.
func (c *client) during(ctx context.Context) (own context.Context, cancel context.CancelCauseFunc) {
	own, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { end(context.Cause(c.ctx)) })
	return own, func(cause error) { stop(); end(cause) }
}

// Why the calls of a client end.
var (
	errSessionEnded = errors.New("the session has ended")
	errIdle         = errors.New("the session was idle for too long")
	errEvicted      = errors.New("the session made room for newer ones")
	errFull         = errors.New("all sessions are busy; try again in a minute")
)

func newClient(a *agent, principal string, session *mcp.ServerSession) *client {
	c := &client{agent: a, principal: principal, session: session}
	c.ctx, c.cancel = context.WithCancelCause(a.server.closing)
	return c
}

// A view is what a client may use in one edition of its agent. A call goes on in
// the view that it began in.
type view struct {
	edition   *edition
	scope     *core.Scope
	published core.Published
}

// open is the client's view of its agent as it is now. It is made when the client
// needs it: most sessions of an editor never call a tool, and cost no scope.
func (c *client) open() (*view, error) {
	if v := c.view.Load(); v != nil && v.edition == c.agent.now.Load() {
		return v, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.agent.now.Load()
	if v := c.view.Load(); v != nil && v.edition == e {
		return v, nil
	}
	v, err := c.look(e.definition)
	if err != nil {
		return nil, err
	}
	v.edition = e
	c.view.Store(v)
	return v, nil
}

// look makes a view for a definition, on what the client has gathered so far. c.mu
// is held.
func (c *client) look(definition core.AgentDefinition) (*view, error) {
	if c.closed {
		return nil, errSessionEnded
	}
	var v view
	var err error
	if before := c.view.Load(); before != nil {
		v.scope, err = before.scope.As(definition)
	} else {
		o := c.agent.server.options
		v.scope, err = core.NewScope(o.Env, definition, o.Dir, o.Roots)
	}
	if err != nil {
		return nil, err
	}
	v.published = v.scope.Tools()
	return &v, nil
}

// close ends the scope; a client that had none yet never gets one.
func (c *client) close() error {
	c.mu.Lock()
	c.closed = true
	v := c.view.Load()
	c.mu.Unlock()
	if v == nil {
		return nil
	}
	return v.scope.Close()
}

// clients are those of a server that come and go. A client that nobody has used
// for the idle limit ends; over the maximum the one goes that was not used for the
// longest time. Neither ends a client while a call of it runs.
type clients struct {
	idle time.Duration // 0: none ends
	most int           // 0: any number

	evicted atomic.Int64

	mu    sync.Mutex
	byKey map[string]*client // by the id of the session, or agent and credential
	order list.List          // of *client, the most recently used one first

	closed bool // no more of them
	ending sync.WaitGroup
}

// credentialKey cannot be the id of a session, which has no spaces.
func credentialKey(agent, principal string) string { return "credential " + agent + " " + principal }

// session finds a session for the principal and the agent that it belongs to. To
// others it is as unknown as one that never was.
func (cs *clients) session(id, principal string, a *agent) *client {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byKey[id]; c != nil && c.session != nil && c.principal == principal && c.agent == a {
		return c
	}
	return nil
}

// credential finds the client of a credential, or makes it.
func (cs *clients) credential(a *agent, principal string) (*client, error) {
	key := credentialKey(a.id, principal)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byKey[key]; c != nil {
		return c, nil
	}
	c := newClient(a, principal, nil)
	return c, cs.add(key, c)
}

// open admits a session that begins.
func (cs *clients) open(a *agent, principal string, session *mcp.ServerSession) error {
	c := newClient(a, principal, session)
	cs.mu.Lock()
	err := cs.add(session.ID(), c)
	cs.mu.Unlock()
	if err != nil {
		return err
	}
	go func() {
		session.Wait() // its error says no more than that it is over
		cs.end(c, errSessionEnded)
	}()
	return nil
}

// add registers a client, and makes room for it.
func (cs *clients) add(key string, c *client) error {
	if cs.closed {
		return errShutdown
	}
	for cs.most > 0 && cs.order.Len() >= cs.most {
		victim := cs.order.Back()
		for victim != nil && victim.Value.(*client).calls > 0 {
			victim = victim.Prev()
		}
		if victim == nil {
			c.cancel(errFull)
			return fmt.Errorf("%d sessions are open: %w", cs.most, errFull)
		}
		cs.evicted.Add(1)
		cs.remove(victim.Value.(*client), errEvicted)
	}
	if cs.byKey == nil {
		cs.byKey = map[string]*client{}
	}
	cs.byKey[key] = c
	c.place = cs.order.PushFront(c)
	if cs.idle > 0 {
		c.timer = time.AfterFunc(cs.idle, func() { cs.expire(c) })
	}
	return nil
}

// use counts a request of a client, or one of its calls, until the returned
// function is called.
func (cs *clients) use(c *client, isCall bool) (done func()) {
	count := &c.requests
	if isCall {
		count = &c.calls
	}
	step := func(by int) {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		*count += by
		if c.place == nil {
			return
		}
		cs.order.MoveToFront(c.place)
		if c.timer != nil && by < 0 && c.requests+c.calls == 0 {
			c.timer.Reset(cs.idle)
		}
	}
	step(1)
	return func() { step(-1) }
}

// expire ends a client whose timer has run out, unless it is in use again: then
// the timer starts when that ends.
func (cs *clients) expire(c *client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.requests+c.calls == 0 {
		cs.remove(c, errIdle)
	}
}

// end ends a client, if it has not ended yet.
func (cs *clients) end(c *client, cause error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.remove(c, cause)
}

func (cs *clients) remove(c *client, cause error) {
	if c.place == nil {
		return
	}
	cs.order.Remove(c.place)
	c.place = nil
	if c.timer != nil {
		c.timer.Stop()
	}
	c.cancel(cause)
	key := credentialKey(c.agent.id, c.principal)
	if c.session != nil {
		key = c.session.ID()
	}
	delete(cs.byKey, key)
	cs.ending.Go(func() {
		if c.session != nil {
			c.session.Close() // waits for its calls
		}
		if err := c.close(); err != nil {
			c.agent.server.log.Warn("ending a client", "error", err)
		}
	})
}

// count is how many there are.
func (cs *clients) count() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.order.Len()
}

// close ends all clients. Scopes end after the calls in them, or when these take
// too long: what the tools have started must not outlive the server.
func (cs *clients) close() error {
	cs.mu.Lock()
	cs.closed = true
	var all []*client
	for e := cs.order.Front(); e != nil; e = cs.order.Front() {
		all = append(all, e.Value.(*client))
		cs.remove(e.Value.(*client), errShutdown)
	}
	cs.mu.Unlock()
	ended := make(chan struct{})
	go func() { cs.ending.Wait(); close(ended) }()
	timer := time.NewTimer(unwindLimit)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
	}
	var errs []error
	for _, c := range all {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}
