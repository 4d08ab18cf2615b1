package configs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// quiet is how long nothing must change until a burst of changes is over, and
	// burst how long one may last: who saves all the time is heard as well.
	quiet = 300 * time.Millisecond
	burst = 700 * time.Millisecond
	// pollInterval is how often one looks where the system does not tell of changes,
	// unless that would take more than a twentieth of the time.
	pollInterval = 2 * time.Second
	// maxWatched is how many folders are watched: a link can lead to the whole disk.
	maxWatched = 5000
)

// Watch calls changed whenever something in the places may have changed, once at
// the beginning, and returns when ctx ends. It watches what is there and where
// something could appear: no folder is watched whole that belongs to somebody else,
// such as the user's home. A burst of changes is one; it is told 300 ms after the
// last change, and 700 ms after the first at the latest.
//
// Where the system cannot watch, because its limits are reached for example, the log
// says so, and changed is called every two seconds or, where there is much to look
// at, less often.
func (p *Places) Watch(ctx context.Context, log *slog.Logger, changed func(context.Context)) {
	told := ""
	for ctx.Err() == nil {
		// Each round has a watch of its own. What it watches is then what there is,
		// whatever was moved, and there is nothing to keep in step.
		began := time.Now()
		w := newLookout()
		p.watchAll(w)
		if blind := errors.Join(w.blind...); blind == nil {
			told = ""
		} else if told != blind.Error() {
			told = blind.Error()
			log.Warn("not every change of a file is noticed at once", "reason", blind)
		}
		// The files are read after the watch has begun: whatever changes from here on
		// is noticed.
		changed(ctx)
		var poll <-chan time.Time
		if w.blind != nil {
			poll = time.After(max(pollInterval, 20*time.Since(began)))
		}
		settle(ctx, w.hits, poll)
		w.close()
	}
}

// watchAll watches all places, whether they exist and are trusted or not.
func (p *Places) watchAll(w *lookout) {
	for kind, of := range layout {
		for _, place := range p.all(kind) {
			real := w.follow(place.Path)
			switch {
			case real == "":
			case !of.file:
				w.folder(real, of.deep)
			case place.Project: // what it names is a part of what the user trusts
				for _, name := range namedFiles(real, p.Project) {
					w.follow(filepath.Join(p.Project, name))
				}
			}
		}
	}
	if p.Home != "" {
		w.follow(filepath.Join(p.Home, configName))
	}
	if p.State != "" {
		w.follow(p.trustFile())
	}
}

// A lookout watches folders, each whole or for some names in it.
type lookout struct {
	notify *fsnotify.Watcher // nil when there can be none
	hits   chan struct{}     // holds one while something has changed
	blind  []error           // why some changes are not noticed

	mu    sync.Mutex
	names map[string][]string // by the real path of a folder; nil is all
}

func newLookout() *lookout {
	w := &lookout{hits: make(chan struct{}, 1), names: map[string][]string{}}
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		w.cannot(err)
		return w
	}
	go w.listen()
	return w
}

func (w *lookout) close() {
	if w.notify != nil {
		w.notify.Close() // ends listen; there is nothing to do about an error
	}
}

// listen takes what the system tells until the watch is closed.
func (w *lookout) listen() {
	for {
		select {
		case e, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if !w.matters(e) {
				continue
			}
		case _, ok := <-w.notify.Errors: // above all: there was more than the system could keep
			if !ok {
				return
			}
		}
		select {
		case w.hits <- struct{}{}:
		default:
		}
	}
}

func (w *lookout) matters(e fsnotify.Event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, isFolder := w.names[e.Name]; isFolder && e.Op.Has(fsnotify.Remove|fsnotify.Rename) {
		return true
	}
	names, watched := w.names[filepath.Dir(e.Name)]
	is := func(name string) bool { return strings.EqualFold(name, filepath.Base(e.Name)) } // some systems do not tell cases apart
	return watched && (names == nil || slices.ContainsFunc(names, is))
}

// settle returns after a burst of hits, or when poll or ctx end the waiting for one.
func settle(ctx context.Context, hits <-chan struct{}, poll <-chan time.Time) {
	select {
	case <-ctx.Done():
		return
	case <-poll:
		return
	case <-hits:
	}
	still, late := time.NewTimer(quiet), time.NewTimer(burst)
	defer still.Stop()
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-late.C:
			return
		case <-still.C:
			return
		case <-hits:
			still.Reset(quiet)
		}
	}
}

// follow watches what decides where a path leads: its last name, and each link on
// the way. Where the path stops to exist, it watches for the next name on it. It
// returns the path without links, and "" if there is nothing.
func (w *lookout) follow(path string) string {
	at := filepath.VolumeName(path) + string(filepath.Separator)
	rest := split(path[len(filepath.VolumeName(path)):])
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil || len(rest) == 0 || info.Mode()&fs.ModeSymlink != 0 {
			w.watch(at, name)
			info, err = os.Lstat(next) // first watch, then look
		}
		if err != nil {
			return ""
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > 40 {
			return ""
		}
		if filepath.IsAbs(target) {
			at = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(filepath.VolumeName(target)):]
		}
		rest = append(split(target), rest...)
	}
	return at
}

// split is the names in a path.
func split(path string) []string {
	names := strings.Split(filepath.ToSlash(path), "/")
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || name == "." })
}

// folder watches all of a folder, and, if it is deep, of the folders in it. A link
// in the folder itself is followed, as it may be a skill; one further below leads to
// nothing that counts.
func (w *lookout) folder(dir string, deep bool) {
	for _, e := range w.entries(dir) {
		path := filepath.Join(dir, e.Name())
		if e.Type()&fs.ModeSymlink != 0 {
			path = w.follow(path)
		}
		if info, err := os.Stat(path); deep && err == nil && info.IsDir() && !IsJunk(e.Name()) {
			w.tree(path)
		}
	}
}

func (w *lookout) tree(dir string) {
	for _, e := range w.entries(dir) {
		switch path := filepath.Join(dir, e.Name()); {
		case e.Type()&fs.ModeSymlink != 0:
			w.follow(path) // a file may be kept elsewhere
		case e.IsDir() && !IsJunk(e.Name()):
			w.tree(path)
		}
	}
}

// entries watches all of a folder and then lists it; nothing if that was done before.
func (w *lookout) entries(dir string) []fs.DirEntry {
	w.mu.Lock()
	names, watched := w.names[dir]
	w.mu.Unlock()
	if watched && names == nil {
		return nil
	}
	if !w.watch(dir, "") {
		return nil
	}
	entries, _ := os.ReadDir(dir) // what cannot be read is for those to tell who need it
	return entries
}

// watch watches a folder for a name, or for all if that is empty.
func (w *lookout) watch(dir, name string) bool {
	w.mu.Lock()
	names, watched := w.names[dir]
	switch {
	case !watched && len(w.names) >= maxWatched:
		w.mu.Unlock()
		w.cannot(errTooMany)
		return false
	case name == "":
		w.names[dir] = nil
	case !watched || names != nil:
		w.names[dir] = append(names, name)
	}
	w.mu.Unlock()
	if !watched && w.notify != nil {
		if err := w.notify.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.cannot(err)
		}
	}
	return true
}

var errTooMany = fmt.Errorf("there are more than %d folders", maxWatched)

// cannot notes that changes are not noticed. One reason is enough of a kind.
func (w *lookout) cannot(err error) {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		err = errors.New("the system watches no more folders; raise fs.inotify.max_user_watches")
	case errors.Is(err, syscall.EMFILE):
		err = errors.New("the system starts no more watches; raise fs.inotify.max_user_instances, or the number of open files")
	}
	if !slices.ContainsFunc(w.blind, func(known error) bool { return known.Error() == err.Error() }) {
		w.blind = append(w.blind, err)
	}
}

// IsJunk reports whether a name in a folder is not part of what the folder is
// about: what version control, package managers, systems and editors leave there.
func IsJunk(name string) bool {
	if strings.HasSuffix(name, "~") || strings.HasPrefix(name, ".#") || name == "4913" { // vim asks with that one whether it may write
		return true
	}
	swap, _ := filepath.Match(".*.sw[a-p]", name)
	return swap || slices.Contains([]string{".git", ".hg", ".svn", ".DS_Store", "node_modules", "__pycache__"}, name)
}
