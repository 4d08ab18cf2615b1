// Package proc starts child processes and makes sure that they end.
//
// Every child leads a process group of its own, without a terminal, so that
// nothing it starts can ask a person for a password or outlive what it was
// started for; it never gets the server's stdin, which belongs to the protocol.
// Processes that end together are a [Set]. Their environment is the server's
// own, repaired where a desktop started the server with a bare PATH, see
// [SearchPath].
//
// A child is waited for without a system call that blocks where the system
// allows it (Linux): a blocked thread can keep the Go runtime from stopping the
// world.
package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// Grace is how long a process group has to end when it is asked to, before it
// is killed (decision 17).
const Grace = 2 * time.Second

// closeGrace is the same when a whole [Set] ends, which is when its client is
// gone: a server must be gone within a second of that, whatever its tools do.
const closeGrace = 150 * time.Millisecond

// A Command is what to run.
type Command struct {
	// Args are the program and its arguments. A program without a slash is
	// looked up on the PATH of the child's own environment.
	Args []string
	// Shell is a command line for the system's shell (/bin/sh, %ComSpec% on
	// Windows); it takes the place of Args.
	Shell string
	// Dir is the child's working directory; empty means the server's.
	Dir string
	// Env holds NAME=VALUE pairs that are added to [Environ], or replace what is
	// there under the same name.
	Env []string
	// Bare makes Env all of the environment.
	Bare bool
	// Stdin, Stdout and Stderr are given to the child; nil is the null device.
	// The caller still has to close its own copies.
	Stdin, Stdout, Stderr *os.File
	// Detached processes outlive the set and the server.
	Detached bool
	// Confine is what the child may reach; nil means everything that the server may.
	Confine *Confinement
}

// A Process is a child and the group that it leads. [Set.Start] makes it.
type Process struct {
	pid   int
	proc  *os.Process
	group group
	done  chan struct{}
	exit  Exit // valid once done is closed
}

// An Exit tells how a process ended.
type Exit struct {
	Code   int    // the exit code; -1 when a signal ended it
	Signal string // its name, such as SIGKILL; "" when the process ended by itself
}

// OK reports success.
func (e Exit) OK() bool { return e.Code == 0 }

func (e Exit) String() string {
	if e.Signal != "" {
		return "ended by " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Pid is the id of the child, and of the group that it leads.
func (p *Process) Pid() int { return p.pid }

// Done is closed when the child has ended. Others of its group may live on.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit tells how the child ended. It waits for [Process.Done].
func (p *Process) Exit() Exit {
	<-p.done
	return p.exit
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Stop asks the whole group to end, kills what is left after [Grace], and
// returns when nothing is left. Windows knows no such request; there it kills.
// An error means that the system did not let the group be ended.
func (p *Process) Stop() error { return p.stop(Grace) }

func (p *Process) stop(grace time.Duration) error {
	p.group.terminate(p.ended())
	timeout := time.NewTimer(grace)
	defer timeout.Stop()
	if p.gone(timeout.C) {
		return nil
	}
	p.group.kill(p.ended())
	timeout.Reset(time.Second) // what is stuck in the kernel does not die even now
	if p.gone(timeout.C) {
		return nil
	}
	return fmt.Errorf("process %d does not end, although it was killed", p.pid)
}

// gone waits for the end of the child and of its group, which no event tells.
func (p *Process) gone(timeout <-chan time.Time) bool {
	select {
	case <-p.done:
	case <-timeout:
		return false
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for wait := time.Millisecond; p.group.alive(); wait = min(2*wait, 50*time.Millisecond) {
		pause.Reset(wait)
		select {
		case <-pause.C:
		case <-timeout:
			return false
		}
	}
	return true
}

// A Set is processes that end together. The zero value is an empty one.
type Set struct {
	mu        sync.Mutex
	processes map[*Process]struct{}
	closed    bool
}

// ErrClosed reports a start in a set that has ended.
var ErrClosed = errors.New("no process can be started any more: the server is ending")

// Start starts a command. Unless it is detached, it belongs to the set until
// nothing of its group is left.
func (s *Set) Start(c Command) (*Process, error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	env := c.Env
	if !c.Bare {
		env = Environ(c.Env...)
	}
	if c.Dir != "" {
		env = replace(env, "PWD="+c.Dir) // or the child would name the server's
	}
	p, err := c.start(env)
	if err != nil {
		return nil, err
	}
	if c.Detached {
		go func() {
			p.wait()
			p.group.release()
		}()
		return p, nil
	}
	if !s.add(p) {
		go p.wait()
		return nil, errors.Join(ErrClosed, p.Stop())
	}
	go func() {
		p.wait()
		s.prune()
	}()
	return p, nil
}

func (s *Set) add(p *Process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.processes == nil {
		s.processes = map[*Process]struct{}{}
	}
	s.processes[p] = struct{}{}
	return true
}

// prune forgets the processes of which nothing is left.
func (s *Set) prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.processes {
		if p.ended() && !p.group.exists() {
			p.group.release()
			delete(s.processes, p)
		}
	}
}

// Close stops every process of the set, all at once, and returns when they have
// ended. Nothing can be started afterwards.
func (s *Set) Close() error {
	s.mu.Lock()
	processes := s.processes
	s.processes, s.closed = nil, true
	s.mu.Unlock()
	var wg sync.WaitGroup
	errs := make(chan error, len(processes))
	for p := range processes {
		wg.Go(func() {
			errs <- p.stop(closeGrace)
			p.group.release()
		})
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// start starts the command in a whole environment. The caller must call wait.
func (c Command) start(env []string) (*Process, error) {
	name, args, err := c.program(env)
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := []*os.File{c.Stdin, c.Stdout, c.Stderr}
	for i, f := range files {
		if f == nil {
			files[i] = null
		}
	}
	start := os.StartProcess
	if c.Confine != nil {
		start = c.Confine.start
	}
	child, err := start(name, args, &os.ProcAttr{Dir: c.Dir, Env: env, Files: files, Sys: c.attributes()})
	if err != nil {
		return nil, c.explain(name, err)
	}
	group, err := newGroup(child, c.Detached)
	if err != nil {
		child.Kill()
		child.Wait()
		return nil, err
	}
	return &Process{pid: child.Pid, proc: child, group: group, done: make(chan struct{})}, nil
}

// program is what to start: the path of a file, and the arguments with the name
// in front.
func (c Command) program(env []string) (string, []string, error) {
	if c.Shell != "" {
		name, args := shell(c.Shell)
		return name, args, nil
	}
	if len(c.Args) == 0 || c.Args[0] == "" {
		return "", nil, errors.New("there is no program to start")
	}
	name, err := lookPath(c.Args[0], env)
	return name, c.Args, err
}

// explain words why a process did not start. The system says "no such file"
// about the directory as well as about the program.
func (c Command) explain(name string, err error) error {
	if c.Dir != "" {
		switch info, e := os.Stat(c.Dir); {
		case e != nil:
			return fmt.Errorf("working directory %q: %w", c.Dir, reason(e))
		case !info.IsDir():
			return fmt.Errorf("working directory %q is not a directory", c.Dir)
		}
	}
	if errors.Is(err, syscall.E2BIG) {
		return fmt.Errorf("cannot start %q: %w; put the command into a file and run that", name, reason(err))
	}
	return fmt.Errorf("cannot start %q: %w", name, reason(err))
}

// reason is the system's own word, without what the os package puts around it.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// wait waits for the child's end and tells everybody.
func (p *Process) wait() {
	state := awaitEnd(p.proc)
	p.exit = exitOf(state)
	close(p.done)
}
