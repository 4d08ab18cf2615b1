package builtin

import (
	"context"

	"zenmcp/core"
)

func cwd() core.Definition {
	return core.Define(core.Tool{
		Name:        "cwd",
		Title:       "Working directory",
		Description: "The working directory, where relative paths begin.",
		Hints:       core.Hints{ReadOnly: true, Idempotent: true},
		Pace:        core.PaceBrief,
	}, func(_ context.Context, call *core.Call, _ struct{}) (*core.Result, error) {
		return core.TextResult(call.Scope.Dir()), nil
	})
}
