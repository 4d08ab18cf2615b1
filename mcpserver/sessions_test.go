package mcpserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"zenmcp/core"
)

// as is a context of a request that a principal made.
func as(name string) context.Context {
	return context.WithValue(context.Background(), principalKey{}, &principal{name: name})
}

func credential(t *testing.T, s *Server, name string) *client {
	t.Helper()
	c, err := s.agents[0].client(as(name), nil)
	if err != nil {
		t.Fatalf("client of %s: %v", name, err)
	}
	return c
}

func scopeOf(t *testing.T, c *client) *core.Scope {
	t.Helper()
	v, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	return v.scope
}

func TestCredentialsHaveScopesOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	a, b := credential(t, s, "a"), credential(t, s, "b")
	if a == b || scopeOf(t, a) == scopeOf(t, b) {
		t.Error("two credentials share a scope")
	}
	if credential(t, s, "a") != a {
		t.Error("a credential has two scopes")
	}
	if c := credential(t, s, ""); c != s.agents[0].shared {
		t.Error("whoever comes without a credential shares a scope")
	}
}

func TestIdleClientsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t)
		s.clients.idle = time.Hour
		c := credential(t, s, "a")
		closed := false
		scopeOf(t, c).OnClose(func() error { closed = true; return nil })

		done := s.clients.use(c, true)
		time.Sleep(5 * time.Hour)
		if c.ctx.Err() != nil {
			t.Fatal("the client ended during a call")
		}
		done()
		time.Sleep(59 * time.Minute)
		s.clients.use(c, false)()
		time.Sleep(59 * time.Minute)
		if c.ctx.Err() != nil {
			t.Fatal("the client ended before its time")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if !errors.Is(context.Cause(c.ctx), errIdle) || !closed || s.clients.count() != 0 {
			t.Errorf("cause %v, scope closed %v, %d clients", context.Cause(c.ctx), closed, s.clients.count())
		}
		if credential(t, s, "a") == c {
			t.Error("the ended client came back")
		}
		s.Close()
	})
}

func TestTheLeastRecentlyUsedMakesRoom(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	s.clients.most = 3
	a, b, c := credential(t, s, "a"), credential(t, s, "b"), credential(t, s, "c")
	callOfA := s.clients.use(a, true)
	s.clients.use(b, false)()
	s.clients.use(c, false)()
	// a is the oldest, but a call of it runs; so b goes.
	d := credential(t, s, "d")
	if a.ctx.Err() != nil || c.ctx.Err() != nil || !errors.Is(context.Cause(b.ctx), errEvicted) {
		t.Errorf("a %v, b %v, c %v", context.Cause(a.ctx), context.Cause(b.ctx), context.Cause(c.ctx))
	}
	s.clients.use(c, true)
	s.clients.use(d, true)
	if _, err := s.agents[0].client(as("e"), nil); !errors.Is(err, errFull) {
		t.Errorf("all are busy: %v", err)
	}
	callOfA()
	credential(t, s, "e")
	if !errors.Is(context.Cause(a.ctx), errEvicted) || s.clients.count() != 3 {
		t.Errorf("a %v, %d clients", context.Cause(a.ctx), s.clients.count())
	}
}
