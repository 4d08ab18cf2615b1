package mcps

import "time"

// limits are the two clocks of a call: one that every sign of life starts anew,
// and one for the whole.
type limits struct {
	silence, total time.Duration
	deadline       time.Time
	timer          *time.Timer
}

func newLimits(r *request) *limits {
	l := &limits{silence: r.timeout, total: r.maxTimeout}
	if l.total > 0 {
		l.deadline = time.Now().Add(l.total)
	}
	if d := l.next(); d > 0 {
		l.timer = time.NewTimer(d)
	}
	return l
}

// next is how long until one of the limits is reached; 0 means never.
func (l *limits) next() time.Duration {
	if l.total <= 0 {
		return l.silence
	}
	left := max(time.Until(l.deadline), 1)
	if l.silence > 0 {
		return min(l.silence, left)
	}
	return left
}

func (l *limits) restart() {
	if l.timer != nil {
		l.timer.Reset(l.next())
	}
}

func (l *limits) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// expired is nil, which never fires, when there are no limits.
func (l *limits) expired() <-chan time.Time {
	if l.timer == nil {
		return nil
	}
	return l.timer.C
}

// check says which limit was reached. Silence does not count while a user is
// thinking about a question.
func (l *limits) check(c *pending) error {
	if l.total > 0 && !time.Now().Before(l.deadline) {
		return &silenceError{limit: l.total, total: true}
	}
	c.mu.Lock()
	asking := c.waiting > 0
	c.mu.Unlock()
	if asking {
		l.restart()
		return nil
	}
	return &silenceError{limit: l.silence}
}
