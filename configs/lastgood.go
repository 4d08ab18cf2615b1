package configs

import (
	"errors"
	"io/fs"
	"strings"
	"sync"

	"zenmcp/core"
)

// A LastGood holds what files said when they could be understood last. While a
// server runs, somebody writes in a file, and what it said must not be lost until
// it makes sense again. The zero value is ready.
type LastGood[T any] struct {
	mu    sync.Mutex
	files map[string]T
}

// Round begins a look at all files. What is not asked for in it, as it is gone or is
// not trusted any more, is forgotten at its end.
func (g *LastGood[T]) Round() *Round[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &Round[T]{of: g, before: g.files, now: map[string]T{}}
}

// A Round is one look at all files, in one goroutine.
type Round[T any] struct {
	of          *LastGood[T]
	before, now map[string]T
}

// Settle says what came of reading a file, and returns what counts: the value, or in
// its place the last good one, with true, if there is an error and such a one. A
// file that does not exist has none.
func (r *Round[T]) Settle(file string, value T, err error) (T, bool) {
	if err == nil {
		r.now[file] = value
		return value, false
	}
	last, ok := r.before[file]
	if !ok || errors.Is(err, fs.ErrNotExist) {
		return value, false
	}
	r.now[file] = last
	return last, true
}

// Last is what a file said in the round before; the zero value if nothing.
func (r *Round[T]) Last(file string) T { return r.before[file] }

// End ends the round.
func (r *Round[T]) End() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.files = r.now
}

// Kept says of a problem that what was there before is still offered.
func Kept(o core.Omission) core.Omission {
	o.Offered = true
	reason, excerpt, shown := strings.Cut(o.Reason, "\n")
	o.Reason = reason + "; what it said before stays in force"
	if shown {
		o.Reason += "\n" + excerpt
	}
	return o
}
