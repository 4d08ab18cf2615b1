//go:build unix

package proc

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

func shell(line string) (string, []string) { return "/bin/sh", []string{"/bin/sh", "-c", line} }

// attributes make the child the leader of a group. Where there is a terminal it
// leads a session too, and so has none: no program can wait for a person. A
// session has its price (Linux gives each one a share of the processors, which
// costs a short command up to half as much again), so others do without.
func (c Command) attributes() *syscall.SysProcAttr {
	if c.Detached || terminal() {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// terminal reports whether the server has a terminal that children inherit.
var terminal = sync.OnceValue(func() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	f.Close()
	return true
})

// A group is a process group by the number of its leader.
//
// While anything of the group lives, the system gives its number to nobody else,
// not even after the leader's end. Once it is empty the number may come back, as
// that of a process we do not know; hence ours.
type group int

func newGroup(leader *os.Process, _ bool) (group, error) { return group(leader.Pid), nil }

// ours reports whether the number still means this group. A leader that has
// ended and been waited for cannot exist; a process of that number is another.
func (g group) ours(leaderEnded bool) bool {
	return !leaderEnded || syscall.Kill(int(g), 0) == syscall.ESRCH
}

func (g group) signal(sig syscall.Signal, leaderEnded bool) {
	if g.ours(leaderEnded) {
		_ = syscall.Kill(-int(g), sig) // the group may be gone, which is what is wanted
	}
}

func (g group) terminate(leaderEnded bool) { g.signal(syscall.SIGTERM, leaderEnded) }
func (g group) kill(leaderEnded bool)      { g.signal(syscall.SIGKILL, leaderEnded) }

// exists reports whether the group, whose leader has ended, has any process.
func (g group) exists() bool { return g.ours(true) && syscall.Kill(-int(g), 0) != syscall.ESRCH }

// alive is exists, but does not count processes that have ended and that nobody
// waits for: in a container without an init they stay for ever.
func (g group) alive() bool { return g.exists() && !onlyZombies(int(g)) }

func (g group) release() {}

func exitOf(state *os.ProcessState) Exit {
	if state == nil {
		return Exit{Code: -1}
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: -1, Signal: unix.SignalName(ws.Signal())}
	}
	return Exit{Code: state.ExitCode()}
}
