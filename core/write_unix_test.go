//go:build unix

package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// hooked is a tree whose calls can be watched and replaced.
type hooked struct {
	tree
	open   func(name string, flag int) (*os.File, error) // nil results go on to the tree
	rename func() error
	remove func()
}

func (h hooked) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if h.open != nil {
		if f, err := h.open(name, flag); f != nil || err != nil {
			return f, err
		}
	}
	return h.tree.OpenFile(name, flag, perm)
}

func (h hooked) Rename(from, to string) error {
	if h.rename != nil {
		return h.rename()
	}
	return h.tree.Rename(from, to)
}

func (h hooked) Remove(name string) error {
	err := h.tree.Remove(name)
	if h.remove != nil {
		h.remove()
	}
	return err
}

// hook puts h between the path and the disk.
func (p Path) hook(h hooked) Path {
	r := *p.root
	h.tree = r.tree
	r.tree = h
	p.root = &r
	return p
}

func isTemp(name string) bool { return strings.Contains(name, ".zen-mcp-") }

// noTemps fails if a temporary file is left anywhere.
func noTemps(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && isTemp(e.Name()) {
			t.Errorf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(info.Sys().(*syscall.Stat_t).Ino)
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given, file string // the file is where the content must be
		text        string
	}{
		{"a.txt", "in/a.txt", "new"},
		{"a.txt", "in/a.txt", ""},
		{"rel", "in/a.txt", "new"},
		{"abs", "in/a.txt", "new"},
		{"chain1", "in/a.txt", "new"},
		{"abs-dir/f", "in/d/f", "new"},
		{"new", "in/made", "new"},
		{"new-abs", "in/made-abs", "new"},
		{"two", "in2/b.txt", "new"},
		{"two-dir/deep/er/x", "in2/deep/er/x", "new"},
		{"fresh", "in/fresh", "a\r\nb\n\x00\xff"}, // case C05: verbatim
		{"deep/er/fresh", "in/deep/er/fresh", "new"},
		{"abs-dir/deep/fresh", "in/d/deep/fresh", "new"},
		{"d/../fresh", "in/fresh", "new"},
	} {
		for _, roots := range [][]string{nil, {"in", "in2"}} {
			w := newWorld(t)
			before := w.tree(t)
			info, note, err := mustPath(t, w.scope(t, roots...), c.given).WriteFile(t.Context(), []byte(c.text))
			if err != nil || note != "" || info.Size() != int64(len(c.text)) {
				t.Errorf("WriteFile(%q) with roots %q gave %v, %q, %v", c.given, roots, info, note, err)
				continue
			}
			if got := w.read(t, c.file); got != c.text {
				t.Errorf("WriteFile(%q) with roots %q: %s has %q", c.given, roots, c.file, got)
			}
			for name, entry := range w.tree(t) {
				if old, ok := before[name]; ok && name != c.file && old != entry {
					t.Errorf("WriteFile(%q) with roots %q changed %s from %q to %q", c.given, roots, name, old, entry)
				}
			}
			noTemps(t, w.base)
		}
	}
}

// TestWriteFileKeeps checks what must be of a replaced file: mode, owner, names.
func TestWriteFileKeeps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.scope(t, "in")
	file := filepath.Join(w.base, "in", "a.txt")
	for _, mode := range []fs.FileMode{0o755, 0o600, 0o640 | fs.ModeSetuid, 0o666, 0o444} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if mode == 0o444 && os.Geteuid() != 0 {
			continue // see unprivileged
		}
		before := inode(t, file)
		info, _, err := mustPath(t, s, "rel").WriteFile(t.Context(), []byte(mode.String()))
		if err != nil || info.Mode() != mode || w.read(t, "in/a.txt") != mode.String() {
			t.Errorf("a file of mode %v has %v afterwards, %v", mode, info.Mode(), err)
		}
		if inode(t, file) == before {
			t.Errorf("a file of mode %v was written in place", mode)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(file, 1234, 2345); err != nil {
			t.Fatal(err)
		}
		info, note, err := mustPath(t, s, "a.txt").WriteFile(t.Context(), nil)
		if st := info.Sys().(*syscall.Stat_t); err != nil || note != "" || st.Uid != 1234 || st.Gid != 2345 {
			t.Errorf("the owner is %d:%d, %q, %v", st.Uid, st.Gid, note, err)
		}
	}
	if err := os.Link(file, filepath.Join(w.base, "in", "other-name")); err != nil {
		t.Fatal(err)
	}
	before := inode(t, file)
	for _, text := range []string{"a longer text", "short"} {
		_, note, err := mustPath(t, s, "a.txt").WriteFile(t.Context(), []byte(text))
		if err != nil || note != "" || inode(t, file) != before || w.read(t, "in/other-name") != text {
			t.Errorf("the other name of a file has %q, %q, %v", w.read(t, "in/other-name"), note, err)
		}
	}
	noTemps(t, w.base)
}

// TestWriteRefused has systems that refuse the rename, or the content.
func TestWriteRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.scope(t)
	busy := hooked{rename: func() error { return &os.LinkError{Op: "rename", Err: syscall.EBUSY} }}
	info, note, err := mustPath(t, s, "a.txt").hook(busy).WriteFile(t.Context(), []byte("in place"))
	if err != nil || !strings.Contains(note, "in place") || info.Size() != 8 || w.read(t, "in/a.txt") != "in place" {
		t.Errorf("without a rename: %q, %v, and %q in the file", note, err, w.read(t, "in/a.txt"))
	}
	if _, _, err := mustPath(t, s, "fresh").hook(busy).WriteFile(t.Context(), nil); !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), `"fresh"`) {
		t.Errorf("without a rename a new file gave %v", err)
	}
	if runtime.GOOS == "linux" {
		full := hooked{open: func(name string, flag int) (*os.File, error) {
			if isTemp(name) {
				return os.OpenFile("/dev/full", flag&^(os.O_CREATE|os.O_EXCL), 0)
			}
			return nil, nil
		}}
		p := mustPath(t, s, "a.txt").hook(full)
		if _, _, err := p.WriteFile(t.Context(), []byte("lost")); !errors.Is(err, syscall.ENOSPC) || err.Error() != `"a.txt": no space left on device` {
			t.Errorf("a full disk gave %v", err)
		}
		if w.read(t, "in/a.txt") != "in place" {
			t.Error("a full disk cost the old content")
		}
	}
	if _, err := os.Lstat(filepath.Join(w.base, "in", "fresh")); err == nil {
		t.Error("the new file is there after an error")
	}
	noTemps(t, w.base)
}

func TestStage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := mustPath(t, w.scope(t, "in"), "abs")
	stage := func(ctx context.Context, text string) *Staged {
		t.Helper()
		s, err := p.Stage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(s, text); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := stage(t.Context(), "new")
	if w.read(t, "in/a.txt") != "A" {
		t.Error("the file has changed before Commit")
	}
	if note, err := s.Commit(t.Context()); note != "" || err != nil || w.read(t, "in/a.txt") != "new" {
		t.Errorf("Commit gave %q, %v, and the file has %q", note, err, w.read(t, "in/a.txt"))
	}
	s.Discard()
	if _, err := s.Commit(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a second Commit gave %v", err)
	}
	s = stage(t.Context(), "discarded")
	s.Discard()
	s.Discard()
	if _, err := s.Commit(t.Context()); err == nil {
		t.Error("what was discarded was committed")
	}
	why := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	s = stage(ctx, "cancelled")
	cancel(why)
	if _, err := s.Commit(ctx); !errors.Is(err, why) {
		t.Errorf("a cancelled Commit gave %v", err)
	}
	if _, err := p.Stage(ctx); !errors.Is(err, why) {
		t.Errorf("a cancelled Stage gave %v", err)
	}
	if _, _, err := p.WriteFile(ctx, []byte("cancelled")); !errors.Is(err, why) {
		t.Errorf("a cancelled WriteFile gave %v", err)
	}
	if got := w.read(t, "in/a.txt"); got != "new" {
		t.Errorf("in the end the file has %q", got)
	}
	noTemps(t, w.base)
}

// TestWriteGivenUp cancels a write while the disk does not answer: when it does at
// last, nothing of the write is left.
func TestWriteGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	started, answer, removed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow := hooked{
		open: func(name string, _ int) (*os.File, error) {
			if isTemp(name) {
				close(started)
				<-answer
			}
			return nil, nil
		},
		remove: func() { close(removed) },
	}
	p := mustPath(t, w.scope(t, "in"), "a.txt").hook(slow)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, _, err := p.WriteFile(ctx, []byte("too late")); !errors.Is(err, context.Canceled) {
		t.Errorf("WriteFile gave %v", err)
	}
	close(answer)
	<-removed
	if got := w.read(t, "in/a.txt"); got != "A" {
		t.Errorf("the file has %q", got)
	}
	noTemps(t, w.base)
}

// TestWriteConcurrently reads, changes and writes one file from many sides.
func TestWriteConcurrently(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.scope(t, "in"), w.scope(t, "in")
	other.env = one.env
	if err := os.WriteFile(filepath.Join(w.base, "in", "a.txt"), []byte("0"), 0o666); err != nil {
		t.Fatal(err)
	}
	add := func(p Path) error {
		unlock, err := p.Lock(t.Context())
		if err != nil {
			return err
		}
		defer unlock()
		data, _, err := p.ReadFile(t.Context())
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(data))
		if err == nil {
			_, _, err = p.WriteFile(t.Context(), []byte(strconv.Itoa(n+1)))
		}
		return err
	}
	var wg sync.WaitGroup
	for i := range 32 {
		p := mustPath(t, one, "a.txt")
		if i%2 == 0 {
			p = mustPath(t, other, "abs")
		}
		wg.Go(func() {
			if err := add(p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := w.read(t, "in/a.txt"); got != "32" {
		t.Errorf("32 increments gave %s", got)
	}
}

// TestUnprivileged writes as a user who may not do everything. As root it runs
// itself again as somebody else, in a folder that root has prepared.
func TestUnprivileged(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("UNPRIVILEGED_DIR"); dir != "" {
		unprivileged(t, dir, true)
		return
	}
	dir := realDir(t)
	if os.Geteuid() != 0 {
		unprivileged(t, dir, false)
		return
	}
	const nobody = 65534
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "core.test")
	if err := errors.Join(
		os.WriteFile(exe, program, 0o755),
		os.WriteFile(filepath.Join(dir, "of-root"), []byte("old"), 0o666),
		os.Chmod(filepath.Join(dir, "of-root"), 0o666),
		os.Chown(dir, nobody, nobody),
		os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), // both of t.TempDir
	); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestUnprivileged$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "UNPRIVILEGED_DIR="+dir, "GOCOVERDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) {
		t.Skip("root cannot be somebody else here: ", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestUnprivileged") {
		t.Errorf("as somebody else: %v\n%s", err, out)
	}
}

// unprivileged is told whether root has put a file of its own into dir.
func unprivileged(t *testing.T, dir string, prepared bool) {
	closed := filepath.Join(dir, "closed")
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "read-only"), []byte("old"), 0o444),
		os.Mkdir(closed, 0o777),
		os.WriteFile(filepath.Join(closed, "open"), []byte("old"), 0o666),
		os.Chmod(closed, 0o555),
	); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(closed, 0o777)
	for _, roots := range []*Roots{nil, openRoots(t, dir)} {
		s, err := NewScope(&Env{}, AgentDefinition{}, dir, roots)
		if err != nil {
			t.Fatal(err)
		}
		write := func(given, text string) (string, error) {
			info, note, err := mustPath(t, s, given).WriteFile(t.Context(), []byte(text))
			if err == nil {
				if data, e := os.ReadFile(filepath.Join(dir, given)); e != nil || string(data) != text || info.Size() != int64(len(text)) {
					err = fmt.Errorf("%q has %q: %v", given, data, e)
				}
			}
			return note, err
		}
		for _, given := range []string{"read-only", "closed/new"} {
			if _, err := write(given, "x"); !errors.Is(err, fs.ErrPermission) || err.Error() != fmt.Sprintf("%q: permission denied", given) {
				t.Errorf("writing %s gave %v", given, err)
			}
		}
		if data, err := os.ReadFile(filepath.Join(dir, "read-only")); err != nil || string(data) != "old" {
			t.Errorf("a read-only file has %q, %v", data, err)
		}
		if note, err := write("closed/open", "a longer text"); err != nil || !strings.Contains(note, "takes no new files") {
			t.Errorf("writing in a closed folder gave %q, %v", note, err)
		}
		if _, err := mustPath(t, s, "closed/open").Stage(t.Context()); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("staging in a closed folder gave %v", err)
		}
		if prepared {
			if note, err := write("of-root", "short"); err != nil || !strings.Contains(note, "written in place") {
				t.Errorf("writing somebody else's file gave %q, %v", note, err)
			}
		}
	}
	noTemps(t, dir)
}
