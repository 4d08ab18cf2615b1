package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"zenmcp/core"
)

// steps is how far a piece of work on many files is.
type steps struct {
	files atomic.Int64
	moves atomic.Int64 // changes whenever the work goes on
	at    atomic.Pointer[string]
}

// next is called before the work touches a file. It is the place where work that
// nobody waits for any more ends.
func (s *steps) next(ctx context.Context, path string) error {
	s.at.Store(&path)
	s.moves.Add(1)
	return context.Cause(ctx)
}

// done counts a file.
func (s *steps) done() {
	s.files.Add(1)
	s.moves.Add(1)
}

// attend runs work that goes through many files step by step. It does not wait
// for a step longer than [core.PathDeadline], nor for what is left when ctx ends;
// the work then stops before its next step. From the third second on it reports
// how many files are done. Errors say how many were done before, in a word such
// as "removed".
func attend(ctx context.Context, call *core.Call, done string, work func(context.Context, *steps) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := new(steps)
	result := make(chan error, 1)
	go func() { result <- work(ctx, s) }()
	err := s.wait(ctx, call, done, result)
	if n := s.files.Load(); err != nil && n > 0 {
		return fmt.Errorf("%w; %s before that", err, core.Plural(int(n), "file")+" "+done)
	}
	return err
}

func (s *steps) wait(ctx context.Context, call *core.Call, done string, result <-chan error) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	moves, since := int64(0), time.Now()
	told := int64(0)
	for seconds := 1; ; seconds++ {
		select {
		case err := <-result:
			return err
		case <-ctx.Done():
			select {
			case err := <-result:
				return err
			case <-time.After(lastCall):
				return context.Cause(ctx)
			}
		case now := <-tick.C:
			if m := s.moves.Load(); m != moves {
				moves, since = m, now
			} else if now.Sub(since) >= core.PathDeadline {
				return fmt.Errorf("%q did not answer within %v; is it on a disk that is away?", *s.at.Load(), core.PathDeadline)
			}
			if seconds > 2 && moves > told {
				told = moves
				call.Report(core.Progress{Done: float64(moves), Message: core.Plural(int(s.files.Load()), "file") + " " + done})
			}
		}
	}
}

// about is err as an error about a path: the system's reason without the name
// that only the code knows.
func about(path string, err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return fmt.Errorf("%q: %w", path, err)
}
