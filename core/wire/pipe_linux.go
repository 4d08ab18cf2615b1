package wire

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is what a pipe is made to hold: a result of 200 KB passes in one piece,
// where the usual 64 KiB take a switch from one process to the other and back for
// every piece.
const pipeSize = 256 << 10

// widen has a stream hold more, if it is a pipe and the system allows that.
func widen(stream any) {
	f, ok := stream.(*os.File)
	if !ok {
		return
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if size, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil && size < pipeSize {
			_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize)
		}
	})
}
