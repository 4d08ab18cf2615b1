package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"zenmcp/core"
)

type writeFileInput struct {
	Path    string `json:"path"`
	Content string `json:"content" jsonschema:"the whole new content"`
	Force   bool   `json:"force,omitempty" jsonschema:"replace a file that has changed since you read it"`
}

// writeFile makes a text the whole content of a file, in one step (decision 10).
// The text is written as it is: no line end is added or changed. An existing
// file keeps its mode, its links, and the byte order mark that tells its
// encoding, UTF-8 or UTF-16.
func writeFile() core.Definition {
	return core.Define(core.Tool{
		Name:        "writeFile",
		Title:       "Write file",
		Description: "Create a text file or replace its whole content. Missing folders are made. To change a part, use edit.",
		Hints:       core.Hints{Destructive: true, Idempotent: true},
		Pace:        core.PaceBrief,
	}, func(ctx context.Context, call *core.Call, in writeFileInput) (*core.Result, error) {
		real, unlock, err := lockFile(ctx, call.Scope, in.Path)
		if err != nil {
			return nil, err
		}
		defer unlock()
		head, err := replaceable(ctx, call.Scope, real, in)
		if err != nil {
			return nil, err
		}
		data, kept, err := encodeLike(head, in.Content)
		if err != nil {
			return nil, err
		}
		info, note, err := real.WriteFile(ctx, data)
		if err != nil {
			return nil, err
		}
		seenBy(call.Scope).note(real, info, data, false)
		answer := "success"
		for _, s := range []string{kept, note} {
			if s != "" {
				answer += "; " + s
			}
		}
		return core.TextResult(answer), nil
	})
}

// lockFile resolves a path and takes the lock of the file that it leads to.
func lockFile(ctx context.Context, scope *core.Scope, given string) (real core.Path, unlock func(), err error) {
	path, err := scope.Path(given)
	if err == nil {
		real, err = path.Real(ctx)
	}
	if err == nil {
		unlock, err = real.Lock(ctx)
	}
	return real, unlock, err
}

// replaceable returns the first bytes of the file that is to be replaced, nil if
// there is none, and refuses one that the caller has not seen as it is.
func replaceable(ctx context.Context, scope *core.Scope, real core.Path, in writeFileInput) ([]byte, error) {
	head, info, err := real.ReadHead(ctx, 4)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return nil, nil // if it cannot be written either, writing says so
	case err != nil || in.Force:
		return head, err
	}
	seen := seenBy(scope)
	if err := seen.check(ctx, real, info, nil); err != nil {
		return nil, err
	}
	if last, _ := seen.last(real); last.lossy && !ascii(in.Content) {
		return nil, fmt.Errorf("%q is not in UTF-8, so what you read of it is not all that it holds; change it with edit, or pass force: true to make it UTF-8", in.Path)
	}
	return head, nil
}

// encodeLike returns content with the byte order mark, and in the encoding, of
// the file that begins with head, and says so if that is not plain UTF-8.
func encodeLike(head []byte, content string) (data []byte, kept string, err error) {
	const bom = "\uFEFF"
	if enc := utf16Of(head); enc != nil {
		data, err = enc.NewEncoder().Bytes([]byte(bom + strings.TrimPrefix(content, bom)))
		return data, "the file is in UTF-16, as before", err
	}
	if bytes.HasPrefix(head, []byte(bom)) && !strings.HasPrefix(content, bom) {
		return []byte(bom + content), "the file keeps its byte order mark", nil
	}
	return []byte(content), "", nil
}
