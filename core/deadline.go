package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

// PathDeadline is how long one operation on a path may take (decision 7). A
// network share or a cloud placeholder can block a system call for minutes; the
// call then ends with an error that names the path and is
// os.ErrDeadlineExceeded, and the server goes on.
const PathDeadline = 10 * time.Second

// patience is how long writing that many bytes to disk may take.
func patience(size int64) time.Duration {
	const slow = 4 << 20 // bytes a second
	return PathDeadline + time.Duration(size/slow)*time.Second
}

// Within runs an operation on files that no scope confines, such as those of a
// configuration, within [PathDeadline]. path is what the error names when it does
// not come back. ctx ends the wait too.
func Within[T any](ctx context.Context, path string, op func() (T, error)) (T, error) {
	a, err := within(ctx, Path{Given: path}, PathDeadline, func() (answer[T], error) {
		v, err := op()
		return answer[T]{v, err}, nil
	})
	if err != nil {
		return a.v, err
	}
	return a.v, a.err
}

// An answer is what an operation gave whose error has its words already.
type answer[T any] struct {
	v   T
	err error
}

func (a answer[T]) discard() { release(a.v) }

// on runs one operation on a path within the deadline, see [at].
func on[T any](ctx context.Context, p Path, follow bool, op func(tree, string) (T, error)) (T, error) {
	return within(ctx, p, PathDeadline, func() (T, error) { return at(p, follow, op) })
}

// do is on for operations without a value.
func do(ctx context.Context, p Path, follow bool, op func(tree, string) error) error {
	_, err := on(ctx, p, follow, func(t tree, name string) (struct{}, error) { return struct{}{}, op(t, name) })
	return err
}

// at runs one operation on what p leads to, or without follow on p itself. When
// the path as written does not do, it is resolved and tried once more: os.Root
// refuses absolute links even where they lead into a root, and a name may be
// stored in another Unicode form.
func at[T any](p Path, follow bool, op func(tree, string) (T, error)) (T, error) {
	if !follow && p.slash {
		var err error
		if p, err = p.entry(); err != nil {
			var zero T
			return zero, err
		}
	}
	v, err := op(p.root.tree, p.name())
	if escapes(err) || errors.Is(err, fs.ErrNotExist) && hasForms(p.rel) {
		real, e := p.resolve(follow)
		if e != nil {
			return v, e
		}
		if real.rel != p.rel || real.root.real != p.root.real {
			return op(real.root.tree, real.name())
		}
	}
	return v, err
}

// name is what the tree is asked for. The slash at the end is kept, since it
// makes the system insist on a directory.
func (p Path) name() string {
	if p.slash {
		return p.rel + "/"
	}
	return p.rel
}

// entry is p without the slash at its end, for operations on p itself: systems
// disagree about what the slash means there. Here it means that p is a directory
// and no link to one, if it exists.
func (p Path) entry() (Path, error) {
	slash := p.slash
	p.slash = false
	if slash {
		info, err := at(p, false, tree.Lstat)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return p, p.refuse("is a link; leave the slash at the end off to mean the link itself")
		}
		if err == nil && info.Mode().IsRegular() {
			return p, syscall.ENOTDIR
		}
	}
	return p, nil
}

// within runs op and waits for it, for the end of ctx, or for the deadline. An
// operation that does not come back keeps its goroutine and nothing else: what
// it gives in the end is closed or discarded. A call that has a [Host] leaves the
// waiting to that: a goroutine for each operation costs more than most of them do.
func within[T any](ctx context.Context, p Path, deadline time.Duration, op func() (T, error)) (T, error) {
	type outcome struct {
		v     T
		err   error
		panic any
	}
	var zero T
	if ctx.Err() != nil {
		return zero, context.Cause(ctx)
	}
	if h := hostOf(ctx); h != nil {
		return hosted(ctx, h, p, deadline, op)
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil {
				o.panic = fmt.Sprintf("%v\n%s", r, debug.Stack())
			}
			done <- o
		}()
		o.v, o.err = op()
		o.err = p.explain(o.err)
	}()
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	var err error
	select {
	case o := <-done:
		if o.panic != nil {
			panic(o.panic) // where somebody can recover it, which ends a call and not the server
		}
		return o.v, o.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = p.late(deadline)
	}
	go func() { release((<-done).v) }()
	return zero, err
}

// late is the error of an operation on p that has not come back.
func (p Path) late(deadline time.Duration) error {
	return &pathError{named(p.Given) + " did not answer within " + deadline.String() + "; is it on a disk that is away?", os.ErrDeadlineExceeded}
}

// release lets go of what an operation gave that nobody waits for any more.
func release(v any) {
	switch v := v.(type) {
	case interface{ discard() }:
		v.discard()
	case io.Closer:
		v.Close()
	}
}
