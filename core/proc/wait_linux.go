package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// awaitEnd waits for a child. The runtime's poller watches its pidfd, so that no
// thread is blocked; a kernel without pidfds makes it block one.
func awaitEnd(p *os.Process) *os.ProcessState {
	if watched := pidfd(p); watched != nil {
		if raw, err := watched.SyscallConn(); err == nil {
			_ = raw.Read(func(fd uintptr) bool { // an error leaves the waiting to Wait
				n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
				return n > 0 || err != nil && err != unix.EINTR
			})
		}
		defer watched.Close()
	}
	state, _ := p.Wait() // fails only for a process that somebody else waited for
	return state
}

// pidfd gives a descriptor of the process that the poller can watch, or nil.
func pidfd(p *os.Process) *os.File {
	fd := -1
	err := p.WithHandle(func(handle uintptr) {
		if n, err := unix.FcntlInt(handle, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			fd = n
		}
	})
	if err != nil || fd < 0 {
		return nil
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), "pidfd")
}

// onlyZombies reports whether all processes of a group have ended.
func onlyZombies(pgid int) bool {
	dir, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false
	}
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		if state, group := processState(name); group == pgid && state != "Z" && state != "X" {
			return false
		}
	}
	return true
}

// processState reads the state letter and the group of a process.
func processState(pid string) (state string, group int) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", 0
	}
	// pid (name) state ppid pgrp; the name may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 3 {
		return "", 0
	}
	group, _ = strconv.Atoi(fields[2])
	return fields[0], group
}
