package core

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
)

// A Parker makes one goroutine wait for others. Park returns when Unpark is
// called, at once if it was called since Park returned last. Unpark may be called
// by anybody, but not with a lock that the one who parks wants to have.
type Parker interface {
	Park()
	Unpark()
}

// ParkerOf is what a call waits with for others to answer it.
func ParkerOf(ctx context.Context) Parker {
	if h := hostOf(ctx); h != nil && h.coroutine != nil {
		return h.coroutine
	}
	return make(doorbell, 1)
}

// A doorbell is the Parker of a goroutine.
type doorbell chan struct{}

func (d doorbell) Park() { <-d }

func (d doorbell) Unpark() {
	select {
	case d <- struct{}{}:
	default:
	}
}

// A coroutine is the Parker of a call that has no goroutine of its own: the one
// that starts the call gets it back when the call parks, and the one that unparks
// the call runs it on. So a call that is passed on to another server is begun by
// who reads the client's messages and ended by who reads the server's, and not one
// thread has to be woken for it.
type coroutine struct {
	mu    sync.Mutex // held while the call runs
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	state atomic.Int32
}

// The states of a coroutine.
const (
	coRunning  int32 = iota // or over
	coUnparked              // running, and the next Park returns at once
	coParked
)

// start runs f until it is over or parks.
func (c *coroutine) start(f func()) {
	c.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		f()
	})
	c.resume()
}

func (c *coroutine) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next()
}

func (c *coroutine) Park() {
	if c.state.CompareAndSwap(coRunning, coParked) {
		c.yield(struct{}{})
		return
	}
	c.state.Store(coRunning)
}

// Unpark runs the call on, if it is parked, until it is over or parks again.
func (c *coroutine) Unpark() {
	for {
		switch c.state.Load() {
		case coUnparked:
			return
		case coRunning:
			if c.state.CompareAndSwap(coRunning, coUnparked) {
				return
			}
		case coParked:
			if c.state.CompareAndSwap(coParked, coRunning) {
				c.resume()
				return
			}
		}
	}
}

// move runs the call on with a goroutine of its own, which waits for c.mu until the
// one that it has now is let go. The state is left alone: a wake-up that is already
// there is for the next Park.
func (c *coroutine) move() {
	go c.resume()
	c.yield(struct{}{})
}
