package core

import (
	"context"
	"sync"
	"time"
)

// A Host is the goroutine on which a call runs that is not [PaceLong], if that
// goroutine is needed for something else as well: a server's, which reads what the
// client says next. File operations of such a call are made right there instead of
// on goroutines that can be left behind, so it is the Host that knows when one
// does not come back.
type Host struct {
	waits     func(brief bool)
	coroutine *coroutine // of a call that parks

	mu       sync.Mutex
	path     Path // of the operation that is being made
	deadline time.Duration
	until    time.Time // zero while there is none
}

// NewHost makes the Host of one call. waits is called, perhaps more than once,
// before the call waits for something that can take long, or is brief.
func NewHost(waits func(brief bool)) *Host { return &Host{waits: waits} }

// Run runs a call with h as its Host. A call that is [PaceParks] may not be over
// when Run returns.
func (h *Host) Run(ctx context.Context, pace Pace, call func(context.Context)) {
	ctx = context.WithValue(ctx, hostKey{}, h)
	if pace != PaceParks {
		call(ctx)
		return
	}
	h.coroutine = new(coroutine)
	h.coroutine.start(func() { call(ctx) })
}

type hostKey struct{}

func hostOf(ctx context.Context) *Host {
	h, _ := ctx.Value(hostKey{}).(*Host)
	return h
}

// Apart is ctx for what a call has others do on goroutines of their own. They are
// not where the Host of the call runs it, so what they wait for is none of its
// business.
func Apart(ctx context.Context) context.Context {
	if hostOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, hostKey{}, (*Host)(nil))
}

// Waits says that the call is about to wait for something, so that it does not
// keep its Host, if it has one.
func Waits(ctx context.Context) {
	switch h := hostOf(ctx); {
	case h == nil:
	case h.coroutine != nil:
		h.coroutine.move()
	case h.waits != nil:
		h.waits(false)
	}
}

// WaitsBriefly says that the call is about to wait for what mostly takes less than a
// millisecond, such as a disk. It keeps its Host unless that has something else to do:
// to go on elsewhere costs nearly as much as such a wait.
func WaitsBriefly(ctx context.Context) {
	if h := hostOf(ctx); h != nil && h.coroutine == nil && h.waits != nil {
		h.waits(true)
	}
}

// Overdue is the error of a call whose file operation should have come back
// before now (decision 7); nil as long as all is well. Who gets it answers for
// the call and cancels its context, so that it does nothing more should the
// operation come back after all.
func (h *Host) Overdue(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until.IsZero() || now.Before(h.until) {
		return nil
	}
	return h.path.late(h.deadline)
}

// begin notes the operation that is about to be made.
func (h *Host) begin(p Path, deadline time.Duration) {
	until := time.Now().Add(deadline)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.path, h.deadline, h.until = p, deadline, until
}

func (h *Host) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = time.Time{}
}

// hosted is within for a call that has a Host.
func hosted[T any](ctx context.Context, h *Host, p Path, deadline time.Duration, op func() (T, error)) (T, error) {
	h.begin(p, deadline)
	v, err := op()
	h.end()
	if ctx.Err() != nil {
		release(v)
		var zero T
		return zero, context.Cause(ctx)
	}
	return v, p.explain(err)
}
