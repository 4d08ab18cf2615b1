//go:build unix

package wire

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openNow returns a function that writes what a stream takes without waiting; nil
// if its file would wait.
func openNow(out any) func(b []byte) int {
	f, ok := out.(*os.File)
	if !ok || f.SetWriteDeadline(time.Time{}) != nil { // it is in blocking mode
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return func(b []byte) (n int) {
		// What fails here fails again when the rest is written the ordinary way.
		_ = raw.Write(func(fd uintptr) bool {
			n, _ = syscall.Write(int(fd), b)
			return true
		})
		return max(n, 0)
	}
}

// openReady returns a function that reports whether a stream has something to read,
// or its end; nil if its file does not tell.
func openReady(in any) func() bool {
	f, ok := in.(*os.File)
	if !ok {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return func() bool {
		ready := true
		_ = raw.Control(func(fd uintptr) {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			ready = n != 0 || err != nil
		})
		return ready
	}
}
