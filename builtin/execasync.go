package builtin

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"zenmcp/core"
	"zenmcp/core/proc"
)

// early is how long a command is watched after its start: one that ends with an
// error within it is reported (decision 18).
const early = 300 * time.Millisecond

type execAsyncInput struct {
	Command  string `json:"command" jsonschema:"a command line for the shell"`
	Cwd      string `json:"cwd,omitempty" jsonschema:"default: the working directory"`
	Detached bool   `json:"detached,omitempty" jsonschema:"outlives this server"`
	LogFile  string `json:"logFile,omitempty" jsonschema:"gets stdout and stderr appended; default: dropped"`
}

type execAsyncAnswer struct {
	Success bool   `json:"success"`
	PID     *int   `json:"pid"`
	Message string `json:"message"`
}

func execAsync() core.Definition {
	d := core.Define(core.Tool{
		Name:        "exec_async",
		Title:       "Start a command",
		Description: "Start a shell command in the background and return at once.",
		Hints:       core.Hints{Destructive: true, OpenWorld: true},
	}, runExecAsync)
	d.Usable = usableCommands
	return d
}

func runExecAsync(ctx context.Context, call *core.Call, in execAsyncInput) (*core.Result, error) {
	if err := checkCommand(in.Command); err != nil {
		return nil, err
	}
	begin := time.Now()
	process, err := startAsync(ctx, call.Scope, in)
	if err != nil {
		return core.FailJSON(execAsyncAnswer{Message: err.Error()})
	}
	pid := process.Pid()
	a := execAsyncAnswer{Success: true, PID: &pid}
	timer := time.NewTimer(early)
	defer timer.Stop()
	select {
	case <-process.Done():
		took := time.Since(begin).Round(time.Millisecond)
		a.Message = fmt.Sprintf("the command ended after %v: %v", took, process.Exit())
		if !process.Exit().OK() {
			a.Success = false
			a.Message += lastWords(ctx, call.Scope, in.LogFile)
			return core.FailJSON(a)
		}
	case <-timer.C:
		a.Message = "the command runs until it ends or this server does"
		if in.Detached {
			a.Message = "the command runs until it ends"
		}
	case <-ctx.Done():
		a.Message = "the command was started"
	}
	return core.JSONResult(a)
}

func startAsync(ctx context.Context, scope *core.Scope, in execAsyncInput) (*proc.Process, error) {
	dir, err := commandDir(ctx, scope, in.Cwd)
	if err != nil {
		return nil, err
	}
	var log *os.File
	if in.LogFile != "" {
		p, err := scope.Path(in.LogFile)
		if err == nil {
			log, err = p.Append(ctx)
		}
		if err != nil {
			return nil, core.InField("logFile", err)
		}
		defer log.Close()
	}
	return confine(scope, proc.Command{
		Shell: in.Command, Dir: dir, Env: quiet(), Stdout: log, Stderr: log, Detached: in.Detached,
	})
}

// lastWords is what a command that failed at once wrote to its log, or how to
// see it.
func lastWords(ctx context.Context, scope *core.Scope, logFile string) string {
	if logFile == "" {
		return "; run it with exec, or give a logFile, to see what it prints"
	}
	p, err := scope.Path(logFile)
	if err != nil {
		return ""
	}
	f, info, err := p.Open(ctx)
	if err != nil {
		return ""
	}
	defer f.Close()
	end := make([]byte, 1000)
	n, _ := f.ReadAt(end, max(0, info.Size()-int64(len(end)))) // a short read gives what there is
	text := strings.TrimSpace(proc.Decode(wholeRunes(end[:n])))
	if text == "" {
		return "; it printed nothing"
	}
	return "; the log ends with: " + text
}
