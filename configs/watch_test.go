package configs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestSettle checks when a burst of changes is over.
func TestSettle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		hits  int           // one every 100 ms
		poll  time.Duration // 0 is never
		after time.Duration // the first hit, or the start
	}{
		{"one change", 1, 0, quiet},
		{"a few changes", 3, 0, 2*100*time.Millisecond + quiet},
		{"changes without end", 1000, 0, burst},
		{"no change", 0, pollInterval, pollInterval},
	} {
		synctest.Test(t, func(t *testing.T) {
			hits := make(chan struct{}, 1)
			var poll <-chan time.Time
			if c.poll > 0 {
				poll = time.After(c.poll)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				tick := time.NewTicker(100 * time.Millisecond)
				defer tick.Stop()
				for range c.hits {
					select {
					case hits <- struct{}{}:
					default:
					}
					select {
					case <-tick.C:
					case <-ctx.Done():
						return
					}
				}
			}()
			began := time.Now()
			settle(ctx, hits, poll)
			if took := time.Since(began); took != c.after {
				t.Errorf("%s: over after %v, want %v", c.name, took, c.after)
			}
			cancel()
			settle(ctx, hits, nil) // returns
		})
	}
}

// A scene is places with somebody who watches them.
type scene struct {
	t                    *testing.T
	user, project, state string
	home, elsewhere      string
	places               *Places
	looks                chan bool
}

func newScene(t *testing.T) *scene {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, user: filepath.Join(top, "user"), project: filepath.Join(top, "project"), state: filepath.Join(top, "user", "state"),
		elsewhere: filepath.Join(top, "elsewhere"), looks: make(chan bool, 1000)}
	s.home = filepath.Join(s.user, ".ai-zen")
	for _, dir := range []string{s.user, s.project, s.elsewhere} {
		s.must(os.Mkdir(dir, 0o700))
	}
	s.places, err = Find(Options{Project: s.project, UserHome: s.user, Getenv: func(name string) string {
		return map[string]string{"XDG_STATE_HOME": s.state}[name]
	}})
	s.must(err)
	return s
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) write(path, text string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Dir(path), 0o700))
	s.must(os.WriteFile(path, []byte(text), 0o600))
}

// TestWatch checks that every change is noticed which could matter, where there was
// nothing before as well.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() {
		defer close(done)
		s.places.Watch(ctx, slog.New(slog.DiscardHandler), func(context.Context) { s.looks <- true })
	}()
	in := func(dir, name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	skills := in(s.home, "skills")
	look := func(after string) {
		t.Helper()
		select {
		case <-s.looks:
		case <-time.After(20 * time.Second):
			t.Fatalf("nobody looks after: %s", after)
		}
	}
	look("the beginning")
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"the home appears", func() { s.write(in(s.home, "config.json"), "{}") }},
		{"a file is written again", func() { s.write(in(s.home, "config.json"), "{ }") }},
		{"a file is renamed over", func() {
			s.write(in(s.home, "x.tmp"), "{}")
			s.must(os.Rename(in(s.home, "x.tmp"), in(s.home, "config.json")))
		}},
		{"a file goes", func() { s.must(os.Remove(in(s.home, "config.json"))) }},
		{"a file leads elsewhere", func() {
			s.write(in(s.elsewhere, "dot.json"), "{}")
			s.must(os.Symlink(in(s.elsewhere, "dot.json"), in(s.home, "config.json")))
		}},
		{"a file changes elsewhere", func() { s.write(in(s.elsewhere, "dot.json"), "{ }") }},
		{"a file is replaced elsewhere", func() {
			s.write(in(s.elsewhere, "x.tmp"), "{}")
			s.must(os.Rename(in(s.elsewhere, "x.tmp"), in(s.elsewhere, "dot.json")))
		}},
		{"a skill appears with its folders", func() { s.write(in(skills, "a/SKILL.md"), "1") }},
		{"a folder appears in a skill", func() { s.must(os.Mkdir(in(skills, "a/deep"), 0o700)) }},
		{"a file appears in it", func() { s.write(in(skills, "a/deep/x"), "1") }},
		{"a skill is renamed", func() { s.must(os.Rename(in(skills, "a"), in(skills, "b"))) }},
		{"a file changes in what was renamed", func() { s.write(in(skills, "b/deep/x"), "2") }},
		{"another skill takes the old name", func() { s.write(in(skills, "a/deep/x"), "1") }},
		{"a file changes in both: the one", func() { s.write(in(skills, "a/deep/x"), "2") }},
		{"and the other", func() { s.write(in(skills, "b/deep/x"), "3") }},
		{"a skill leads elsewhere", func() {
			s.write(in(s.elsewhere, "v1/deep/x"), "1")
			s.must(os.Symlink("v1", in(s.elsewhere, "now")))
			s.must(os.Symlink(in(s.elsewhere, "now"), in(skills, "linked")))
		}},
		{"a file changes there", func() { s.write(in(s.elsewhere, "v1/deep/x"), "2") }},
		{"the link on the way leads elsewhere", func() {
			s.write(in(s.elsewhere, "v2/deep/x"), "1")
			s.must(os.Symlink("v2", in(s.elsewhere, "next")))
			s.must(os.Rename(in(s.elsewhere, "next"), in(s.elsewhere, "now")))
		}},
		{"a file changes where it leads now", func() { s.write(in(s.elsewhere, "v2/deep/x"), "2") }},
		{"the home is moved away", func() { s.must(os.Rename(s.home, s.home+".old")) }},
		{"and back", func() { s.must(os.Rename(s.home+".old", s.home)) }},
		{"a file changes after that", func() { s.write(in(skills, "a/deep/x"), "3") }},
		{"the project gets .mcp.json", func() { s.write(in(s.project, ".mcp.json"), "{}") }},
		{"it names a script", func() {
			s.write(in(s.project, "bin/server.sh"), "1")
			s.write(in(s.project, ".mcp.json"), `{"mcpServers": {"x": {"command": "sh", "args": ["bin/server.sh"]}}}`)
		}},
		{"the script changes", func() { s.write(in(s.project, "bin/server.sh"), "2") }},
		{"the project gets an agent", func() { s.write(in(s.project, ".ai-zen/agents/a.json"), "{}") }},
		{"and it changes", func() { s.write(in(s.project, ".ai-zen/agents/a.json"), "{ }") }},
		{"the user gets .agents/mcp.json", func() { s.write(in(s.user, ".agents/mcp.json"), "{}") }},
		{"the project is trusted", func() { s.write(s.places.trustFile(), "{}") }},
		{"the skills go", func() { s.must(os.RemoveAll(skills)) }},
		{"and come back", func() { s.write(in(skills, "a/SKILL.md"), "1") }},
	} {
		if runtime.GOOS == "windows" && strings.Contains(step.what, "lead") {
			continue // links need a privilege there
		}
		// What came before is over: a burst ends before it is told, and the next look
		// begins with a watch of its own.
		for len(s.looks) > 0 {
			<-s.looks
		}
		step.do()
		look(step.what)
	}
	cancel()
	<-done
}

// TestWatchesNoMoreThanItNeeds checks that of folders that belong to somebody else
// only names are watched, and of others not what is no part of them.
func TestWatchesNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write(filepath.Join(s.user, "Documents", "x"), "")
	s.write(filepath.Join(s.project, "src", "x"), "")
	skill := filepath.Join(s.project, ".agents", "skills", "a")
	for _, name := range []string{"SKILL.md", "refs/x", "node_modules/m/x", ".git/x"} {
		s.write(filepath.Join(skill, filepath.FromSlash(name)), "")
	}
	w := newLookout()
	defer w.close()
	s.places.watchAll(w)
	if w.blind != nil {
		t.Fatal(w.blind)
	}
	watched := map[string]string{}
	for dir, names := range w.names {
		slices.Sort(names)
		if watched[dir] = "*"; names != nil {
			watched[dir] = strings.Join(slices.Compact(names), " ")
		}
	}
	want := map[string]string{
		s.user:                            ".agents .ai-zen state",
		s.project:                         ".ai-zen .mcp.json",
		filepath.Dir(filepath.Dir(skill)): "mcp.json skills",
		filepath.Dir(skill):               "*",
		skill:                             "*",
		filepath.Join(skill, "refs"):      "*",
	}
	if fmt.Sprint(watched) != fmt.Sprint(want) {
		t.Errorf("watched %v\nwant    %v", watched, want)
	}
}

// TestIsJunk checks what editors leave beside a file.
func TestIsJunk(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"SKILL.md": false, "a.swf": false, ".env": false, "~x": false, ".swiftlint": false,
		"SKILL.md~": true, ".SKILL.md.swp": true, ".x.swo": true, ".#SKILL.md": true, "4913": true, ".git": true, "node_modules": true,
	} {
		if IsJunk(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// TestBlind checks what is said when the system's limits are reached.
func TestBlind(t *testing.T) {
	t.Parallel()
	w := newLookout()
	w.close()
	for _, err := range []error{syscall.ENOSPC, syscall.EMFILE, syscall.ENOSPC} {
		w.cannot(err)
	}
	w.watch(t.TempDir(), "x") // the watch is closed, as if it had never been
	for i := len(w.names); i < maxWatched; i++ {
		w.names[fmt.Sprint(i)] = nil
	}
	if w.watch(t.TempDir(), "") {
		t.Error("one folder more is watched than may be")
	}
	said := errors.Join(w.blind...).Error()
	for _, words := range []string{"max_user_watches", "max_user_instances", "closed", "more than 5000 folders"} {
		if strings.Count(said, words) != 1 {
			t.Errorf("said %q, which does not have %q once", said, words)
		}
	}
}
