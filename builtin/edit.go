package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"zenmcp/core"
)

type editInput struct {
	Path         string `json:"path"`
	OldText      string `json:"oldText" jsonschema:"exact text, in one place of the file"`
	NewText      string `json:"newText" jsonschema:"literal text"`
	IsReplaceAll bool   `json:"isReplaceAll,omitempty" jsonschema:"replace every place"`
	Force        bool   `json:"force,omitempty" jsonschema:"edit a file that has changed since you read it"`
}

type editAnswer struct {
	Result        string `json:"result"` // success, or what is wrong
	MatchCount    int    `json:"matchCount"`
	ReplacedCount *int   `json:"replacedCount,omitempty"` // left out if nothing matched
	Note          string `json:"note,omitempty"`
}

// edit replaces a text in a file (contract §2, decision 8): see [replacement].
func edit() core.Definition {
	return core.Define(core.Tool{
		Name:        "edit",
		Title:       "Edit file",
		Description: "Replace text in a file. oldText must match exactly one place, or nothing is changed; LF also matches CRLF.",
		Hints:       core.Hints{Destructive: true},
		Pace:        core.PaceBrief,
	}, func(ctx context.Context, call *core.Call, in editInput) (*core.Result, error) {
		r := replacement{in.OldText, in.NewText, in.IsReplaceAll}
		if err := r.check(); err != nil {
			return nil, err
		}
		count := 0
		note, err := rewrite(ctx, call.Scope, in.Path, in.Force, func(d *document) (err error) {
			count, err = r.apply(d)
			return err
		})
		var miss *mismatch
		switch {
		case errors.As(err, &miss):
			answer := editAnswer{Result: miss.reason, MatchCount: miss.matches}
			if miss.matches > 0 {
				answer.ReplacedCount = new(int)
			}
			return core.FailJSON(answer)
		case err != nil:
			return nil, err
		}
		return core.JSONResult(editAnswer{"success", count, &count, note})
	})
}

// rewrite changes the text of a file, under the file's lock and not over changes
// that the scope has not seen. Nothing is written if the text stays the same or
// change fails. The note says if the file could not be written in one step.
func rewrite(ctx context.Context, scope *core.Scope, given string, force bool, change func(*document) error) (note string, err error) {
	real, unlock, err := lockFile(ctx, scope, given)
	if err != nil {
		return "", err
	}
	defer unlock()
	data, info, err := real.ReadFile(ctx)
	if err != nil {
		return "", err
	}
	seen := seenBy(scope)
	if !force {
		if err := seen.check(ctx, real, info, data); err != nil {
			return "", err
		}
	}
	d, err := newDocument(data)
	if err != nil {
		return "", fmt.Errorf("%q: %w", given, err)
	}
	before := d.text
	if err := change(&d); err != nil || bytes.Equal(d.text, before) {
		return "", err
	}
	after, err := d.bytes()
	if err != nil {
		return "", fmt.Errorf("%q: %w", given, err)
	}
	if info, note, err = real.WriteFile(ctx, after); err != nil {
		return "", err
	}
	seen.note(real, info, after, d.foreign)
	return note, nil
}
