package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"zenmcp/core"
)

// maxFileSize is the size in bytes up to which the files of a folder are
// searched by default (contract §2).
const maxFileSize = 307_200

type findTextInput struct {
	Pattern       string   `json:"pattern" jsonschema:"glob of files, such as **/*.go"`
	Path          string   `json:"path,omitempty" jsonschema:"folder or file; default: the working directory"`
	Text          string   `json:"text,omitempty"`
	Regex         string   `json:"regex,omitempty" jsonschema:"JavaScript regular expression instead of text; (?i:x) ignores case"`
	Exclude       []string `json:"exclude,omitempty" jsonschema:"as in glob"`
	MaxMatches    int      `json:"maxMatches,omitempty"`
	MaxFileSize   int64    `json:"maxFileSize,omitempty" jsonschema:"bytes; default 307200"`
	MaxLineLength int      `json:"maxLineLength,omitempty" jsonschema:"longer lines are cut around the match"`
}

// findText searches files line by line (contract §2, decision 16). Lines end at
// LF; a CR before it and a byte order mark are no part of them. Binary files,
// those over maxFileSize and what cannot be read are skipped and counted. A file
// given as path is searched whatever the pattern says, and whatever its size is
// unless maxFileSize is given.
//
// Hits come sorted by path and line. With more than maxMatches lines, the answer
// has the first of them in this order.
func findText() core.Definition {
	schema := core.SchemaFor[findTextInput]()
	one, zero := 1.0, 0.0
	schema.Properties["maxMatches"].Minimum = &one
	schema.Properties["maxMatches"].Default = json.RawMessage("200")
	schema.Properties["maxFileSize"].Minimum = &one
	schema.Properties["maxLineLength"].Minimum = &zero
	schema.Properties["maxLineLength"].Default = json.RawMessage("200")
	return core.Define(core.Tool{
		Name:        "findText",
		Title:       "Find text",
		Description: "Find lines that hold a text or match a regular expression, in files selected by a glob.",
		Input:       schema,
		Hints:       core.Hints{ReadOnly: true, Idempotent: true},
		Output:      core.OutputLong,
	}, func(ctx context.Context, call *core.Call, in findTextInput) (*core.Result, error) {
		s, err := newTextSearch(ctx, in)
		if err != nil {
			return nil, err
		}
		how, err := s.run(call, in)
		switch {
		case ctx.Err() != nil:
			return s.answer(walked{aborted: true})
		case err != nil:
			return nil, err
		}
		return s.answer(how)
	})
}

// maxSlowFiles is how many files may take too long until the call ends.
const maxSlowFiles = 10

// A textSearch is one call of findText.
type textSearch struct {
	ctx           context.Context
	expr          *lineExpression
	maxFileSize   int64 // 0: not given
	maxLineLength int
	found         hitList
	searched      atomic.Int64 // files
	slow          atomic.Int32 // files
	selectsNone   string       // why no file was searched, if that may be a mistake

	mu        sync.Mutex
	searchers map[*worker]*fileSearcher
}

func newTextSearch(ctx context.Context, in findTextInput) (*textSearch, error) {
	s := &textSearch{ctx: ctx, maxFileSize: in.MaxFileSize, maxLineLength: in.MaxLineLength,
		found: hitList{limit: in.MaxMatches}, searchers: map[*worker]*fileSearcher{}}
	var err error
	switch {
	case in.Regex != "":
		s.expr, err = regexExpression(in.Regex)
	case in.Text != "":
		s.expr, err = textExpression(in.Text)
	default:
		err = errors.New("say what to find: text, or regex")
	}
	return s, err
}

func (s *textSearch) run(call *core.Call, in findTextInput) (walked, error) {
	path, err := call.Scope.Path(cmp.Or(in.Path, "."))
	if err != nil {
		return walked{}, err
	}
	info, err := path.Stat(s.ctx)
	if err != nil {
		return walked{}, err
	}
	if !info.IsDir() {
		return walked{}, s.file(path)
	}
	return s.folder(call, path, in)
}

// file searches the file that path leads to. Backtracking does not look at the
// context, so a cancelled search is left alone until its time is over.
func (s *textSearch) file(path core.Path) error {
	done := make(chan error, 1)
	go func() {
		hits, err := s.searcher(nil).path(s.ctx, path, s.maxFileSize)
		s.found.add(path.Given, hits)
		if errors.As(err, new(skipReason)) {
			s.found.skip(path.Given, err)
			err = nil
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(maxWalk * time.Second):
		return fmt.Errorf("the search was ended after %d s; %q is too big for it", maxWalk, path.Given)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// folder searches what the arguments select in a folder.
func (s *textSearch) folder(call *core.Call, path core.Path, in findTextInput) (walked, error) {
	sel, err := selectPaths(s.ctx, call.Scope, in.Path, in.Pattern, in.Exclude)
	if err != nil {
		return walked{}, err
	}
	s.maxFileSize = cmp.Or(s.maxFileSize, maxFileSize)
	how, err := (&walk{selection: sel, found: s.search, batch: 32, beyond: s.found.beyond}).run(s.ctx, call)
	if err == nil && s.slow.Load() >= maxSlowFiles {
		err = fmt.Errorf("regex %q takes too long: there are too many ways in which it may match, and %d files took more than %v each; "+
			"make it simpler, without repetitions of repetitions, lookaround and back references", core.Clip(in.Regex, 200), maxSlowFiles, maxBacktracking)
	}
	if err == nil && s.searched.Load() == 0 {
		s.selectsNone, err = s.nothing(path, in.Pattern)
	}
	return how, err
}

// nothing says why no file was searched; "" if the folder is empty.
func (s *textSearch) nothing(path core.Path, pattern string) (string, error) {
	entries, err := path.ReadDir(s.ctx)
	if err != nil || len(entries) == 0 {
		return "", err
	}
	pattern = core.Clip(pattern, 200)
	why := fmt.Sprintf("no file is selected by the pattern %q", pattern)
	if !strings.Contains(pattern, "/") {
		why += fmt.Sprintf("; %q looks into subfolders too", "**/"+pattern)
	}
	return why, nil
}

// search takes entries of a folder from the walk.
func (s *textSearch) search(w *worker, in *folder, entries []entry) bool {
	searcher := s.searcher(w)
	for _, e := range entries {
		if e.typ != 0 && e.typ != fs.ModeSymlink || s.found.full() && s.found.beyond(in.shown(e.name)) {
			continue
		}
		if w.walk.stopped.Load() {
			return false
		}
		w.on(in, e.name)
		s.searched.Add(1)
		var hits []hit
		var err error
		if e.typ == 0 {
			hits, err = searcher.entry(in, e.name, s.maxFileSize)
		} else {
			hits, err = searcher.path(s.ctx, in.start.at(in.shown(e.name)), s.maxFileSize)
		}
		if len(hits) > 0 {
			s.found.add(in.shown(e.name), hits)
		}
		if err != nil {
			s.found.skip(in.shown(e.name), err)
		}
		if err == skipTooSlow && s.slow.Add(1) >= maxSlowFiles {
			return false
		}
	}
	return true
}

// searcher is what a worker has of its own.
func (s *textSearch) searcher(w *worker) *fileSearcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.searchers[w]
	if f == nil {
		f = newFileSearcher(s.expr, s.found.limit+1, s.maxLineLength, s.maxFileSize)
		if w != nil {
			f.goesOn = w.goesOn
		}
		s.searchers[w] = f
	}
	return f
}

// A searchAnswer is the answer when there is something to say besides the hits.
type searchAnswer struct {
	TotalMatches int                `json:"totalMatches"`
	Truncated    bool               `json:"truncated"`
	Skipped      map[skipReason]int `json:"skipped,omitempty"`
	Note         string             `json:"note,omitempty"`
	Results      []fileHits         `json:"results"`
}

type abortedSearch struct {
	Aborted bool       `json:"aborted"`
	Results []fileHits `json:"results"`
}

func (s *textSearch) answer(how walked) (*core.Result, error) {
	results, truncated, skipped := s.found.sorted()
	if how.aborted {
		return core.JSONResult(abortedSearch{true, results})
	}
	truncated = truncated || how.late
	if how.unreadable > 0 {
		skipped[skipUnreadable] += how.unreadable
	}
	said := cmp.Or(note(how, false), s.selectsNone)
	if !truncated && len(skipped) == 0 && said == "" {
		return core.JSONResult(results)
	}
	total := 0
	for _, f := range results {
		total += len(f.Matches)
	}
	return core.JSONResult(searchAnswer{total, truncated, skipped, said, results})
}
