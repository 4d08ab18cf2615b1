//go:build unix

package mcpserver

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// CaptureStdout takes standard output away from the process, for the protocol
// alone: it returns a private file for it, and points descriptor 1 at standard
// error. So what a library, C code or a child that inherits os.Stdout prints
// shows up in the log instead of in the middle of a message. Call it first thing
// in main, and once.
//
// It also keeps a broken pipe from killing the process, which Go does after a
// failed write to descriptors 1 and 2: a client that closes our standard error
// still gets answers. Children are not affected.
func CaptureStdout() (*os.File, error) {
	fd, err := privateCopy(1)
	if err != nil {
		return nil, fmt.Errorf("capturing standard output: %w", err)
	}
	if err := dupOnto(2, 1); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("pointing standard output at standard error: %w", err)
	}
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	if !sameFile(fd, 2) { // else the mode would be standard error's too
		pollIfPipe(fd)
	}
	return os.NewFile(uintptr(fd), "stdout"), nil
}

// CaptureStdin takes standard input away from the process, for the protocol
// alone: it returns a private file for it, and points descriptor 0 at the null
// device, so that no child can eat a message. Call it first thing in main, and
// once.
//
// If it is a pipe or a socket, as it is under a client, it is made non-blocking,
// which has the runtime's poller wait for input. A thread that waits in a read
// instead can keep Go 1.26.8 from collecting garbage, and so the whole process
// from running, until the next byte arrives. A terminal is left as it is, since
// the mode would be the shell's too; files and /dev/null never make one wait.
func CaptureStdin() (*os.File, error) {
	fd, err := privateCopy(0)
	if err != nil {
		return nil, fmt.Errorf("capturing standard input: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err == nil {
		err = dupOnto(int(null.Fd()), 0)
		null.Close()
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("pointing standard input at the null device: %w", err)
	}
	pollIfPipe(fd)
	return os.NewFile(uintptr(fd), "stdin"), nil
}

// privateCopy returns a copy of fd that children do not inherit, and that is not
// one of the standard descriptors.
func privateCopy(fd int) (int, error) {
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
}

// pollIfPipe makes fd non-blocking if it is a pipe or a socket. An os.File made
// of it afterwards is served by the poller. What fails here works without it.
func pollIfPipe(fd int) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return
	}
	if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFIFO || kind == unix.S_IFSOCK {
		_ = unix.SetNonblock(fd, true)
	}
}

// sameFile reports whether two descriptors are of the same file, which they are
// when they share a mode (and sometimes when they do not).
func sameFile(a, b int) bool {
	var sa, sb unix.Stat_t
	return unix.Fstat(a, &sa) == nil && unix.Fstat(b, &sb) == nil && sa.Dev == sb.Dev && sa.Ino == sb.Ino
}
