package builtin

import (
	"context"
	"fmt"
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

func sleep() core.Definition {
	return core.Define(core.Tool{
		Name:        "sleep",
		Title:       "Sleep",
		Description: "Wait for a number of milliseconds.",
		Hints:       core.Hints{ReadOnly: true},
	}, func(ctx context.Context, call *core.Call, in sleepInput) (*core.Result, error) {
		if in.Ms < 0 || in.Ms > maxSleep {
			return core.FailJSON(failure{Error: fmt.Sprintf("ms must be from 0 to %d, not %v", maxSleep, in.Ms)})
		}
		timer := time.NewTimer(time.Duration(in.Ms * float64(time.Millisecond)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return core.FailJSON(failure{Aborted: true, Error: "the wait was cancelled"})
		}
		seconds := fmt.Sprintf("%.1f", in.Ms/1000)
		return core.JSONResult(sleepAnswer{true, in.Ms, seconds, "waited " + seconds + " s"})
	})
}
