package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"zenmcp/core"
)

type renameInput struct {
	OldPath string `json:"oldPath"`
	NewPath string `json:"newPath" jsonschema:"whole new path"`
}

// rename moves as mv does (contract §2): an existing file is replaced, an
// existing directory only if it is empty. It crosses file systems and roots, by
// copying and deleting (decision 13).
func rename() core.Definition {
	return core.Define(core.Tool{
		Name:        "rename",
		Title:       "Rename or move",
		Description: "Rename or move a file or directory. Replaces an existing file.",
		Hints:       core.Hints{Destructive: true},
	}, func(ctx context.Context, call *core.Call, in renameInput) (*core.Result, error) {
		from, err := call.Scope.Path(in.OldPath)
		if err != nil {
			return nil, err
		}
		to, err := call.Scope.Path(in.NewPath)
		if err != nil {
			return nil, err
		}
		for _, path := range []core.Path{from, to} {
			if err := path.Protected(ctx); err != nil {
				return nil, err
			}
		}
		info, err := from.Lstat(ctx)
		if err != nil {
			return nil, err
		}
		if there, err := to.Lstat(ctx); err == nil {
			if err := sameKind(from, info, to, there); err != nil {
				return nil, err
			}
		}
		err = from.Rename(ctx, to)
		switch {
		case errors.Is(err, syscall.EXDEV):
			err = attend(ctx, call, "copied", func(ctx context.Context, s *steps) error { return moveAcross(ctx, s, from, to) })
		case errors.Is(err, syscall.ENOTEMPTY) || info.IsDir() && errors.Is(err, fs.ErrExist):
			err = notEmpty(to)
		case errors.Is(err, syscall.EINVAL):
			err = fmt.Errorf("%q is in %q; a directory cannot go into itself", in.NewPath, in.OldPath)
		}
		if err != nil {
			return nil, err
		}
		return core.TextResult("success"), nil
	})
}

func notEmpty(to core.Path) error {
	return fmt.Errorf("%q is a directory that is not empty; remove it first or choose another path", to.Given)
}

// moveAcross moves to another file system or root. The copy is made beside its
// place and put there at once when it is whole; until then nothing has changed.
func moveAcross(ctx context.Context, s *steps, from, to core.Path) error {
	info, err := from.Lstat(ctx)
	if err != nil {
		return err
	}
	if _, err := to.Parent().Stat(ctx); err != nil {
		return err
	}
	if info.IsDir() {
		if err := notBelow(ctx, from, info, to); err != nil {
			return err
		}
		if inside, err := to.ReadDir(ctx); err == nil && len(inside) > 0 {
			return notEmpty(to)
		}
	}
	temp := aside(to)
	c := copier{steps: s, moving: true}
	if err = c.copy(ctx, from, temp); err == nil {
		err = temp.Rename(ctx, to)
	}
	if err != nil {
		undo := removeAll(context.WithoutCancel(ctx), temp, new(steps))
		if undo != nil && !errors.Is(undo, fs.ErrNotExist) {
			err = fmt.Errorf("%w; %q is left over, since %w", err, temp.Abs, undo)
		}
		return err
	}
	if err := removeAll(ctx, from, s); err != nil {
		return fmt.Errorf("%q is complete, but what was copied could not all be removed: %w", to.Given, err)
	}
	return nil
}

// removeAll removes a file, a link or a tree.
func removeAll(ctx context.Context, path core.Path, s *steps) error {
	info, err := path.Lstat(ctx)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return removeTree(ctx, path, s)
	}
	return path.Remove(ctx)
}
