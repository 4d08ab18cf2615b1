package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

func comSpec() string {
	if name := os.Getenv("ComSpec"); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(os.Getenv("SystemRoot"), "System32", "cmd.exe")
}

func shell(string) (string, []string) { return comSpec(), []string{comSpec()} }

// attributes hide the console window. cmd.exe gets its line as it is, in the one
// form in which it takes quotes literally; other programs get their arguments
// quoted by the rules that most of them read them by.
func (c Command) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
	if c.Shell != "" {
		attr.CmdLine = fmt.Sprintf(`"%s" /d /s /c "%s"`, comSpec(), c.Shell)
	}
	return attr
}

// A group is a job object: what its processes start belongs to it too. Unless
// they are detached they all end with the server, even if that is killed.
type group struct{ job *job }

type job struct {
	mu     sync.Mutex
	handle windows.Handle // 0 once released
}

// newGroup puts a process that has just been started into a job. What it manages
// to start before that stays outside; os.StartProcess offers nothing narrower.
func newGroup(leader *os.Process, detached bool) (group, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return group{}, fmt.Errorf("job object: %w", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	if !detached {
		limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	}
	_, err = windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		e := leader.WithHandle(func(process uintptr) {
			err = windows.AssignProcessToJobObject(handle, windows.Handle(process))
		})
		// A process that has ended already needs no job.
		if e != nil && !errors.Is(e, os.ErrProcessDone) {
			err = e
		}
	}
	if err != nil {
		windows.CloseHandle(handle)
		return group{}, fmt.Errorf("job object: %w", err)
	}
	return group{&job{handle: handle}}, nil
}

// use calls f unless the job has been released.
func (g group) use(f func(windows.Handle)) {
	g.job.mu.Lock()
	defer g.job.mu.Unlock()
	if g.job.handle != 0 {
		f(g.job.handle)
	}
}

// terminate kills: there is no request that reaches a process without a window
// or a console.
func (g group) terminate(leaderEnded bool) { g.kill(leaderEnded) }

func (g group) kill(bool) {
	g.use(func(h windows.Handle) { _ = windows.TerminateJobObject(h, 1) }) // an empty job is what is wanted
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	TotalUserTime, TotalKernelTime, ThisPeriodTotalUserTime, ThisPeriodTotalKernelTime int64
	TotalPageFaultCount, TotalProcesses, ActiveProcesses, TotalTerminatedProcesses     uint32
}

// exists reports whether the job has any process.
func (g group) exists() (exists bool) {
	g.use(func(h windows.Handle) {
		var a accounting
		err := windows.QueryInformationJobObject(h, windows.JobObjectBasicAccountingInformation,
			uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
		exists = err == nil && a.ActiveProcesses > 0
	})
	return exists
}

func (g group) alive() bool { return g.exists() }

func (g group) release() {
	g.use(func(h windows.Handle) {
		windows.CloseHandle(h)
		g.job.handle = 0
	})
}

func exitOf(state *os.ProcessState) Exit {
	if state == nil {
		return Exit{Code: -1}
	}
	return Exit{Code: state.ExitCode()}
}
