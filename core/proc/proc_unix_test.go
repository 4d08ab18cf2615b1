//go:build unix

package proc

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// start runs a command line with stdout in a pipe. The pipe's end tells that
// everything which held it has ended.
func start(t testing.TB, set *Set, c Command) (*Process, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	t.Cleanup(func() { r.Close() })
	c.Stdout = w
	p, err := set.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return p, r
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%v after %q: something still holds the pipe", err, data)
	}
	return string(data)
}

func firstLine(t testing.TB, r *os.File) string {
	t.Helper()
	line, err := bufio.NewReaderSize(r, 16).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func TestRun(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		command Command
		out     string
		exit    Exit
	}{
		{"shell", Command{Shell: "echo $0"}, "/bin/sh\n", Exit{}},
		{"exit code", Command{Shell: "exit 7"}, "", Exit{Code: 7}},
		{"signal", Command{Shell: "kill -9 $$"}, "", Exit{-1, "SIGKILL"}},
		{"arguments", Command{Args: []string{"printf", "%s.", "a b", "'"}}, "a b.'.", Exit{}},
		{"directory", Command{Shell: "pwd; echo $PWD", Dir: dir}, dir + "\n" + dir + "\n", Exit{}},
		{"environment", Command{Shell: "echo $A; env | grep -c ^A=", Env: []string{"A=1", "A=2"}}, "2\n1\n", Exit{}},
		{"empty stdin", Command{Shell: "cat; read x; echo [$x]"}, "[]\n", Exit{}},
		{"no terminal", Command{Shell: "(exec </dev/tty) 2>/dev/null || echo none"}, "none\n", Exit{}},
		{"leads a group", Command{Shell: `[ "$(ps -o pgid= -p $$ | tr -d ' ')" = $$ ] && echo yes`}, "yes\n", Exit{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var set Set
			p, r := start(t, &set, tt.command)
			if out := readAll(t, r); out != tt.out {
				t.Errorf("it printed %q, want %q", out, tt.out)
			}
			if exit := p.Exit(); exit != tt.exit {
				t.Errorf("it ended with %v, want %v", exit, tt.exit)
			}
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var set Set
	for want, c := range map[string]Command{
		`working directory "/no/such"`: {Shell: "true", Dir: "/no/such"},
		"is not a directory":           {Shell: "true", Dir: file},
		`"no-such-program-x"`:          {Args: []string{"no-such-program-x"}},
		`cannot start "/no/such"`:      {Args: []string{"/no/such"}},
		"no program":                   {},
		"into a file":                  {Shell: strings.Repeat("x", 1<<22)},
	} {
		if _, err := set.Start(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", c, err, want)
		}
	}
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Start(Command{Shell: "true"}); err != ErrClosed {
		t.Errorf("start in a closed set: %v", err)
	}
}

func TestStopEndsTheGroup(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		shell    string
		min, max time.Duration
	}{
		"child and grandchild":  {"sh -c 'sleep 300; true' & echo ready; wait", 0, Grace},
		"only a grandchild":     {"sleep 300 & echo ready", 0, Grace},
		"it ignores the signal": {"trap '' TERM; sleep 300 & echo ready; while :; do sleep 300; done", Grace, Grace + 2*time.Second},
		"last words":            {"trap 'sleep 0.1; exit 3' TERM; echo ready; while :; do sleep 0.01; done", 0, Grace},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var set Set
			p, r := start(t, &set, Command{Shell: tt.shell})
			firstLine(t, r)
			begin := time.Now()
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took < tt.min || took > tt.max+5*time.Second {
				t.Errorf("it took %v", took)
			}
			readAll(t, r)
			if name == "last words" && p.Exit().Code != 3 {
				t.Errorf("exit %v, want the trap's 3", p.Exit())
			}
		})
	}
}

func TestSetEndsWhatIsLeft(t *testing.T) {
	t.Parallel()
	var set Set
	running, r1 := start(t, &set, Command{Shell: "echo x; sleep 300"})
	left, r2 := start(t, &set, Command{Shell: "sleep 300 & echo x"})
	<-left.Done()
	detached, r3 := start(t, &set, Command{Shell: "echo x; sleep 300", Detached: true})
	for _, r := range []*os.File{r1, r2, r3} {
		firstLine(t, r)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	readAll(t, r1)
	readAll(t, r2)
	if exit := running.Exit(); exit.Signal != "SIGTERM" {
		t.Errorf("the running one: %v", exit)
	}
	if detached.ended() {
		t.Errorf("the detached one ended: %v", detached.Exit())
	}
	if err := detached.Stop(); err != nil {
		t.Error(err)
	}
	readAll(t, r3)
}

// A server must be gone soon after its client, whatever its commands think of it.
func TestSetDoesNotWaitForTheStubborn(t *testing.T) {
	t.Parallel()
	var set Set
	p, r := start(t, &set, Command{Shell: "trap '' TERM; echo x; while :; do sleep 300; done"})
	firstLine(t, r)
	began := time.Now()
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took >= Grace {
		t.Errorf("took %v, as long as a single Stop", took)
	}
	if exit := p.Exit(); exit.Signal != "SIGKILL" {
		t.Errorf("exit %v, want SIGKILL", exit)
	}
	readAll(t, r)
}

// A number that belongs to another process by now must not be signalled.
func TestForeignGroupIsLeftAlone(t *testing.T) {
	t.Parallel()
	var set Set
	p, r := start(t, &set, Command{Shell: "echo x; sleep 300"})
	firstLine(t, r)
	g := group(p.Pid())
	g.kill(true) // as somebody would whose own leader of that number has ended
	if g.exists() {
		t.Error("a group whose leader lives was taken for one whose leader has ended")
	}
	if err := syscall.Kill(p.Pid(), 0); err != nil || p.ended() {
		t.Errorf("the process is gone: %v", err)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	readAll(t, r)
}

func TestSetForgets(t *testing.T) {
	t.Parallel()
	var set Set
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			p, err := set.Start(Command{Shell: "true"})
			if err != nil {
				t.Error(err)
				return
			}
			<-p.Done()
		})
	}
	wg.Wait()
	set.prune()
	if n := len(set.processes); n != 0 {
		t.Errorf("the set still knows %d processes", n)
	}
}

func TestFindPath(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		inherited, shell, login string
		want                    string
		asked                   bool
	}{
		"rich":      {"/home/u/bin:/usr/bin", "/bin/zsh", "/x", "/home/u/bin:/usr/bin", false},
		"bare":      {"/usr/bin:/bin", "/bin/zsh", "/opt/brew/bin:/usr/bin", "/opt/brew/bin:/usr/bin:/bin", true},
		"none":      {"", "/bin/zsh", "/opt/bin", "/opt/bin", true},
		"no shell":  {"/usr/bin", "", "/x", "/usr/bin", false},
		"no answer": {"/usr/bin", "/bin/zsh", "", "/usr/bin", true},
	}
	for name, tt := range tests {
		asked := false
		got := findPath(tt.inherited, tt.shell, func(string) (string, error) {
			asked = true
			if tt.login == "" {
				return "", os.ErrDeadlineExceeded
			}
			return tt.login, nil
		})
		if got.Used != tt.want || asked != tt.asked || (got.Err != nil) != (name == "no answer") {
			t.Errorf("%s: %+v, asked %v; want %q", name, got, asked, tt.want)
		}
	}
}

func TestAskShell(t *testing.T) {
	t.Parallel()
	script := func(text string) string {
		file := filepath.Join(t.TempDir(), "shell")
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
	tests := map[string]struct{ text, want string }{
		"noise":                  {`echo PATH=/noise; PATH=/opt/x:/bin; export PATH; shift $(($#-1)); eval "$1"`, "/opt/x:/bin"},
		"interactive hangs":      {`case "$*" in *-i*) sleep 300;; esac; PATH=/l:/bin; export PATH; shift $(($#-1)); eval "$1"`, "/l:/bin"},
		"a child holds the pipe": {`sleep 300 & PATH=/c:/bin; export PATH; shift $(($#-1)); eval "$1"`, "/c:/bin"},
		"nothing":                {`exit 1`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := loginPath(script(tt.text))
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestLookPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"tool": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=.:/no/such:" + dir}
	for name, want := range map[string]string{
		"tool": filepath.Join(dir, "tool"), "text": "", "other": "", "./tool": "./tool", "/x/y": "/x/y",
	} {
		if got, err := lookPath(name, env); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
	if got, err := LookPath("tool", env...); err != nil || got != filepath.Join(dir, "tool") {
		t.Errorf("LookPath: %q, %v", got, err)
	}
}

func TestEnviron(t *testing.T) {
	t.Parallel()
	env := replace([]string{"A=1", "B=2", "A_=3"}, "B=x=y", "C=4", "nothing", "=5")
	if want := []string{"A=1", "B=x=y", "A_=3", "C=4"}; !slices.Equal(env, want) {
		t.Errorf("%q, want %q", env, want)
	}
	if got := variable(Environ("ZEN_TEST=a", "ZEN_TEST=b"), "ZEN_TEST"); got != "b" {
		t.Errorf("the last of one name must win, not %q", got)
	}
	if got, want := variable(Environ(), "PATH"), SearchPath().Used; got != want {
		t.Errorf("PATH of children is %q, want %q", got, want)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "é😀": "é😀", "\xff\xfea": "\ufffd\ufffda", "a\xe6\x97": "a\ufffd\ufffd", "x\x00": "x\x00",
	} {
		if got := Decode([]byte(in)); got != want {
			t.Errorf("Decode(%q) = %q, want %q", in, got, want)
		}
	}
}

func BenchmarkTrue(b *testing.B) {
	var set Set
	for b.Loop() {
		p, err := set.Start(Command{Shell: "true"})
		if err != nil {
			b.Fatal(err)
		}
		<-p.Done()
	}
}

// TestBare: a child with an environment of its own has nothing else.
func TestBare(t *testing.T) {
	t.Parallel()
	var set Set
	defer set.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = set.Start(Command{Args: []string{"env"}, Env: []string{"PATH=" + BarePath, "ZEN_TEST=a"}, Bare: true, Stdout: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if want := "PATH=" + BarePath + "\nZEN_TEST=a\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

func TestFindProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "tool")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"tool": file, file: file, filepath.Join(dir, "gone"): "", "gone": "", dir: ""} {
		got, err := FindProgram(name, "PATH="+dir)
		if got != want || errors.Is(err, ErrNotFound) != (want == "") {
			t.Errorf("%q: %q, %v, want %q", name, got, err, want)
		}
	}
}
