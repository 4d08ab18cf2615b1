package builtin

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"zenmcp/core"
)

type rmInput struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"for directories"`
}

// rm removes a file, a link or a tree (contract §2). Links are removed and never
// followed; the working directory, the home, roots and what holds them are
// refused (decision 6).
func rm() core.Definition {
	return core.Define(core.Tool{
		Name:        "rm",
		Title:       "Remove",
		Description: "Delete a file or directory for good. Of a link, only the link.",
		Hints:       core.Hints{Destructive: true},
	}, func(ctx context.Context, call *core.Call, in rmInput) (*core.Result, error) {
		path, err := call.Scope.Path(in.Path)
		if err != nil {
			return nil, err
		}
		if err := path.Protected(ctx); err != nil {
			return nil, err
		}
		info, err := path.Lstat(ctx)
		if err != nil {
			return nil, err
		}
		if info.IsDir() && !in.Recursive {
			return nil, fmt.Errorf("%q is a directory; pass recursive: true to delete it with all that is in it", in.Path)
		}
		if info.IsDir() {
			err = attend(ctx, call, "deleted", func(ctx context.Context, s *steps) error { return removeTree(ctx, path, s) })
		} else {
			err = path.Remove(ctx)
		}
		if err != nil {
			return nil, err
		}
		return core.TextResult("success"), nil
	})
}

// removeTree removes a folder and what is in it, name by name from the open
// folder above, so that nothing that is swapped for a link meanwhile is followed.
func removeTree(ctx context.Context, path core.Path, s *steps) error {
	if err := s.next(ctx, path.Given); err != nil {
		return err
	}
	real, err := path.Real(ctx)
	if err != nil {
		return err
	}
	if info, err := path.Join(".").Lstat(ctx); err != nil || !info.IsDir() {
		return cmp.Or(err, fmt.Errorf("%q is a link; leave the slash at the end off to mean the link itself", path.Given))
	}
	above, err := real.Parent().OpenFolder(ctx)
	if err != nil {
		return err
	}
	defer above.Close()
	r := remover{steps: s, buf: make([]byte, readBuffer)}
	return r.remove(ctx, above, entry{real.Base(), fs.ModeDir}, path.Given)
}

type remover struct {
	steps *steps
	buf   []byte // for reading one folder at a time
}

// remove removes one thing from a folder; given is its path for messages.
func (r *remover) remove(ctx context.Context, from *core.Folder, e entry, given string) error {
	if err := r.steps.next(ctx, given); err != nil {
		return err
	}
	if e.typ == fs.ModeDir {
		inner, err := from.Folder(e.name)
		if err != nil {
			return about(given, err)
		}
		defer inner.Close()
		if err := r.empty(ctx, inner, given); err != nil {
			return err
		}
	}
	if err := from.Remove(e.name); err != nil {
		return about(given, err)
	}
	r.steps.done()
	return nil
}

// empty removes all that is in a folder.
func (r *remover) empty(ctx context.Context, folder *core.Folder, given string) error {
	var entries []entry
	err := folder.Read(r.buf, func(name string, typ fs.FileMode) bool {
		entries = append(entries, entry{name, typ})
		return ctx.Err() == nil
	})
	if err != nil {
		return about(given, err)
	}
	for _, e := range entries {
		if err := r.remove(ctx, folder, e, filepath.Join(given, e.name)); err != nil {
			return err
		}
	}
	return nil
}
