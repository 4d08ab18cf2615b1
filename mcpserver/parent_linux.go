package mcpserver

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// waitParent waits for the end of the parent through a descriptor of it, in the
// runtime's poller: an idle server sleeps. It reports false if ctx is done
// before, or if the kernel (before 5.10) or a sandbox does not let it; then
// pollParent decides.
func waitParent(ctx context.Context, parent int) bool {
	fd, err := unix.PidfdOpen(parent, unix.PIDFD_NONBLOCK)
	if err != nil {
		return false
	}
	file := os.NewFile(uintptr(fd), "parent")
	defer file.Close()
	if os.Getppid() != parent { // ended before the descriptor was there; may be another's
		return true
	}
	defer context.AfterFunc(ctx, func() { file.Close() })()
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
	return err == nil && os.Getppid() != parent
}
