package core

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRedefinedRootsAreClosed checks that the roots of a definition which counts no
// more do not stay open until the client leaves.
func TestRedefinedRootsAreClosed(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(slices.DeleteFunc(entries, func(e os.DirEntry) bool {
			target, err := os.Readlink("/proc/self/fd/" + e.Name())
			return err != nil || !strings.HasPrefix(target, top)
		}))
	}
	scope := newScope(t, &Env{})
	for range 100 {
		for _, name := range []string{"a", "b"} {
			dir := filepath.Join(top, name)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			next, err := scope.As(AgentDefinition{ID: "a", Roots: []string{dir}})
			if err != nil {
				t.Fatal(err)
			}
			scope = next
		}
	}
	for end := time.Now().Add(10 * time.Second); open() != 1; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("%d folders are open", open())
		}
	}
	if _, err := scope.Path("."); err != nil {
		t.Errorf("the roots that count: %v", err)
	}
	if err := scope.Close(); err != nil || open() != 0 {
		t.Errorf("at the end %d folders are open, %v", open(), err)
	}
}
