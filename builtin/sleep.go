package builtin

import (
	"context"
	"fmt"
	"math"
	"time"

	"zenmcp/core"
)

// maxSleep is the longest sleep in milliseconds (contract §2).
const maxSleep = 300_000

type sleepInput struct {
	Ms float64 `json:"ms" jsonschema:"milliseconds, 0 to 300000"`
}

type sleepAnswer struct {
	Success       bool    `json:"success"`
	WaitedMs      float64 `json:"waitedMs"`
	WaitedSeconds string  `json:"waitedSeconds"`
	Message       string  `json:"message"`
}

type failure struct {
	Success bool   `json:"success"`
	Aborted bool   `json:"aborted,omitempty"`
	Error   string `json:"error"`
}

// sleep waits. All its answers are JSON, those about wrong arguments too
// (contract §2).
func sleep() core.Definition {
	d := core.Define(core.Tool{
		Name:        "sleep",
		Title:       "Sleep",
		Description: "Wait.",
		Hints:       core.Hints{ReadOnly: true},
	}, func(ctx context.Context, call *core.Call, in sleepInput) (*core.Result, error) {
		if in.Ms < 0 || in.Ms > maxSleep {
			return nil, fmt.Errorf("ms must be from 0 to %d, not %v", maxSleep, in.Ms)
		}
		if !pause(ctx, call, time.Duration(in.Ms*float64(time.Millisecond))) {
			return core.FailJSON(failure{Aborted: true, Error: "the wait was cancelled"})
		}
		seconds := fmt.Sprintf("%.1f", math.Floor(in.Ms/100+0.5)/10) // halves go up
		return core.JSONResult(sleepAnswer{true, in.Ms, seconds, "waited " + seconds + " s"})
	})
	run := d.Run
	d.Run = func(ctx context.Context, call *core.Call) (*core.Result, error) {
		res, err := run(ctx, call)
		if err != nil {
			return core.FailJSON(failure{Error: err.Error()})
		}
		return res, nil
	}
	return d
}

// pause waits, reporting every second, and tells whether ctx let it.
func pause(ctx context.Context, call *core.Call, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for seconds := 1.0; ; seconds++ {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-tick.C:
			call.Report(core.Progress{Done: seconds, Total: d.Seconds(), Message: "waiting"})
		}
	}
}
