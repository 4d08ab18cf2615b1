package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a disk that answers only when it is told to.
type stuck struct {
	tree
	answer chan struct{}
	opened *os.File // what OpenFile gives in the end
}

func (s *stuck) Stat(name string) (fs.FileInfo, error) {
	<-s.answer
	return s.tree.Stat(name)
}

func (s *stuck) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	<-s.answer
	f, err := s.tree.OpenFile(name, flag, perm)
	s.opened = f
	return f, err
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		disk := &stuck{answer: make(chan struct{})}
		scope, err := NewScope(&Env{}, AgentDefinition{}, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		path := func(given string) Path {
			p, err := scope.Path(given)
			if err != nil {
				t.Fatal(err)
			}
			if disk.tree == nil {
				disk.tree = p.root.tree
			}
			p.root = &root{dir: p.root.dir, real: p.root.real, tree: disk}
			return p
		}
		start := time.Now()
		_, err = path("f").Stat(t.Context())
		if took := time.Since(start); took != PathDeadline || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Stat came back after %v with %v", took, err)
		}
		if want := `"f" did not answer within 10s`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want %q", err, want)
		}

		why := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		start = time.Now()
		_, err = path("new").Create(ctx, 0o666)
		if took := time.Since(start); took != time.Second || !errors.Is(err, why) {
			t.Errorf("a cancelled Create came back after %v with %v", took, err)
		}
		close(disk.answer)
		synctest.Wait()
		if err := disk.opened.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("what opened in the end is still open: %v", err)
		}
		if _, err := path("f").Stat(t.Context()); err != nil {
			t.Errorf("Stat of a disk that answers again gave %v", err)
		}
		if _, err := path("other").Create(ctx, 0o666); !errors.Is(err, why) {
			t.Errorf("Create after the end gave %v", err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "other")); err == nil {
			t.Error("Create after the end made the file")
		}
	})
}

func TestWithin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wrong := errors.New("wrong")
		if v, err := Within(t.Context(), "/x", func() (int, error) { return 1, wrong }); v != 1 || err != wrong {
			t.Errorf("got %v and %v, want what the operation gave", v, err)
		}
		answer := make(chan struct{})
		start := time.Now()
		_, err := Within(t.Context(), "/x", func() (int, error) { <-answer; return 0, nil })
		if took := time.Since(start); took != PathDeadline || !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), `"/x" did not answer`) {
			t.Errorf("an operation that does not come back: %v after %v", err, took)
		}
		close(answer)
	})
}

// TestWriteDeadline gives big files more time.
func TestWriteDeadline(t *testing.T) {
	t.Parallel()
	for size, want := range map[int64]time.Duration{0: PathDeadline, 1 << 20: PathDeadline, 1 << 30: PathDeadline + 256*time.Second} {
		if got := patience(size); got != want {
			t.Errorf("writing %d bytes may take %v, want %v", size, got, want)
		}
	}
}

// TestWithinPanic checks that a panic comes to the goroutine that can recover it.
func TestWithinPanic(t *testing.T) {
	t.Parallel()
	defer func() {
		if r := recover(); !strings.Contains(fmt.Sprint(r), "bang") || !strings.Contains(fmt.Sprint(r), "TestWithinPanic") {
			t.Errorf("recovered %v, want the panic and where it was", r)
		}
	}()
	within(t.Context(), Path{}, PathDeadline, func() (int, error) { panic("bang") })
	t.Error("within came back")
}
