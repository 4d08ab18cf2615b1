package mcpserver

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// watchInterval is how long a change of a file may go unnoticed.
const watchInterval = time.Second

// A watched value comes from files and is made anew when one of them changes. A
// change that makes no sense is logged, and the value stays as it was: a file that
// is half written must lock nobody out, and let nobody in.
type watched[T any] struct {
	log   *slog.Logger
	paths []string
	load  func() (T, error)

	value atomic.Pointer[T]
	next  atomic.Int64 // when to look again, in Unix nanoseconds

	mu   sync.Mutex
	seen []os.FileInfo
}

// watch loads the value for the first time.
func watch[T any](log *slog.Logger, load func() (T, error), paths ...string) (*watched[T], error) {
	w := &watched[T]{log: log, paths: paths, load: load}
	seen, err := w.stat()
	if err != nil {
		return nil, err
	}
	w.seen = seen // before loading: what changes meanwhile is loaded again
	value, err := load()
	if err != nil {
		return nil, err
	}
	w.value.Store(&value)
	w.next.Store(time.Now().Add(watchInterval).UnixNano())
	return w, nil
}

// get returns the value, no older than watchInterval.
func (w *watched[T]) get() T {
	if time.Now().UnixNano() >= w.next.Load() && w.mu.TryLock() {
		w.refresh()
		w.next.Store(time.Now().Add(watchInterval).UnixNano())
		w.mu.Unlock()
	}
	return *w.value.Load()
}

func (w *watched[T]) refresh() {
	seen, err := w.stat()
	if err == nil {
		if !changed(w.seen, seen) {
			return
		}
		w.seen = seen
		var value T
		if value, err = w.load(); err == nil {
			w.value.Store(&value)
			w.log.Info("read again", "files", w.paths)
			return
		}
	}
	w.log.Warn("a changed file is not used; what it said before stays in force", "error", err)
}

func (w *watched[T]) stat() ([]os.FileInfo, error) {
	var all []os.FileInfo
	for _, path := range w.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", path, err)
		}
		all = append(all, info)
	}
	return all, nil
}

func changed(before, now []os.FileInfo) bool {
	for i := range now {
		if !os.SameFile(before[i], now[i]) || before[i].Size() != now[i].Size() || !before[i].ModTime().Equal(now[i].ModTime()) {
			return true
		}
	}
	return false
}
