package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"

	"zenmcp/core"
)

type copyInput struct {
	Src       string `json:"src"`
	Dest      string `json:"dest" jsonschema:"whole new path"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"for directories"`
}

// copyFiles copies a file, a link or a tree (contract §2): parents are made,
// files are replaced and modes kept (decision 13). A link stays a link with the
// same target, so that a copied tree does not lead back into the original.
func copyFiles() core.Definition {
	return core.Define(core.Tool{
		Name:        "copy",
		Title:       "Copy",
		Description: "Copy a file or directory. Replaces files, makes parents, keeps links.",
		Hints:       core.Hints{Destructive: true, Idempotent: true},
	}, func(ctx context.Context, call *core.Call, in copyInput) (*core.Result, error) {
		src, err := call.Scope.Path(in.Src)
		if err != nil {
			return nil, err
		}
		dest, err := call.Scope.Path(in.Dest)
		if err != nil {
			return nil, err
		}
		info, err := src.Lstat(ctx)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			if !in.Recursive {
				return nil, fmt.Errorf("%q is a directory; pass recursive: true to copy it with all that is in it", in.Src)
			}
			if err := notBelow(ctx, src, info, dest); err != nil {
				return nil, err
			}
		}
		if _, err := copyable(ctx, src, info, dest); err != nil {
			return nil, err
		}
		if !info.IsDir() && os.IsPathSeparator(in.Dest[len(in.Dest)-1]) {
			return nil, fmt.Errorf("%q is the name of a directory, and %q is a file; give the whole new path, such as %q", in.Dest, in.Src, dest.Join(src.Base()).Given)
		}
		if err := dest.Parent().MkdirAll(ctx); err != nil {
			return nil, err
		}
		if err := attend(ctx, call, "copied", func(ctx context.Context, s *steps) error {
			return (&copier{steps: s}).copy(ctx, src, dest)
		}); err != nil {
			return nil, err
		}
		return core.TextResult("success"), nil
	})
}

// notBelow refuses to put a folder into itself, under whichever name.
func notBelow(ctx context.Context, src core.Path, info fs.FileInfo, dest core.Path) error {
	real, err := dest.Real(ctx)
	if err != nil {
		return err
	}
	for at := real; ; at = at.Parent() {
		if there, err := at.Stat(ctx); err == nil && os.SameFile(there, info) {
			return fmt.Errorf("%q is, or is in, %q; a directory cannot go into itself", dest.Given, src.Given)
		}
		if at.Parent().Abs == at.Abs {
			return nil
		}
	}
}

// A copier copies trees.
type copier struct {
	steps *steps
	// moving keeps times and owners too.
	moving bool
}

// copyable describes what is at dest, nil if nothing is, and reports why src,
// which is info, cannot replace it or be merged with it.
func copyable(ctx context.Context, src core.Path, info fs.FileInfo, dest core.Path) (there fs.FileInfo, err error) {
	if what := special(info.Mode()); what != "" {
		return nil, fmt.Errorf("%q is a %s, which cannot be copied", src.Given, what)
	}
	there, err = dest.Lstat(ctx)
	switch {
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, err
	case os.SameFile(there, info):
		return nil, fmt.Errorf("%q and %q are the same file", src.Given, dest.Given)
	case special(there.Mode()) != "":
		return nil, fmt.Errorf("%q is a %s; remove it first", dest.Given, special(there.Mode()))
	}
	return there, sameKind(src, info, dest, there)
}

// sameKind reports why src, which is info, cannot take the place of dest,
// which is there: one is a directory and the other is not. The system's own words
// do not tell which.
func sameKind(src core.Path, info fs.FileInfo, dest core.Path, there fs.FileInfo) error {
	switch {
	case info.IsDir() && there.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%q is a link, and %q a directory; name what the link leads to, or remove it first", dest.Given, src.Given)
	case info.IsDir() && !there.IsDir():
		return fmt.Errorf("%q is a file, and %q a directory; remove the file first or choose another path", dest.Given, src.Given)
	case !info.IsDir() && there.IsDir():
		return fmt.Errorf("%q is a directory; give the whole new path, such as %q", dest.Given, dest.Join(src.Base()).Given)
	}
	return nil
}

// special names the types of files that have no content to copy.
func special(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&(fs.ModeDevice|fs.ModeIrregular) != 0:
		return "device"
	}
	return ""
}

// copy copies whatever is at src.
func (c *copier) copy(ctx context.Context, src, dest core.Path) error {
	if err := c.steps.next(ctx, src.Given); err != nil {
		return err
	}
	info, err := src.Lstat(ctx)
	if err != nil {
		return err
	}
	there, err := copyable(ctx, src, info, dest)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return c.folder(ctx, src, info, dest, there != nil)
	case info.Mode()&fs.ModeSymlink != 0:
		err = c.link(ctx, src, dest)
	default:
		err = c.file(ctx, src, dest, there)
	}
	if err == nil {
		c.steps.done()
	}
	return err
}

func (c *copier) folder(ctx context.Context, src core.Path, info fs.FileInfo, dest core.Path, merge bool) error {
	entries, err := src.ReadDir(ctx)
	if err != nil {
		return err
	}
	if !merge {
		if err := dest.Mkdir(ctx); err != nil {
			return err
		}
		// Nobody shall read in it meanwhile who may not later.
		if err := dest.Chmod(ctx, info.Mode().Perm()|0o700); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if err := c.copy(ctx, src.Join(e.Name()), dest.Join(e.Name())); err != nil {
			return err
		}
	}
	switch {
	case merge:
		return nil
	case c.moving:
		return dest.Resemble(ctx, info)
	}
	return dest.Chmod(ctx, info.Mode().Perm()) // at last: it may take the right to write
}

// aside is a name beside dest, for what is to take its place at once.
func aside(dest core.Path) core.Path {
	return dest.Parent().Join(fmt.Sprintf(".zen-mcp-%08x.tmp", rand.Uint32()))
}

func (c *copier) link(ctx context.Context, src, dest core.Path) error {
	target, err := src.Readlink(ctx)
	if err != nil {
		return err
	}
	temp := aside(dest)
	if err := temp.Symlink(ctx, target); err != nil {
		return err
	}
	return place(ctx, temp, dest)
}

// place moves what is finished to its name, or removes it. The move is made or
// refused, but not given up half way: then nobody would know which.
func place(ctx context.Context, temp, dest core.Path) error {
	err := context.Cause(ctx)
	whole := context.WithoutCancel(ctx)
	if err == nil {
		err = temp.Rename(whole, dest)
	}
	if err != nil {
		temp.Remove(whole)
	}
	return err
}

// file copies a regular file. An existing one is replaced as writeFile does it,
// with its owner and all its names; a new one is not there before it is whole.
func (c *copier) file(ctx context.Context, src, dest core.Path, there fs.FileInfo) error {
	from, info, err := src.Open(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	if there != nil && there.Mode().IsRegular() {
		return c.replace(ctx, from, info, dest)
	}
	temp := aside(dest)
	to, err := temp.Create(ctx, 0o600)
	if err != nil {
		return err
	}
	err = c.content(ctx, to, from, dest)
	if err == nil {
		err = to.Chmod(info.Mode().Perm())
	}
	if err = errors.Join(err, to.Close()); err == nil && c.moving {
		err = temp.Resemble(ctx, info)
	}
	if err != nil {
		temp.Remove(context.WithoutCancel(ctx))
		return about(dest.Given, err)
	}
	return place(ctx, temp, dest)
}

func (c *copier) replace(ctx context.Context, from *os.File, info fs.FileInfo, dest core.Path) error {
	unlock, err := dest.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	staged, err := dest.Stage(ctx)
	if err != nil {
		return err
	}
	defer staged.Discard()
	if err := c.content(ctx, staged.File, from, dest); err != nil {
		return about(dest.Given, err)
	}
	if _, err := staged.Commit(ctx); err != nil {
		return err
	}
	return dest.Chmod(ctx, info.Mode().Perm())
}

// content copies in pieces, the system doing the work where it can.
func (c *copier) content(ctx context.Context, to, from *os.File, dest core.Path) error {
	const piece = 8 << 20
	for {
		if err := c.steps.next(ctx, dest.Given); err != nil {
			return err
		}
		switch _, err := io.CopyN(to, from, piece); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}
