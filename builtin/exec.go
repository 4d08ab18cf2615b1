package builtin

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"zenmcp/core"
	"zenmcp/core/proc"
	"zenmcp/core/rawjson"
)

type execInput struct {
	Command string  `json:"command" jsonschema:"a command line for the shell"`
	Timeout float64 `json:"timeout" jsonschema:"milliseconds"`
	Cwd     string  `json:"cwd,omitempty" jsonschema:"default: the working directory"`
}

// An execAnswer is the contract's object (§2, decision 17).
type execAnswer struct {
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	ExitCode   *int   `json:"exitCode"` // null when a signal ended it
	Killed     bool   `json:"killed"`   // by us, see Terminated
	Terminated string `json:"terminated,omitempty"`
	Signal     string `json:"signal,omitempty"`
	Note       string `json:"note,omitempty"`
}

// The reasons of ours to end a command.
const (
	timedOut = "timeout"
	aborted  = "aborted"
)

func execSync() core.Definition {
	d := core.Define(core.Tool{
		Name:        "exec",
		Title:       "Run a command",
		Description: "Run a shell command and wait for its end. Nothing can be typed into it.",
		Hints:       core.Hints{Destructive: true, OpenWorld: true},
		Output:      core.OutputLog,
	}, runExec)
	d.Usable = usableCommands
	return d
}

func runExec(ctx context.Context, call *core.Call, in execInput) (*core.Result, error) {
	if !(in.Timeout > 0) {
		return nil, core.InField("timeout", errors.New("must be more than 0 milliseconds"))
	}
	if err := checkCommand(in.Command); err != nil {
		return nil, err
	}
	dir, err := commandDir(ctx, call.Scope, in.Cwd)
	if ctx.Err() != nil {
		return core.JSONResult(execAnswer{Killed: true, Terminated: aborted})
	}
	if err != nil {
		return nil, err
	}
	run, err := startRun(call, in.Command, dir)
	if err != nil {
		return nil, err
	}
	why := run.await(ctx, milliseconds(in.Timeout))
	if why != "" {
		if err := run.process.Stop(); err != nil {
			return nil, err
		}
	}
	return run.answer(why)
}

// milliseconds is a duration without overflow: the longest is 292 years.
func milliseconds(ms float64) time.Duration {
	if ms >= math.MaxInt64/float64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func checkCommand(command string) error {
	switch {
	case strings.TrimSpace(command) == "":
		return core.InField("command", errors.New("is empty"))
	case strings.ContainsRune(command, 0):
		return core.InField("command", errors.New("cannot hold a NUL character"))
	}
	return nil
}

// commandDir finds the folder to run a command in.
func commandDir(ctx context.Context, scope *core.Scope, cwd string) (string, error) {
	if cwd == "" {
		return scope.Dir(), nil
	}
	p, err := scope.Path(cwd)
	if err != nil {
		return "", core.InField("cwd", err)
	}
	info, err := p.Stat(ctx)
	if err == nil && !info.IsDir() {
		err = errors.New("is not a directory")
	}
	if err != nil {
		return "", core.InField("cwd", err)
	}
	return p.Abs, nil
}

// quiet keeps programs from waiting for somebody to press a key (decision 17).
func quiet() []string { return []string{"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"} }

// processes are what runs for a client. They end with it, also those that a
// sub-agent's run has left behind for it.
func processes(scope *core.Scope) *proc.Set {
	client := scope.Client()
	return core.Local(client, func() *proc.Set {
		set := &proc.Set{}
		client.OnClose(set.Close)
		return set
	})
}

// A run is one command with what it prints.
type run struct {
	call           *core.Call
	process        *proc.Process
	stdout, stderr *capture
	begin          time.Time

	// of the last report:
	spoke                        time.Time
	stdoutWritten, stderrWritten int64
}

func startRun(call *core.Call, command, dir string) (*run, error) {
	out, outEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer outEnd.Close()
	errs, errsEnd, err := os.Pipe()
	if err != nil {
		out.Close()
		return nil, err
	}
	defer errsEnd.Close()
	begin := time.Now()
	process, err := confine(call.Scope, proc.Command{
		Shell: command, Dir: dir, Env: quiet(), Stdout: outEnd, Stderr: errsEnd,
	})
	if err != nil {
		out.Close()
		errs.Close()
		return nil, err
	}
	budget := call.Scope.Config().OutputBudget()
	return &run{
		call: call, process: process, begin: begin, spoke: begin,
		stdout: newCapture(call.Scope, "exec-stdout.log", budget, out),
		stderr: newCapture(call.Scope, "exec-stderr.log", budget, errs),
	}, nil
}

// await waits for the shell's end, or says why it must be ended now.
func (r *run) await(ctx context.Context, timeout time.Duration) string {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var tick <-chan time.Time
	if r.call.Progress != nil {
		ticker := time.NewTicker(reportInterval)
		defer ticker.Stop()
		tick = ticker.C
	}
	why := ""
	for why == "" {
		select {
		case <-r.process.Done():
			return ""
		case <-timer.C:
			why = timedOut
		case <-ctx.Done():
			why = aborted
		case now := <-tick:
			r.report(now)
		}
	}
	select {
	case <-r.process.Done(): // just in time
		return ""
	default:
		return why
	}
}

const (
	reportInterval = 250 * time.Millisecond // at most four reports a second
	silence        = 2 * time.Second        // without one, while nothing is printed
)

// report tells the last line that was printed, and now and then only that the
// command still runs: many clients wait longer for a call that reports.
func (r *run) report(now time.Time) {
	stdout, stderr := r.stdout.written(), r.stderr.written()
	news, complaints := stdout > r.stdoutWritten, stderr > r.stderrWritten
	if !news && !complaints && now.Sub(r.spoke) < silence {
		return
	}
	line := r.stdout.lastLine()
	if line == "" || complaints && !news {
		line = r.stderr.lastLine()
	}
	r.spoke, r.stdoutWritten, r.stderrWritten = now, stdout, stderr
	r.call.Report(core.Progress{Done: float64(now.Sub(r.begin).Milliseconds()) / 1000, Message: line})
}

// answer tells how the command ended and what it printed, within the budget.
func (r *run) answer(why string) (*core.Result, error) {
	outEnded, errsEnded := r.stdout.settle(), r.stderr.settle()
	exit := r.process.Exit()
	a := execAnswer{Killed: why != "", Terminated: why, Signal: exit.Signal}
	if exit.Signal == "" {
		a.ExitCode = &exit.Code
	}
	if !outEnded || !errsEnded {
		a.Note = "a background process still holds the output and runs on; what it prints from now on is lost"
	}
	empty, err := rawjson.Marshal(a)
	if err != nil {
		return nil, err
	}
	room := max(0, r.call.Scope.Config().OutputBudget()-utf8.RuneCount(empty))
	out, errs := r.stdout.take(), r.stderr.take()
	outRoom, errsRoom := share(out.weight(), errs.weight(), room)
	a.Stdout, a.Stderr = out.within(outRoom), errs.within(errsRoom)
	return core.JSONResult(a)
}

// share divides room between two: each gets what it wants if that is no more
// than half of it, and otherwise what the other leaves.
func share(a, b, room int) (int, int) {
	half := room / 2
	switch {
	case a <= half:
		return a, room - a
	case b <= half:
		return room - b, b
	}
	return half, room - half
}
