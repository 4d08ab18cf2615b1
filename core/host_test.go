package core

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestHost is a call that runs on its host's goroutine and is stuck in a file
// operation: the host knows, and what the operation gives in the end is let go.
func TestHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		h := NewHost(nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		file := new(closable)
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.Run(ctx, PaceBrief, func(ctx context.Context) {
				_, err = Within(ctx, "far/away", func() (*closable, error) { <-answer; return file, nil })
			})
		}()
		time.Sleep(PathDeadline - 1)
		synctest.Wait()
		if late := h.Overdue(time.Now()); late != nil {
			t.Errorf("too early: %v", late)
		}
		time.Sleep(time.Nanosecond)
		late := h.Overdue(time.Now())
		if !errors.Is(late, os.ErrDeadlineExceeded) || late.Error() != `"far/away" did not answer within 10s; is it on a disk that is away?` {
			t.Errorf("late: %v", late)
		}
		cancel(late)
		close(answer)
		<-done
		if !errors.Is(err, os.ErrDeadlineExceeded) || !file.closed {
			t.Errorf("the call went on with %v, closed %v", err, file.closed)
		}
		if late := h.Overdue(time.Now().Add(time.Hour)); late != nil {
			t.Errorf("late without an operation: %v", late)
		}
	})
}

type closable struct{ closed bool }

func (c *closable) Close() error { c.closed = true; return nil }

// TestWaits is that a call which waits gives its host back.
func TestWaits(t *testing.T) {
	t.Parallel()
	Waits(t.Context()) // nobody cares
	WaitsBriefly(t.Context())
	waits := 0
	brief := 0
	tell := func(b bool) {
		if waits++; b {
			brief++
		}
	}
	NewHost(tell).Run(t.Context(), PaceBrief, func(ctx context.Context) {
		Waits(ctx)
		WaitsBriefly(ctx)
		WaitsBriefly(Apart(ctx))
	})
	NewHost(tell).Run(t.Context(), PaceParks, WaitsBriefly)
	if waits != 2 || brief != 1 {
		t.Errorf("told %d times, of which %d are brief", waits, brief)
	}
	gate, done := make(chan struct{}), make(chan struct{})
	NewHost(nil).Run(t.Context(), PaceParks, func(ctx context.Context) {
		defer close(done)
		Waits(ctx)
		<-gate
	})
	close(gate)
	<-done
}

// TestWaitsWhenUnparked is that a call gives its host back even if somebody has
// unparked it before, and is still unparked afterwards.
func TestWaitsWhenUnparked(t *testing.T) {
	t.Parallel()
	gate, done := make(chan struct{}), make(chan struct{})
	NewHost(nil).Run(t.Context(), PaceParks, func(ctx context.Context) {
		defer close(done)
		p := ParkerOf(ctx)
		p.Unpark()
		Waits(ctx)
		<-gate
		p.Park()
	})
	close(gate)
	<-done
}

// TestApart is that what a call has others do on goroutines of their own is no
// business of its host.
func TestApart(t *testing.T) {
	t.Parallel()
	if Apart(t.Context()) != t.Context() {
		t.Error("there is no host to part with")
	}
	for _, pace := range []Pace{PaceBrief, PaceParks} {
		NewHost(func(bool) { t.Error("the host was told") }).Run(t.Context(), pace, func(ctx context.Context) {
			ready := make(chan struct{})
			go func() {
				defer close(ready)
				Waits(Apart(ctx))
				if _, own := ParkerOf(Apart(ctx)).(*coroutine); own {
					t.Error("waits with the call's own coroutine")
				}
			}()
			<-ready
		})
	}
}

// TestParking has calls answered by others, on the spot, late and again and again.
func TestParking(t *testing.T) {
	t.Parallel()
	const calls, parks = 200, 50
	var over sync.WaitGroup
	var count atomic.Int32
	for range calls {
		over.Add(1)
		NewHost(nil).Run(t.Context(), PaceParks, func(ctx context.Context) {
			defer over.Done()
			p := ParkerOf(ctx)
			for i := range parks {
				var ready atomic.Bool
				answer := func() {
					ready.Store(true)
					p.Unpark()
					p.Unpark() // which may come to nothing, or end the next Park too early
				}
				if i%3 == 0 {
					answer()
				} else {
					go answer()
				}
				if i%10 == 0 {
					Waits(ctx)
				}
				for !ready.Load() {
					p.Park()
				}
				count.Add(1)
			}
		})
	}
	over.Wait()
	if n := count.Load(); n != calls*parks {
		t.Errorf("%d answers", n)
	}
	if p := ParkerOf(t.Context()); p != nil { // of a call that has a goroutine
		go p.Unpark()
		p.Park()
	}
}
