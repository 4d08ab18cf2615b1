package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// confined runs a command line that may write in dirs, and returns what it prints.
// Where the kernel cannot confine, it makes sure that nothing is run at all, and
// returns false.
func confined(t *testing.T, line string, dirs ...string) (string, bool) {
	t.Helper()
	c := &Confinement{Read: ProgramPaths()}
	for _, dir := range dirs {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c.Write = append(c.Write, f)
	}
	var set Set
	t.Cleanup(func() { set.Close() })
	command := Command{Shell: line, Dir: dirs[0], Confine: c, Env: []string{"HOME=" + dirs[0], "TMPDIR=" + dirs[0]}}
	if unable := CanConfine(); unable != nil {
		command.Shell = "touch ran"
		if _, err := set.Start(command); err == nil || err.Error() != unable.Error() {
			t.Errorf("a command was started unconfined: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dirs[0], "ran")); err == nil {
			t.Error("a command ran unconfined")
		}
		return "", false
	}
	_, out := start(t, &set, command)
	return readAll(t, out), true
}

// What the command may do works as it does without limits.
func TestConfinedCommandsWork(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"echo a > f && cat f && mkdir -p d/e && mv f d/e/g && ln d/e/g h && ln -s h i && cat i && rm -r d h i",
		"(echo b | cat) > f 2>/dev/null; cat f; truncate -s 0 f; chmod 600 f",
		"mkfifo p; echo c > p & cat p",
		"cat /proc/self/comm /etc/passwd > /dev/null && head -c 3 /dev/urandom | wc -c",
		`f=$(mktemp) && echo d > "$f" && cat "$f"`,
		"echo x > /dev/stderr 2>/dev/null; echo e > /dev/stdout",
	} {
		dir := t.TempDir()
		if out, able := confined(t, "set -e\n"+line+"\necho done", dir); able && !strings.HasSuffix(out, "done\n") {
			t.Errorf("%s\nprinted %q", line, out)
		}
	}
}

// A command finds no way out, whichever it tries: by name, over links, through
// proc, with a child of its own, or by taking a file inside.
func TestConfinedCommandsStayInside(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"echo bad > OUT/new", "echo bad > OUT/secret", "echo bad >> OUT/secret", "truncate -s 0 OUT/secret", "rm OUT/secret", "rm -rf OUT",
		"mv OUT/secret .", "mv OUT ./taken", "ln OUT/secret taken; cat taken", "mkdir OUT/d", "cp OUT/secret .; cat secret", "cat OUT/secret", "ls OUT",
		"ln -s OUT/secret l; cat l; echo bad > l", "ln -s OUT l; cat l/secret; echo bad > l/new", "cat ../out/secret", "cd OUT && cat secret; echo bad > new",
		"cat /proc/self/root/OUT/secret; echo bad > /proc/self/root/OUT/new", "cat /proc/self/cwd/../out/secret", "cat /proc/$PPID/root/OUT/secret", "cat /proc/$PPID/environ",
		"sh -c 'sh -c \"cat OUT/secret; echo bad > OUT/new\"'", "(setsid sh -c 'cat OUT/secret; echo bad > OUT/new' &) ; sleep 0.2",
		"nohup sh -c 'echo bad > OUT/new' >/dev/null 2>&1", "env -i /bin/sh -c 'cat OUT/secret'", "chroot OUT /bin/cat /secret",
		"unshare -rm sh -c 'mount --bind OUT . && cat secret'", "mount --bind OUT . && cat secret", "tar cf - OUT 2>/dev/null | cat", "cp -a OUT in",
		"mknod disk b 1 0; mknod mem c 1 1; test -e disk -o -e mem && echo SECRET", "exec 3<OUT/secret; cat <&3",
		"echo bad > $HOME/../new", "echo bad > ~/../out/new", "find / -name secret -newer . -exec cat {} + 2>/dev/null",
	} {
		top, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		in, out := filepath.Join(top, "in"), filepath.Join(top, "out")
		for _, dir := range []string{in, out} {
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(out, "secret"), []byte("SECRET"), 0o666); err != nil {
			t.Fatal(err)
		}
		printed, able := confined(t, "{ "+strings.ReplaceAll(line, "OUT", out)+"\n} 2>&1", in)
		if able && strings.Contains(printed, "SECRET") {
			t.Errorf("%s\nprinted %q", line, printed)
		}
		if data, err := os.ReadFile(filepath.Join(out, "secret")); string(data) != "SECRET" {
			t.Errorf("%s\nchanged a file outside to %q, %v", line, data, err)
		}
		for dir, want := range map[string]int{out: 1, top: 2} {
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
				t.Errorf("%s\nleft %v in %s, %v", line, entries, dir, err)
			}
		}
	}
}

// The limits are the child's alone: the server's own threads do not get them, also
// when many commands start at once and new threads are made meanwhile.
func TestConfinementStaysWithTheChild(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			confined(t, "true", dir)
			runtime.LockOSThread() // asks for another thread
			defer runtime.UnlockOSThread()
			if err := os.WriteFile(filepath.Join(outside, fmt.Sprint(i)), nil, 0o600); err != nil {
				t.Errorf("the server itself is confined: %v", err)
			}
		})
	}
	wg.Wait()
	var set Set
	defer set.Close()
	p, out := start(t, &set, Command{Shell: "echo free > f && cat f", Dir: outside})
	if text := readAll(t, out); text != "free\n" || !p.Exit().OK() {
		t.Errorf("an unconfined command printed %q, %v", text, p.Exit())
	}
}

func TestConfinedCommandsThatDoNotStart(t *testing.T) {
	t.Parallel()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	want := `"/no/such/program"`
	if unable := CanConfine(); unable != nil {
		want = unable.Error()
	}
	var set Set
	defer set.Close()
	_, err = set.Start(Command{Args: []string{"/no/such/program"}, Confine: &Confinement{Write: []*os.File{dir}}})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want one with %s", err, want)
	}
}

func TestBesides(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string][]string{
		"/usr/local/bin":                 {"/usr/local"},
		"/home/me/bin":                   {"/home/me/bin"},
		"/home/bin":                      {"/home/bin"},
		"/bin":                           {"/bin"},
		"/home/me/.nvm/versions/v1/bin":  {"/home/me/.nvm/versions/v1"},
		"/home/me/tools":                 {"/home/me/tools"},
		"/home/me/.local/bin":            {"/home/me/.local/bin", "/home/me/.local/lib", "/home/me/.local/versions"},
		"/home/me/.pyenv/shims":          {"/home/me/.pyenv/shims", "/home/me/.pyenv/versions", "/home/me/.pyenv/libexec"},
		"/home/linuxbrew/.linuxbrew/bin": {"/home/linuxbrew/.linuxbrew"},
	} {
		got := besides(dir, "/home/me")
		for _, path := range want {
			if !slices.Contains(got, path) {
				t.Errorf("with %q on PATH the programs may read %q, want %q", dir, got, want)
			}
		}
		for _, path := range got {
			if path == "/" || path == "/home" || path == "/home/me" || path == "/home/me/.local" || path == "/home/me/.pyenv" {
				t.Errorf("with %q on PATH the programs may read all of %q", dir, path)
			}
		}
	}
}
