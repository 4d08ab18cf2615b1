package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"zenmcp/core"
)

const (
	// maxWorkers is how many folders are read at the same time, at most. More
	// than that only wait for each other in the kernel.
	maxWorkers = 8
	// maxOpen is how many folders are kept open for what is still to be read in
	// them. Beyond, folders are opened by their path.
	maxOpen = 256
	// readBuffer is how much of a folder is read at once, per worker.
	readBuffer = 32 << 10
	// maxHits is how many entries of one folder are handed over at once.
	maxHits = 4096
	// maxWalk is how long a walk may take, in seconds. Clients give up after a
	// minute, and then there is not even a part of the answer.
	maxWalk = 45
	// lastCall is how long a walk that is to end waits for its workers.
	lastCall = 50 * time.Millisecond
)

// A walk goes through the folders of a selection, in parallel, and hands over
// what is selected. Folders are reached by their names from the open folder
// above them; links are followed only where a pattern names them.
type walk struct {
	selection *selection
	// found is given selected entries of one folder, from several goroutines at
	// once; the list is valid until it returns. False ends the walk. An entry
	// without a name is the folder itself.
	found func(w *worker, in *folder, entries []entry) bool
	// batch, if not 0, is the most entries that are handed over at once, and
	// batches of one folder go to different workers: for a found that takes long.
	batch int
	// beyond, if not nil, reports whether nothing at or below a path is wanted
	// any more. What has smaller names then comes first, as far as several
	// workers can keep to that.
	beyond func(path string) bool
	// read reads a folder; nil is (*core.Folder).Read. Tests put in one that hangs.
	read func(f *core.Folder, buf []byte, visit func(string, fs.FileMode) bool) error

	mu      sync.Mutex
	walked  walked
	jobs    []job // the last one is taken first, so that they stay few
	running []*worker
	idle    []*worker
	err     error
	done    chan struct{} // closed when nothing is left
	stopped atomic.Bool
	open    atomic.Int32 // folders
	reached atomic.Int64 // folders, for progress
}

// walked is how a walk went.
type walked struct {
	aborted    bool  // the context ended first
	late       bool  // it was ended after maxWalk
	unreadable int   // folders that could not be read
	firstError error // of those
}

// An entry is a name in a folder and its type, links not followed.
type entry struct {
	name string
	typ  fs.FileMode
}

// A folder is one that was reached.
type folder struct {
	*core.Folder
	path       string // as results show it: "", or with a slash at its end
	start      *start
	want, skip []*node
	refs       atomic.Int32
}

// shown is the path of an entry as results show it.
func (f *folder) shown(name string) string {
	if name == "" {
		return strings.TrimSuffix(f.path, "/")
	}
	return f.path + name
}

// at is the path of what results show as shown, for what a Folder does not do.
func (s *start) at(shown string) core.Path {
	return s.path.Join(strings.TrimPrefix(shown, s.shown))
}

// A job is a folder to read, or entries to hand over.
type job struct {
	in      *folder // held open for the job; nil for a folder that is opened by its path
	name    string  // of the folder in it
	entries []entry // of it

	start      *start
	path       string // of the folder, as results show it
	first      bool   // the walk begins here
	self       bool   // it is a result if it is a folder
	want, skip []*node
}

// shown is the path of the job's folder as results show it.
func (j job) shown() string {
	if j.in != nil {
		return j.in.path + j.name + "/"
	}
	return j.path
}

// given is the path of the job's folder for messages.
func (j job) given() string {
	if j.in != nil {
		return j.in.start.at(j.in.shown(j.name)).Given
	}
	return j.start.at(j.path).Given
}

// A worker is one goroutine of a walk with its buffers.
type worker struct {
	walk *walk
	buf  []byte
	in   *folder // being read
	hits []entry
	subs []job

	doing job // with mu: what it does, for the watch
	turns int // with mu: changes when it goes on
}

// run walks, and returns when everything is done, when the context ends or found
// wants no more, when it takes too long, or when a folder does not answer.
// Progress goes to the call from the third second on.
func (k *walk) run(ctx context.Context, call *core.Call) (walked, error) {
	k.done = make(chan struct{})
	if k.read == nil {
		k.read = (*core.Folder).Read
	}
	jobs := make([]job, len(k.selection.starts))
	for i, s := range k.selection.starts {
		jobs[i] = job{start: s, path: s.shown, first: true, self: s.self, want: s.want, skip: s.skip}
	}
	if len(jobs) == 0 {
		return walked{}, nil
	}
	k.push(ctx, jobs, len(jobs))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := map[*worker]sighting{}
	told := int64(0)
	for seconds := 1; ; seconds++ {
		select {
		case <-k.done:
			return k.outcome(ctx, nil)
		case <-ctx.Done():
			k.end()
			return k.outcome(ctx, nil)
		case now := <-tick.C:
			if err := k.watch(last, now); err != nil {
				return k.outcome(ctx, err)
			}
			if seconds == maxWalk {
				k.end()
				how, err := k.outcome(ctx, nil)
				how.late = true
				return how, err
			}
			if n := k.reached.Load(); seconds > 2 && n > told {
				told = n
				call.Report(core.Progress{Done: float64(n), Message: core.Plural(int(n), "folder") + " read"})
			}
		}
	}
}

// end stops the workers, and waits for them a moment.
func (k *walk) end() {
	k.stopped.Store(true)
	select {
	case <-k.done:
	case <-time.After(lastCall):
	}
}

// outcome ends the walk for the workers that are left, if any.
func (k *walk) outcome(ctx context.Context, err error) (walked, error) {
	k.stopped.Store(true)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.walked.aborted = ctx.Err() != nil
	if err == nil && !k.walked.aborted {
		err = k.err
	}
	return k.walked, err
}

// A sighting is when a worker was first seen at the same turn.
type sighting struct {
	turns int
	since time.Time
}

// watch looks for a worker that has not come back from a folder in time.
func (k *walk) watch(last map[*worker]sighting, now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.running {
		seen, ok := last[w]
		if !ok || seen.turns != w.turns {
			last[w] = sighting{w.turns, now}
		} else if now.Sub(seen.since) >= core.PathDeadline {
			return fmt.Errorf("%q did not answer within %v; is it on a disk that is away? leave it out with exclude", w.doing.given(), core.PathDeadline)
		}
	}
	return nil
}

// push adds jobs and starts up to more workers for them.
func (k *walk) push(ctx context.Context, jobs []job, more int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.jobs = append(k.jobs, jobs...)
	limit := min(max(runtime.GOMAXPROCS(0), 2), maxWorkers)
	for range min(more, limit-len(k.running)) {
		w := &worker{walk: k}
		if n := len(k.idle); n > 0 {
			w, k.idle = k.idle[n-1], k.idle[:n-1]
		} else {
			w.buf = make([]byte, readBuffer)
		}
		k.running = append(k.running, w)
		go w.work(ctx)
	}
}

// work does jobs until none is left.
func (w *worker) work(ctx context.Context) {
	k := w.walk
	for {
		k.mu.Lock()
		n := len(k.jobs)
		if n == 0 {
			k.running = slices.DeleteFunc(k.running, func(x *worker) bool { return x == w })
			k.idle = append(k.idle, w)
			if len(k.running) == 0 {
				close(k.done)
			}
			k.mu.Unlock()
			return
		}
		j := k.jobs[n-1]
		k.jobs[n-1] = job{}
		k.jobs = k.jobs[:n-1]
		w.doing = j
		w.turns++
		k.mu.Unlock()
		w.do(ctx, j)
	}
}

func (w *worker) do(ctx context.Context, j job) {
	k := w.walk
	switch {
	case k.stopped.Load():
	case j.entries != nil:
		w.handOver(j.in, j.entries)
	case k.beyond != nil && k.beyond(j.shown()):
	default:
		f, err := w.openFolder(ctx, j)
		if err != nil {
			k.missed(j, err)
			break
		}
		w.list(ctx, f, j)
		k.release(f)
	}
	if j.in != nil {
		k.release(j.in)
	}
}

// on tells the watch that the worker goes on, with this name in the folder.
func (w *worker) on(in *folder, name string) {
	w.walk.mu.Lock()
	defer w.walk.mu.Unlock()
	w.doing = job{in: in, name: name}
	w.turns++
}

// goesOn tells the watch that the worker gets on with what it is at, and reports
// whether it is to.
func (w *worker) goesOn() bool {
	w.walk.mu.Lock()
	defer w.walk.mu.Unlock()
	w.turns++
	return !w.walk.stopped.Load()
}

func (w *worker) openFolder(ctx context.Context, j job) (*folder, error) {
	f := &folder{start: j.start, path: j.path, want: j.want, skip: j.skip}
	var err error
	if j.in != nil {
		f.start, f.path = j.in.start, j.shown()
		f.Folder, err = j.in.Folder.Folder(j.name)
	} else {
		f.Folder, err = j.start.at(j.path).OpenFolder(ctx)
	}
	if err != nil {
		return nil, err
	}
	f.refs.Store(1)
	w.walk.open.Add(1)
	w.walk.reached.Add(1)
	if j.self {
		w.handOver(f, []entry{{"", fs.ModeDir}})
	}
	return f, nil
}

// missed decides what a folder that cannot be read means. What is not there (any
// more) is no result; in front of the first wildcard everything else is an
// error, behind it such folders are counted.
func (k *walk) missed(j job, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
	case j.in != nil && errors.Is(err, syscall.ELOOP): // it has become a link
	case j.first || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		k.fail(err)
	default:
		if j.in != nil { // else the error names the folder
			err = about(j.given(), err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.walked.unreadable++; k.walked.firstError == nil {
			k.walked.firstError = err
		}
	}
}

func (k *walk) fail(err error) {
	k.stopped.Store(true)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.err = err
	}
}

func (k *walk) release(f *folder) {
	if f.refs.Add(-1) == 0 {
		f.Close()
		k.open.Add(-1)
	}
}

// list reads a folder: hands over what is selected, and pushes what is to be
// read next.
func (w *worker) list(ctx context.Context, f *folder, j job) {
	k := w.walk
	w.in, w.hits, w.subs = f, w.hits[:0], w.subs[:0]
	if k.batch > 0 {
		w.hits = make([]entry, 0, 2*k.batch) // the batches keep it
	}
	var err error
	if j.first && f.start.named() {
		err = w.lookUp(ctx)
	} else {
		err = k.read(f.Folder, w.buf, w.visit)
	}
	if err != nil {
		k.missed(j, err)
	}
	if k.beyond != nil {
		slices.SortFunc(w.subs, func(a, b job) int { return strings.Compare(b.name, a.name) }) // the last is taken first
		slices.SortFunc(w.hits, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	}
	rest := w.hits
	for k.batch > 0 && len(rest) > k.batch {
		f.refs.Add(1)
		w.subs = append(w.subs, job{in: f, entries: rest[:k.batch]})
		rest = rest[k.batch:]
	}
	if len(w.subs) > 0 {
		k.push(ctx, w.subs, len(w.subs)-1)
		clear(w.subs)
	}
	if len(rest) > 0 {
		w.handOver(f, rest)
	}
}

func (w *worker) handOver(in *folder, entries []entry) {
	if !w.walk.found(w, in, entries) {
		w.walk.stopped.Store(true)
	}
}

// visit decides about one name in the folder that is being read.
func (w *worker) visit(name string, typ fs.FileMode) bool {
	k, f := w.walk, w.in
	if k.stopped.Load() {
		return false
	}
	inner := typ // an exclude holds behind links too
	if typ == fs.ModeSymlink {
		inner = fs.ModeDir
	}
	out, skip := step(f.skip, name, inner)
	if out.excluded(typ == fs.ModeDir) {
		return true
	}
	hidden := emptied(skip)
	e, want := step(f.want, name, typ)
	listed := e.listed(typ == fs.ModeDir, hidden)
	if listed {
		w.hits = append(w.hits, entry{name, typ})
	}
	if want != nil && !hidden {
		j := job{in: f, name: name, want: want, skip: skip}
		if link := typ == fs.ModeSymlink; link || k.open.Load() > maxOpen {
			j.in, j.start, j.path = nil, f.start, f.path+name+"/"
			j.self = link && !listed && e&endsZero != 0
		} else {
			f.refs.Add(1)
		}
		w.subs = append(w.subs, j)
	}
	if k.batch == 0 && len(w.hits) >= maxHits {
		w.handOver(f, w.hits)
		w.hits = w.hits[:0]
	}
	return true
}

// lookUp serves a folder of which only names without wildcards are wanted.
func (w *worker) lookUp(ctx context.Context) error {
	f := w.in
	for _, n := range f.want {
		info, err := f.start.at(f.path + n.head).Lstat(ctx)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		case err != nil:
			return err
		default:
			w.visit(n.head, info.Mode().Type())
		}
	}
	return nil
}
