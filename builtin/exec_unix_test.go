//go:build unix

package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"zenmcp/core"
)

// runCommand calls exec and decodes its answer.
func runCommand(t testing.TB, ctx context.Context, scope *core.Scope, command string, timeout int) execAnswer {
	t.Helper()
	answer, failed := callTool(t, ctx, scope, "exec", mustJSON(t, map[string]any{"command": command, "timeout": timeout}))
	var a execAnswer
	if err := json.Unmarshal([]byte(answer), &a); err != nil || failed {
		t.Fatalf("exec %q failed = %v: %v: %.300s", command, failed, err, answer)
	}
	return a
}

// startCommand calls exec_async and returns the pid of what runs.
func startCommand(t testing.TB, scope *core.Scope, args map[string]any) int {
	t.Helper()
	answer, failed := callTool(t, t.Context(), scope, "exec_async", mustJSON(t, args))
	var a execAsyncAnswer
	if err := json.Unmarshal([]byte(answer), &a); err != nil || failed || !a.Success || a.PID == nil {
		t.Fatalf("exec_async %v failed = %v: %s", args, failed, answer)
	}
	return *a.PID
}

// lives reports whether a process is there and has not ended.
func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func TestExecReturnsBeforeItsBackgroundChildren(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"sleep 300 & echo $!; echo hi",
		"setsid sleep 3 & echo $!; echo hi",
		"sh -c 'echo $$; while :; do echo more; sleep 0.001; done' & sleep 0.1; echo hi",
	} {
		scope := newScope(t, core.Config{}, t.TempDir())
		begin := time.Now()
		a := runCommand(t, t.Context(), scope, command, 10000)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: it took %v", command, took)
		}
		if a.ExitCode == nil || *a.ExitCode != 0 || a.Killed || !strings.Contains(a.Stdout, "hi\n") || !strings.Contains(a.Note, "background") {
			t.Errorf("%s: %+v", command, a)
		}
		pid, err := strconv.Atoi(strings.Fields(a.Stdout)[0])
		if err != nil || !lives(pid) {
			t.Errorf("%s: the child %d does not live on (%v)", command, pid, err)
		}
		if err := scope.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, "the child ends with the scope, or by itself", func() bool { return !lives(pid) })
	}
}

func TestExecLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	const grandchild = "sh -c 'echo $$; sleep 300; true' & wait"
	scope := newScope(t, core.Config{}, t.TempDir())
	t.Run("timeout", func(t *testing.T) {
		t.Parallel()
		begin := time.Now()
		a := runCommand(t, t.Context(), scope, grandchild, 500)
		if took := time.Since(begin); took > 5*time.Second || a.Terminated != "timeout" || a.ExitCode != nil || a.Signal != "SIGTERM" {
			t.Errorf("after %v: %+v", took, a)
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(a.Stdout)); err != nil || lives(pid) {
			t.Errorf("the grandchild %d lives (%v)", pid, err)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		mark := filepath.Join(t.TempDir(), "mark")
		go func() {
			defer cancel()
			eventually(t, "the command runs", func() bool { _, err := os.Stat(mark); return err == nil })
		}()
		a := runCommand(t, ctx, scope, "sh -c 'echo $$; touch "+mark+"; sleep 300; true' & wait", 60000)
		if a.Terminated != "aborted" || !a.Killed {
			t.Errorf("%+v", a)
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(a.Stdout)); err != nil || lives(pid) {
			t.Errorf("the grandchild %d lives (%v)", pid, err)
		}
	})
}

// The file has all of it, the answer has both ends, and memory is not needed for
// the rest. Not parallel: it watches what the process allocates.
func TestExecOfMuchOutput(t *testing.T) {
	const size = 200_000_000
	scope := newScope(t, core.Config{}, t.TempDir())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := runCommand(t, t.Context(), scope, fmt.Sprintf("echo first; yes 0123456789abcde | head -c %d; echo; echo last; echo complaint >&2; exit 0", size), 120000)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 20<<20 {
		t.Errorf("%d bytes were allocated", allocated)
	}
	if a.ExitCode == nil || *a.ExitCode != 0 || a.Killed || a.Stderr != "complaint\n" {
		t.Errorf("%+v", a)
	}
	if !strings.HasPrefix(a.Stdout, "first\n0123") || !strings.HasSuffix(a.Stdout, "\nlast\n") {
		t.Errorf("stdout is %.100q … %.100q", a.Stdout, a.Stdout[max(0, len(a.Stdout)-100):])
	}
	if n := utf8.RuneCountInString(string(mustJSON(t, a))); n > core.DefaultMaxToolOutput || n < core.DefaultMaxToolOutput*3/4 {
		t.Errorf("the answer has %d code points", n)
	}
	if want := fmt.Sprintf("%d characters in 12500003 lines", size+12); !strings.Contains(a.Stdout, want) {
		t.Errorf("it does not say %q", want)
	}
	file := regexp.MustCompile(`is in "([^"]+)"`).FindStringSubmatch(a.Stdout)
	if file == nil {
		t.Fatal("no file is named")
	}
	info, err := os.Stat(file[1])
	if err != nil || info.Size() != size+12 || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
}

func TestExecReports(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		command string
		want    string // the message of one report
	}{
		"lines":        {"for i in 1 2 3 4 5 6; do echo line $i; sleep 0.1; done; sleep 0.3", "line 6"},
		"progress bar": {"printf '10%%\\r20%%'; sleep 0.8", "20%"},
		"stderr":       {"echo problem >&2; sleep 0.8", "problem"},
		"stderr later": {"echo fine; sleep 0.6; echo problem >&2; sleep 0.6", "problem"},
		"silence":      {"sleep 2.6", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scope := newScope(t, core.Config{}, t.TempDir())
			tool, _ := scope.Tools().Tool("exec")
			var reports []core.Progress
			begin := time.Now()
			_, err := tool.Run(t.Context(), &core.Call{
				Arguments: mustJSON(t, map[string]any{"command": tt.command, "timeout": 20000}),
				Progress:  func(p core.Progress) { reports = append(reports, p) },
			})
			if err != nil {
				t.Fatal(err)
			}
			most := int(time.Since(begin)/reportInterval) + 1
			if len(reports) == 0 || len(reports) > most {
				t.Errorf("%d reports in %v", len(reports), time.Since(begin))
			}
			found := false
			for i, r := range reports {
				found = found || r.Message == tt.want
				if i > 0 && r.Done <= reports[i-1].Done {
					t.Errorf("report %d is %v after %v", i, r.Done, reports[i-1].Done)
				}
			}
			if !found {
				t.Errorf("no report says %q: %v", tt.want, reports)
			}
		})
	}
}

func TestExecAsyncLeadsItsGroup(t *testing.T) {
	t.Parallel()
	for _, detached := range []bool{false, true} {
		dir := t.TempDir()
		scope := newScope(t, core.Config{}, dir)
		pid := startCommand(t, scope, map[string]any{"command": "echo $$ $(ps -o pgid= -p $$) > f.new; mv f.new f", "detached": detached})
		var text []byte
		eventually(t, "the command has run", func() bool {
			var err error
			text, err = os.ReadFile(filepath.Join(dir, "f"))
			return err == nil
		})
		if want := fmt.Sprintf("%d %d\n", pid, pid); string(text) != want {
			t.Errorf("pid and group are %q, want %q", text, want)
		}
	}
}

// C39: what happens to a background command when the server ends.
func TestExecAsyncAndTheEndOfTheScope(t *testing.T) {
	t.Parallel()
	for _, detached := range []bool{false, true} {
		t.Run(fmt.Sprintf("detached %v", detached), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			scope := newScope(t, core.Config{}, dir)
			run, err := scope.Child(core.AgentDefinition{Permissions: core.AllowAll()}) // a sub-agent started it
			if err != nil {
				t.Fatal(err)
			}
			pid := startCommand(t, run, map[string]any{"command": "sh -c 'sleep 1; echo x > f'", "detached": detached})
			if err := run.Close(); err != nil || !lives(pid) {
				t.Errorf("it did not survive the run: %v", err)
			}
			begin := time.Now()
			if err := scope.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took > time.Second {
				t.Errorf("the scope took %v to end", took)
			}
			if lives(pid) != detached {
				t.Errorf("the command lives = %v", !detached)
			}
			if detached {
				eventually(t, "the detached command does its work", func() bool { _, err := os.Stat(filepath.Join(dir, "f")); return err == nil })
			}
			if _, failed := callTool(t, t.Context(), scope, "exec", mustJSON(t, map[string]any{"command": "true", "timeout": 1000})); !failed {
				t.Error("a command ran in a scope that has ended")
			}
		})
	}
}

// descriptors counts what the process has open.
func descriptors(t testing.TB) int {
	t.Helper()
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if names, err := os.ReadDir(dir); err == nil {
			return len(names)
		}
	}
	t.Fatal("nothing lists the open descriptors")
	return 0
}

// running counts the processes whose command line holds mark.
func running(t testing.TB, mark string) int {
	t.Helper()
	out, err := osexec.Command("ps", "-A", "-o", "stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, mark) && !strings.HasPrefix(line, "Z") {
			n++
		}
	}
	return n
}

// A thousand calls of every kind leave no process, goroutine or descriptor. Not
// parallel: it counts those of the whole process.
func TestThousandCallsLeaveNothing(t *testing.T) {
	const calls, workers = 1000, 8
	limit := core.MinToolOutput
	mark := fmt.Sprintf("300.%d", os.Getpid())
	scope := newScope(t, core.Config{MaxToolOutput: &limit}, t.TempDir())
	kinds := []func(){
		func() { runCommand(t, t.Context(), scope, "true", 20000) },
		func() { runCommand(t, t.Context(), scope, "echo x; exit 3", 20000) },
		func() { runCommand(t, t.Context(), scope, "kill -9 $$", 20000) },
		func() { runCommand(t, t.Context(), scope, "yes | head -c 100000", 20000) },
		func() { runCommand(t, t.Context(), scope, "sleep "+mark+" & sleep "+mark, 20) },
		func() { runCommand(t, t.Context(), scope, "true; sleep "+mark+" >/dev/null 2>&1 & true", 20000) },
		func() {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
			defer cancel()
			runCommand(t, ctx, scope, "(sleep "+mark+") & wait", 20000)
		},
		func() {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			runCommand(t, ctx, scope, "sleep "+mark, 20000)
		},
		func() { callTool(t, t.Context(), scope, "exec", []byte(`{"command":"x","timeout":9,"cwd":"gone"}`)) },
		func() { callTool(t, t.Context(), scope, "exec_async", []byte(`{"command":"exit 1"}`)) },
	}
	slow := []func(){
		func() { runCommand(t, t.Context(), scope, "sleep "+mark+" & echo held", 20000) },
		func() { startCommand(t, scope, map[string]any{"command": "sleep " + mark}) },
	}
	runCommand(t, t.Context(), scope, "true", 20000) // what is made once is made
	goroutines, open := runtime.NumGoroutine(), descriptors(t)

	var wg sync.WaitGroup
	next := make(chan int)
	for range workers {
		wg.Go(func() {
			for i := range next {
				if i%50 == 49 {
					slow[i/50%len(slow)]()
				} else {
					kinds[i%len(kinds)]()
				}
			}
		})
	}
	for i := range calls {
		next <- i
	}
	close(next)
	wg.Wait()
	if running(t, mark) == 0 {
		t.Error("nothing was left running for the scope to end")
	}
	if err := scope.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "no process is left", func() bool { return running(t, mark) == 0 })
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
	eventually(t, "no descriptor is left", func() bool { return descriptors(t) <= open })
}

func BenchmarkExecTrue(b *testing.B) {
	scope := newScope(b, core.Config{}, b.TempDir())
	tool, _ := scope.Tools().Tool("exec")
	args := mustJSON(b, map[string]any{"command": "true", "timeout": 10000})
	b.Run("exec", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tool.Run(b.Context(), &core.Call{Arguments: args}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := osexec.Command("/bin/sh", "-c", "true").CombinedOutput(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
