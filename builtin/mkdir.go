package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"zenmcp/core"
)

type mkdirInput struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"with parents"`
}

func mkdir() core.Definition {
	return core.Define(core.Tool{
		Name:        "mkdir",
		Title:       "Make directory",
		Description: "Create a directory.",
		Hints:       core.Hints{},
		Pace:        core.PaceBrief,
	}, func(ctx context.Context, call *core.Call, in mkdirInput) (*core.Result, error) {
		path, err := call.Scope.Path(in.Path)
		if err != nil {
			return nil, err
		}
		if in.Recursive {
			err = path.MkdirAll(ctx)
		} else {
			err = path.Mkdir(ctx)
		}
		switch {
		case err == nil:
			return core.TextResult("success"), nil
		case errors.Is(err, fs.ErrExist) && !in.Recursive:
			return nil, fmt.Errorf("%w; with recursive: true an existing directory is fine", err)
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w; with recursive: true the parents are made as well", err)
		}
		return nil, err
	})
}
