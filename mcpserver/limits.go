package mcpserver

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"zenmcp/core"
)

// Limits bound what one principal may ask for; all that come without a credential
// are one principal. The zero value bounds nothing.
type Limits struct {
	// Calls is how many calls may run at a time.
	Calls int
	// PerMinute is how many calls may begin in a minute.
	PerMinute int
	// Timeout is how long a call may take. A client of the older revisions that
	// loses its connection does not cancel its call: this ends it.
	Timeout time.Duration
}

// manyPrincipals is how many allowances are kept before idle ones are dropped.
const manyPrincipals = 1000

// A limiter counts the calls of each principal.
type limiter struct {
	Limits
	mu         sync.Mutex
	principals map[string]*allowance
}

type allowance struct {
	running int
	rate    *rate.Limiter // nil without a limit
}

// errLimited is in every error of a limiter.
var errLimited = errors.New("over the limit")

// enter begins a call; leave ends it. The error tells when to come back.
func (l *limiter) enter(principal string) (leave func(), err error) {
	if l.Calls <= 0 && l.PerMinute <= 0 {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.allowance(principal)
	if l.Calls > 0 && a.running >= l.Calls {
		return nil, fmt.Errorf("%w: %s running, as many as one client may have; call again when one has ended", errLimited, core.Plural(a.running, "call"))
	}
	if a.rate != nil {
		r := a.rate.Reserve()
		if wait := r.Delay(); wait > 0 {
			r.Cancel()
			return nil, fmt.Errorf("%w: %s a minute; call again in %v", errLimited, core.Plural(l.PerMinute, "call"), wait.Round(time.Second)+time.Second)
		}
	}
	a.running++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		a.running--
	}, nil
}

func (l *limiter) allowance(principal string) *allowance {
	if a := l.principals[principal]; a != nil {
		return a
	}
	if l.principals == nil {
		l.principals = map[string]*allowance{}
	}
	if len(l.principals) >= manyPrincipals {
		for name, a := range l.principals {
			if a.running == 0 && (a.rate == nil || a.rate.Tokens() >= float64(l.PerMinute)) {
				delete(l.principals, name)
			}
		}
	}
	a := &allowance{}
	if l.PerMinute > 0 {
		a.rate = rate.NewLimiter(rate.Limit(l.PerMinute)/60, l.PerMinute)
	}
	l.principals[principal] = a
	return a
}
