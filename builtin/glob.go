package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"zenmcp/core"
)

// maxGlob is how many bytes of paths one call keeps; a walk that finds more ends
// there and says so.
const maxGlob = 64 << 20

type globInput struct {
	Pattern string   `json:"pattern" jsonschema:"* ? [a-z] {a,b} **; write leading dots; \\ escapes"`
	Path    string   `json:"path,omitempty" jsonschema:"default: ."`
	Exclude []string `json:"exclude,omitempty" jsonschema:"left out besides **/node_modules/**; [] for nothing"`
}

// A partialGlob is the answer when there is something to say besides the paths.
type partialGlob struct {
	Aborted    bool     `json:"aborted,omitempty"`
	Truncated  bool     `json:"truncated,omitempty"`
	Files      []string `json:"files"`
	Unreadable int      `json:"unreadable,omitempty"`
	Note       string   `json:"note,omitempty"`
}

func glob() core.Definition {
	return core.Define(core.Tool{
		Name:        "glob",
		Title:       "Find files",
		Description: "Find files and directories by a glob: a sorted JSON array, relative to path.",
		Hints:       core.Hints{ReadOnly: true, Idempotent: true},
		Output:      core.OutputLong,
	}, func(ctx context.Context, call *core.Call, in globInput) (*core.Result, error) {
		sel, err := selectPaths(ctx, call.Scope, in.Path, in.Pattern, in.Exclude)
		if ctx.Err() != nil {
			return core.JSONResult(partialGlob{Aborted: true, Files: []string{}})
		}
		if err != nil {
			return nil, err
		}
		var found paths
		how, err := (&walk{selection: sel, found: found.add}).run(ctx, call)
		if err != nil {
			return nil, err
		}
		files, full := found.sorted()
		if how == (walked{}) && !full {
			return core.ListResult(files), nil
		}
		return core.JSONResult(partialGlob{how.aborted, full || how.late, files, how.unreadable, note(how, full)})
	})
}

// note says in words what is missing in an answer.
func note(how walked, full bool) string {
	var notes []string
	if how.late {
		notes = append(notes, fmt.Sprintf("the search was ended after %d s; use a narrower pattern or path", maxWalk))
	} else if full {
		notes = append(notes, "there are more; use a narrower pattern or path")
	}
	if how.unreadable > 0 {
		notes = append(notes, fmt.Sprintf("%s could not be read, such as %v", core.Plural(how.unreadable, "folder"), how.firstError))
	}
	return strings.Join(notes, "; ")
}

// paths collects what a walk finds.
type paths struct {
	mu   sync.Mutex
	all  []string
	size int
	full bool
}

// add takes entries of one folder. Their paths share one piece of memory.
func (p *paths) add(_ *worker, in *folder, entries []entry) bool {
	size := 0
	for _, e := range entries {
		size += len(in.path) + len(e.name)
	}
	var b strings.Builder
	b.Grow(size)
	for _, e := range entries {
		b.WriteString(in.path)
		b.WriteString(e.name)
	}
	text := b.String()

	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range entries {
		n := len(in.path) + len(e.name)
		path := text[:n]
		if e.name == "" {
			path = in.shown("")
		}
		p.all = append(p.all, path)
		text = text[n:]
	}
	p.size += size
	p.full = p.full || p.size > maxGlob
	return !p.full
}

// sorted gives the paths and whether some were left out. What a walk that has been
// given up still finds is forgotten.
func (p *paths) sorted() (all []string, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, p.all = p.all, nil
	if all == nil {
		all = []string{} // null is no list
	}
	slices.Sort(all)
	return slices.Compact(all), p.full
}
