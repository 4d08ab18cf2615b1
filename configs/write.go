package configs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"zenmcp/core"
)

// WriteFile makes data the content of a file, all at once, and missing folders
// above it. A new file is the user's alone, since configurations hold keys; one
// that exists keeps its mode and is replaced only if overwrite is set, else the
// error is fs.ErrExist.
func WriteFile(ctx context.Context, file string, data []byte, overwrite bool) error {
	folder := filepath.Dir(file)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	// The files of the user's own configuration are not confined.
	scope, err := core.NewScope(&core.Env{}, core.AgentDefinition{}, folder, nil)
	if err != nil {
		return err
	}
	path, err := scope.Path(file)
	if err != nil {
		return err
	}
	_, err = path.Lstat(ctx)
	isNew := errors.Is(err, fs.ErrNotExist)
	if !isNew && !overwrite {
		return &Problem{File: file, Err: fs.ErrExist}
	}
	staged, err := path.Stage(ctx)
	if err != nil {
		return err
	}
	defer staged.Discard()
	if isNew {
		if err := staged.Chmod(0o600); err != nil {
			return err
		}
	}
	if _, err := staged.Write(data); err != nil {
		return err
	}
	_, err = staged.Commit(ctx)
	return err
}
