package builtin

import (
	"context"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"sync"
	"time"

	"zenmcp/core"
)

// seenFiles is what a scope last read or wrote of files, so that it does not
// overwrite what somebody else has written since (decision 11).
type seenFiles struct {
	seed maphash.Seed

	mu    sync.Mutex
	files map[string]fingerprint // by real path
}

// maxSeen bounds the memory of a scope that reads a whole disk. Of a file that
// is forgotten no change is noticed.
const maxSeen = 10_000

// A fingerprint tells whether a file is still what it was.
type fingerprint struct {
	info  fs.FileInfo
	taken time.Time
	sum   uint64
	whole bool // sum is that of the content; else only a part was read
	lossy bool // the content is not UTF-8, and was shown with U+FFFD in it
}

// seenBy is what scope has seen.
func seenBy(scope *core.Scope) *seenFiles {
	return core.Local(scope, func() *seenFiles {
		return &seenFiles{seed: maphash.MakeSeed(), files: map[string]fingerprint{}}
	})
}

// note remembers the content of the file at a real path.
func (s *seenFiles) note(real core.Path, info fs.FileInfo, content []byte, lossy bool) {
	s.put(real, fingerprint{info: info, sum: maphash.Bytes(s.seed, content), whole: true, lossy: lossy})
}

// notePart remembers a file of which the content is not known whole.
func (s *seenFiles) notePart(real core.Path, info fs.FileInfo, lossy bool) {
	s.put(real, fingerprint{info: info, lossy: lossy})
}

func (s *seenFiles) put(real core.Path, f fingerprint) {
	f.taken = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.files[real.Abs]; !known && len(s.files) >= maxSeen {
		for any := range s.files {
			delete(s.files, any)
			break
		}
	}
	s.files[real.Abs] = f
}

func (s *seenFiles) last(real core.Path) (fingerprint, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[real.Abs]
	return f, ok
}

// check refuses a file that has changed since the scope saw it. The content is
// read only if it is not given and the answer depends on it.
func (s *seenFiles) check(ctx context.Context, real core.Path, info fs.FileInfo, content []byte) error {
	f, seen := s.last(real)
	if !seen || f.sameFile(info) {
		return nil
	}
	if f.whole && f.info.Size() == info.Size() {
		if content == nil {
			var err error
			if content, _, err = real.ReadFile(ctx); err != nil {
				return err
			}
		}
		if maphash.Bytes(s.seed, content) == f.sum {
			return nil
		}
	}
	return fmt.Errorf("%q has changed since you read it and was not written; read it again, or pass force: true", real.Given)
}

// clockStep is the coarsest step in which file systems count time (FAT: 2 s). A
// file that was written within the step in which it was read may have been
// written again since, with the same time.
const clockStep = 2 * time.Second

// sameFile reports whether the file's data alone prove that it is unchanged.
func (f fingerprint) sameFile(info fs.FileInfo) bool {
	same := os.SameFile(f.info, info) && f.info.Size() == info.Size() && f.info.ModTime().Equal(info.ModTime())
	return same && (!f.whole || f.taken.Sub(info.ModTime()) > clockStep)
}
