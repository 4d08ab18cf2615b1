package builtin

import (
	"cmp"
	"container/heap"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// A hit is a line of the answer. Units are code points.
type hit struct {
	Line    int     `json:"line"`
	Column  int     `json:"column,omitempty"` // of the match, from 1, when the line is cut
	Content string  `json:"content"`
	Match   *string `json:"match,omitempty"` // of a regex
}

type fileHits struct {
	File    string `json:"file"`
	Matches []hit  `json:"matches"`
}

// A hitList keeps the first hits in the order of path and line, in whatever
// order they come and from however many goroutines. The zero limit keeps none.
type hitList struct {
	limit int // lines

	mu      sync.Mutex
	files   fileHeap
	total   int
	last    atomic.Pointer[string] // see beyond
	skipped []skipped
}

// beyond reports whether nothing of a file, or of what is in a folder, can be
// among the hits: there are enough with smaller paths. What is among them does
// not depend on when this is asked.
func (l *hitList) beyond(path string) bool {
	last := l.last.Load()
	return last != nil && path > *last
}

// full reports whether there are so many hits that something may be beyond them.
func (l *hitList) full() bool { return l.last.Load() != nil }

// add takes the hits of one file, at most limit+1.
func (l *hitList) add(file string, hits []hit) {
	if len(hits) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	heap.Push(&l.files, fileHits{file, hits})
	l.total += len(hits)
	for n := len(l.files[0].Matches); l.total-n > l.limit; n = len(l.files[0].Matches) {
		l.total -= n
		heap.Pop(&l.files)
	}
	if l.total > l.limit {
		last := l.files[0].File // the heap moves its elements
		l.last.Store(&last)
	}
}

// fileHeap has the file with the greatest path on top.
type fileHeap []fileHits

func (h fileHeap) Len() int           { return len(h) }
func (h fileHeap) Less(i, j int) bool { return h[i].File > h[j].File }
func (h fileHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *fileHeap) Push(x any)        { *h = append(*h, x.(fileHits)) }
func (h *fileHeap) Pop() any {
	n := len(*h) - 1
	last := (*h)[n]
	*h = (*h)[:n]
	return last
}

// A skipReason is why a file was not searched, or not to its end.
type skipReason string

const (
	skipBinary     skipReason = "binary" // as readFile defines it
	skipTooBig     skipReason = "tooBig" // the file, or one of its lines
	skipTooSlow    skipReason = "tooSlow"
	skipUnreadable skipReason = "unreadable"
)

func (r skipReason) Error() string { return "skipped: " + string(r) }

type skipped struct {
	file   string
	reason skipReason
}

// skip notes that a file was not searched. What is not there, or no file, was
// none to be searched.
func (l *hitList) skip(file string, err error) {
	reason := skipUnreadable
	switch {
	case errors.As(err, &reason):
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ELOOP):
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipped = append(l.skipped, skipped{file, reason})
}

// sorted gives the hits, whether there are more, and how many files with paths
// up to the last hit's were skipped for what reason.
func (l *hitList) sorted() (files []fileHits, more bool, skipped map[skipReason]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	files = append([]fileHits{}, l.files...)
	slices.SortFunc(files, func(a, b fileHits) int { return cmp.Compare(a.File, b.File) })
	if surplus := l.total - l.limit; surplus > 0 {
		more = true
		last := &files[len(files)-1]
		last.Matches = last.Matches[:len(last.Matches)-surplus]
		if len(last.Matches) == 0 {
			files = files[:len(files)-1]
		}
	}
	skipped = map[skipReason]int{}
	for _, s := range l.skipped {
		if !l.beyond(s.file) {
			skipped[s.reason]++
		}
	}
	return files, more, skipped
}
