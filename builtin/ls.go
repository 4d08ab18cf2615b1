package builtin

import (
	"context"

	"zenmcp/core"
)

type lsInput struct {
	Path string `json:"path"`
}

func ls() core.Definition {
	return core.Define(core.Tool{
		Name:        "ls",
		Title:       "List directory",
		Description: "List the names in a directory as a JSON array.",
		Hints:       core.Hints{ReadOnly: true, Idempotent: true},
		Pace:        core.PaceBrief,
	}, func(ctx context.Context, call *core.Call, in lsInput) (*core.Result, error) {
		path, err := call.Scope.Path(in.Path)
		if err != nil {
			return nil, err
		}
		entries, err := path.ReadDir(ctx)
		if err != nil {
			return nil, err
		}
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name()
		}
		return core.ListResult(names), nil
	})
}
