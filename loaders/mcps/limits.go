package mcps

import (
	"sync"
	"sync/atomic"
	"time"
)

// limits are the two clocks of a call: one that every sign of life starts anew,
// and one for the whole.
type limits struct {
	silence, total time.Duration // 0 means none
	end            time.Time     // of the whole
	due            atomic.Int64  // when one of them is reached, in Unix nanoseconds; 0 is never
}

func (l *limits) start(r *request) {
	l.silence, l.total = r.timeout, r.maxTimeout
	if l.total > 0 {
		l.end = time.Now().Add(l.total)
	}
	l.restart()
}

// restart takes a sign of life.
func (l *limits) restart() {
	var due time.Time
	if l.silence > 0 {
		due = time.Now().Add(l.silence)
	}
	if l.total > 0 && (l.silence <= 0 || l.end.Before(due)) {
		due = l.end
	}
	if !due.IsZero() {
		l.due.Store(due.UnixNano())
	}
}

// check says which limit was reached; nil if none is. Silence does not count
// while a user is thinking about a question.
func (l *limits) check(c *pending) error {
	if l.total > 0 && !time.Now().Before(l.end) {
		return &silenceError{limit: l.total, total: true}
	}
	c.mu.Lock()
	asking := c.waiting > 0
	c.mu.Unlock()
	if !asking && time.Now().UnixNano() >= l.due.Load() {
		return &silenceError{limit: l.silence}
	}
	l.restart()
	return nil
}

// A watch wakes the calls of a peer that have reached a limit. It has one timer,
// set for the first of them: a timer for each call wakes a thread when it is set.
type watch struct {
	calls func() []*pending

	mu    sync.Mutex
	timer *time.Timer
	next  int64 // what the timer is set for, in Unix nanoseconds; 0 if it is not
}

// over has the watch look at a call when that is due.
func (w *watch) over(c *pending) {
	due := c.limits.due.Load()
	if due == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != 0 && w.next <= due {
		return
	}
	w.next = due
	in := time.Until(time.Unix(0, due))
	if w.timer == nil {
		w.timer = time.AfterFunc(in, w.look)
	} else {
		w.timer.Reset(in)
	}
}

// look is called by the timer.
func (w *watch) look() {
	w.mu.Lock()
	w.next = 0
	w.mu.Unlock()
	for _, c := range w.calls() {
		if due := c.limits.due.Load(); due != 0 && due <= time.Now().UnixNano() {
			go c.push(event{expired: true}) // each may have to say farewell
		} else {
			w.over(c)
		}
	}
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}
