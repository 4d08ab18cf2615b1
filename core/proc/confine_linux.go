package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// leastABI is the first version of Landlock (Linux 6.2) that also keeps files from
// being emptied.
const leastABI = 3

// everywhere are the rights to a folder in which a command may do what it likes.
// Devices are not among them: who is root could make that of the disk.
const everywhere = ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSReadDir |
	ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock |
	ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer | ll.AccessFSTruncate | ll.AccessFSResolveUnix

// CanConfine reports why this system cannot confine commands; nil if it can.
func CanConfine() error { return canConfine() }

var canConfine = sync.OnceValue(func() error {
	version, err := ll.LandlockGetABIVersion()
	if err == nil && version >= leastABI {
		return nil
	}
	return fmt.Errorf("commands cannot be confined on this system: Linux 6.2 or later with Landlock can (it has version %d of it, and %d is needed)",
		max(version, 0), leastABI)
})

// systemPaths are the folders of the system itself. Nobody's data is in them.
func systemPaths() []string {
	paths := []string{
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/proc", "/sys",
		"/nix/store", "/gnu/store", "/snap", "/run/current-system", "/run/systemd/resolve", "/var/lib/ca-certificates",
	}
	// Where names are looked up may be anywhere.
	if file, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		paths = append(paths, file)
	}
	return paths
}

// ruleset makes the rules. They are everything that Landlock knows on this kernel
// about files, and the sockets without a file, through which a desktop's services
// would do what the command may not.
func (c *Confinement) ruleset() (fd int, flags uint32, err error) {
	if err := CanConfine(); err != nil {
		return -1, 0, err
	}
	config := landlock.Config{HandledAccessFS: landlock.V9.HandledAccessFS, Scoped: ll.ScopeAbstractUnixSocket}
	rules := []landlock.Rule{
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom").WithIoctlDev().IgnoreIfMissing(),
	}
	for _, path := range c.Read {
		info, err := os.Stat(path)
		switch {
		case err != nil: // nothing to read
		case info.IsDir():
			rules = append(rules, landlock.RODirs(path).IgnoreIfMissing())
		default:
			rules = append(rules, landlock.ROFiles(path).IgnoreIfMissing())
		}
	}
	for _, folder := range c.Write {
		rules = append(rules, landlock.PathAccess(everywhere, fmt.Sprintf("/proc/self/fd/%d", folder.Fd())))
	}
	return config.BestEffort().NewRulesetFD(rules...)
}

// start is os.StartProcess for a confined child. A child has the limits of the
// thread that starts it. So a thread takes them on, starts the child and ends: a
// goroutine that leaves its thread locked takes it along.
func (c *Confinement) start(name string, args []string, attr *os.ProcAttr) (child *os.Process, err error) {
	fd, flags, err := c.ruleset()
	if err != nil {
		return nil, err
	}
	if fd < 0 { // the library found nothing to limit
		return nil, errors.New("the system does not confine commands, although it says that it can")
	}
	defer unix.Close(fd)
	defer runtime.KeepAlive(c.Write)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for ever
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return
		}
		if err = ll.LandlockRestrictSelf(fd, flags); err != nil {
			err = fmt.Errorf("confine the command: %w", err)
			return
		}
		child, err = os.StartProcess(name, args, attr)
	}()
	<-done
	return child, err
}
