package builtin

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"zenmcp/core"
)

type existInput struct {
	Path string `json:"path"`
}

// exist answers "true" or "false", links followed (contract §2). What cannot be
// known, because it is outside the roots, not permitted or does not answer, is an
// error (decision 2).
func exist() core.Definition {
	return core.Define(core.Tool{
		Name:        "exist",
		Title:       "Check existence",
		Description: `Whether a path exists: "true" or "false".`,
		Hints:       core.Hints{ReadOnly: true, Idempotent: true},
		Pace:        core.PaceBrief,
	}, func(ctx context.Context, call *core.Call, in existInput) (*core.Result, error) {
		if strings.ContainsRune(in.Path, 0) {
			return core.TextResult("false"), nil // no file can have such a name
		}
		path, err := call.Scope.Path(in.Path)
		if err != nil {
			return nil, err
		}
		_, err = path.Stat(ctx)
		if err != nil && !absent(err) {
			return nil, err
		}
		return core.TextResult(strconv.FormatBool(err == nil)), nil
	})
}

// absent reports whether an error means that nothing is there: not the last
// name, not a folder on the way, or only links that lead nowhere.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENAMETOOLONG)
}
