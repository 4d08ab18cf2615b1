//go:build unix

package mcpserver

import (
	"context"
	"os"
	"time"
)

// parentInterval is how often pollParent looks. Nobody waits for it: it finds
// processes that would otherwise never end.
const parentInterval = time.Second

// watchParent calls gone when the process that started this one has ended,
// unless ctx is done before. It does nothing if that process is number 1, which
// adopts orphans, so that its children cannot tell, or unknown (0), in a process
// namespace of which it is no part.
func watchParent(ctx context.Context, gone func()) {
	parent := os.Getppid()
	if parent <= 1 {
		return
	}
	go func() {
		if waitParent(ctx, parent) || pollParent(ctx, parent) {
			gone()
		}
	}()
}

// pollParent looks once a second whether this process has been given to another
// one, and reports false if ctx is done before. PR_SET_PDEATHSIG of Linux would
// spare that, but its signal comes when the thread that started us ends, which is
// no news of the process when that is written in Go, Java or Rust.
func pollParent(ctx context.Context, parent int) bool {
	tick := time.NewTicker(parentInterval)
	defer tick.Stop()
	for os.Getppid() == parent {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
