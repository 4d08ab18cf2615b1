package builtin

import (
	"context"
	"errors"
	"strconv"

	"zenmcp/core"
)

type batchEditInput struct {
	Path         string        `json:"path"`
	Replacements []replacement `json:"replacements" jsonschema:"done in order, each on the result of the one before"`
	AllowPartial bool          `json:"allowPartial,omitempty" jsonschema:"write what matches even if the rest does not"`
	Force        bool          `json:"force,omitempty"`
}

// A batchEditAnswer counts replacements, not the places that each changed.
type batchEditAnswer struct {
	Result        string          `json:"result"` // success, failed or partial
	ReplacedCount int             `json:"replacedCount"`
	Failed        []failedReplace `json:"failed,omitempty"`
	Note          string          `json:"note,omitempty"`
}

// A failedReplace has the index when nothing was written, and newText when the
// others were, as a model that repeats only the failed ones needs them.
type failedReplace struct {
	Index   *int    `json:"index,omitempty"`
	OldText string  `json:"oldText"`
	NewText *string `json:"newText,omitempty"`
	Reason  string  `json:"reason"`
}

// batchEdit makes several changes of one file, all or none unless the caller
// allows a part (contract §2, decision 9).
func batchEdit() core.Definition {
	return core.Define(core.Tool{
		Name:        "batchEdit",
		Title:       "Edit several places",
		Description: "Replace several texts in a file by edit's rules: all, or nothing is changed.",
		Hints:       core.Hints{Destructive: true},
		Pace:        core.PaceBrief,
	}, func(ctx context.Context, call *core.Call, in batchEditInput) (*core.Result, error) {
		for i, r := range in.Replacements {
			if err := r.check(); err != nil {
				return nil, core.InField("replacements", core.InField(strconv.Itoa(i), err))
			}
		}
		var answer batchEditAnswer
		note, err := rewrite(ctx, call.Scope, in.Path, in.Force, func(d *document) error {
			answer = applyAll(d, in.Replacements, in.AllowPartial)
			if answer.Result == "failed" {
				return errors.New(answer.Result) // so that nothing is written
			}
			return nil
		})
		switch {
		case answer.Result == "failed":
			return core.FailJSON(answer)
		case err != nil:
			return nil, err
		case answer.ReplacedCount == 0 && len(answer.Failed) > 0:
			return core.FailJSON(answer)
		}
		answer.Note = note
		return core.JSONResult(answer)
	})
}

// applyAll makes the changes that can be made and reports the others.
func applyAll(d *document, replacements []replacement, allowPartial bool) batchEditAnswer {
	answer := batchEditAnswer{Result: "success"}
	for i, r := range replacements {
		_, err := r.apply(d)
		if err == nil {
			answer.ReplacedCount++
			continue
		}
		failed := failedReplace{OldText: r.OldText, Reason: err.Error()}
		if allowPartial {
			failed.NewText = &r.NewText
		} else {
			failed.Index = &i
		}
		answer.Failed = append(answer.Failed, failed)
	}
	if len(answer.Failed) > 0 {
		answer.Result = "partial"
		if !allowPartial {
			answer.Result, answer.ReplacedCount = "failed", 0
		}
	}
	return answer
}
