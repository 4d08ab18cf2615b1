package mcps

import (
	"context"
	"encoding/json"
	"sync"

	"zenmcp/core"
)

// A pending is a call on its way.
type pending struct {
	id     int64
	req    *request
	ctx    context.Context // ends with the call
	limits limits

	core.Parker // of the caller; it is unparked when there are events
	mu          sync.Mutex
	// events are what came for the call, in the order of the wire. The caller takes
	// them, so progress cannot be overtaken by the result, and whoever brings them
	// only has to wake it. That may mean to run it, so it is done apart: see
	// [peer.deliver].
	events  []event
	held    *event // the end of the call, see [peer.end]
	waiting int    // elicitations that the user has not answered yet
}

// An event is progress, a sign of life, the end of a call, or that it may have
// reached a limit.
type event struct {
	progress *core.Progress
	expired  bool
	end      bool
	result   json.RawMessage
	err      error
}

// maxEvents bounds what a server can pile up on a caller that does not take it.
const maxEvents = 4096

// push adds an event and wakes the caller.
func (c *pending) push(e event) {
	c.add(e)
	c.Unpark()
}

func (c *pending) add(e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) < maxEvents || e.end || e.expired {
		c.events = append(c.events, e)
	}
}

// take gives the events, and the end that is held back if the connection is over.
func (c *pending) take(over bool) []event {
	c.mu.Lock()
	defer c.mu.Unlock()
	if over {
		c.unhold()
	}
	events := c.events
	c.events = nil
	return events
}

// unhold makes the end of the call one of its events. The caller holds c.mu.
func (c *pending) unhold() {
	if c.held != nil {
		c.events = append(c.events, *c.held)
		c.held = nil
	}
}

// finish tells the caller of the end.
func (c *pending) finish() {
	c.mu.Lock()
	c.unhold()
	c.mu.Unlock()
	c.Unpark()
}

// wait takes the call's events until its end.
func (c *pending) wait(p *peer) (json.RawMessage, error) {
	p.watch.over(c)
	defer context.AfterFunc(c.ctx, c.Unpark)()
	for {
		lost := p.reason() // before the events: what was read before the end counts
		for _, e := range c.take(lost != nil) {
			if e.end {
				return e.result, e.err
			}
			if e.expired {
				if err := c.limits.check(c); err != nil {
					return nil, err
				}
				p.watch.over(c)
				continue
			}
			c.limits.restart()
			if e.progress != nil && c.ctx.Err() == nil {
				c.req.progress(*e.progress)
			}
		}
		switch {
		case c.ctx.Err() != nil:
			return nil, context.Cause(c.ctx)
		case lost != nil:
			return nil, &lostError{cause: lost, sent: true}
		}
		c.Park()
	}
}
