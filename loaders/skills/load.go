package skills

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core"
)

const (
	// maxDescribed is up to how many skills the schema describes each. Beyond
	// that they are searched for.
	maxDescribed = 60
	// maxEnum is how many bytes the names alone may take in the schema.
	maxEnum = 4 << 10
	// maxHits is how many skills one search shows.
	maxHits = 20
)

// A toolset is what the tools of one scope work with.
type toolset struct {
	skills []skill           // that the scope may use
	broken map[string]string // see offer
}

type loadArgs struct {
	Skill  string `json:"skill_id,omitempty"`
	File   string `json:"file,omitempty"`
	Query  string `json:"query,omitempty"`
	Reload bool   `json:"reload,omitempty"`
}

func (t *toolset) load() core.Definition {
	d := core.Define(core.Tool{
		Name:        loadName,
		Title:       "Load a skill",
		Description: "Load a skill: instructions for a kind of task, and the files that belong to it. Do so before such a task.",
		Input:       t.loadInput(text("")),
		Hints:       core.Hints{ReadOnly: true, Idempotent: true},
		Output:      core.OutputLong,
	}, t.runLoad)
	if t.searchable() {
		d.Description += fmt.Sprintf(" There are %d; find the right one with query.", len(t.skills))
	}
	// The choices are shown, but checked by ourselves: there is more to say about
	// a skill that is there and cannot be used.
	d.Input = t.loadInput(t.choice())
	return d
}

// searchable reports whether the skills are too many to be described.
func (t *toolset) searchable() bool { return len(t.skills) > maxDescribed }

func (t *toolset) loadInput(skill *jsonschema.Schema) *jsonschema.Schema {
	in := &jsonschema.Schema{
		Type:          "object",
		PropertyOrder: []string{"skill_id", "query", "file", "reload"},
		Properties: map[string]*jsonschema.Schema{
			"skill_id": skill,
			"file":     text("Read this file of the skill instead"),
			"reload":   {Type: "boolean", Description: "Repeat the text of a loaded skill"},
		},
		Required:             []string{"skill_id"},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	if t.searchable() {
		in.Properties["query"] = text("Words to find skills by name and description")
		in.Required = nil
	} else {
		in.PropertyOrder = slices.Delete(in.PropertyOrder, 1, 2)
	}
	return in
}

func text(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: description}
}

// choice is the schema of a skill's name, with one line for each skill that may
// be used (contract §3, disclosure). Many skills are only named, and very many
// not even that.
func (t *toolset) choice() *jsonschema.Schema {
	s := text("")
	size := 0
	for _, skill := range t.skills {
		s.Enum = append(s.Enum, skill.id)
		size += len(skill.id) + len(`"",`)
	}
	if t.searchable() {
		if size > maxEnum {
			s.Enum = nil
		}
		return s
	}
	var lines strings.Builder
	lines.WriteString("One of:")
	for _, skill := range t.skills {
		fmt.Fprintf(&lines, "\n  - %s: %s", skill.id, skill.line())
	}
	s.Description = lines.String()
	return s
}

// skill finds a skill that the scope may use. One that is denied gets the same
// words as one that does not exist (decision 22); an id is a name, never a path.
func (t *toolset) skill(call *core.Call, id string) (*skill, error) {
	permits := func(id string) bool {
		return call.Scope.Agent().Permissions.Permits(core.Capability{Kind: core.KindSkill, Name: id})
	}
	names := make([]string, 0, len(t.skills))
	for i := range t.skills {
		if s := &t.skills[i]; s.id == id && permits(id) {
			return s, nil
		}
		names = append(names, t.skills[i].id)
	}
	if reason := t.broken[id]; reason != "" && permits(id) {
		return nil, fmt.Errorf("the skill %q cannot be used: %s", id, reason)
	}
	hint := core.DidYouMean(id, names)
	switch {
	case hint != "":
	case t.searchable():
		hint = fmt.Sprintf("; there are %d, find them with query", len(names))
	default:
		hint = fmt.Sprintf("; there are %q", names)
	}
	return nil, fmt.Errorf("unknown skill %q%s", core.Clip(id, 80), hint)
}

func (t *toolset) runLoad(ctx context.Context, call *core.Call, in loadArgs) (*core.Result, error) {
	if in.Skill == "" {
		if !t.searchable() || strings.TrimSpace(in.Query) == "" {
			return nil, core.InField("skill_id", errors.New("must not be empty"))
		}
		return core.TextResult(t.search(in.Query)), nil
	}
	s, err := t.skill(call, in.Skill)
	if err != nil {
		return nil, err
	}
	if in.File != "" {
		return s.readText(ctx, in.File)
	}
	text, err := s.Text(ctx)
	if err != nil {
		return nil, err
	}
	if repeated := loadedBy(call).mark(s.dir, text); repeated && !in.Reload && !call.Sessionless {
		return core.TextResult(fmt.Sprintf("The skill %q is loaded already, and has not changed. Pass reload: true to see it again.", s.id)), nil
	}
	return core.TextResult(text), nil
}

// readText reads one file of the skill as text.
func (s *skill) readText(ctx context.Context, path string) (*core.Result, error) {
	data, err := s.Read(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		var paths []string
		if files, err := s.List(ctx); err == nil {
			for _, f := range files {
				paths = append(paths, f.Path)
			}
		}
		return nil, fmt.Errorf("the skill %q has no file %q%s", s.id, core.Clip(path, 80), core.DidYouMean(path, paths))
	case err != nil:
		return nil, err
	case !utf8.Valid(data):
		return nil, fmt.Errorf("%q of the skill %q is no text, but %s of %d bytes", path, s.id, http.DetectContentType(data), len(data))
	}
	return core.TextResult(strings.TrimPrefix(string(data), "\uFEFF")), nil
}

// search lists the skills whose names and descriptions have the words of a
// query: those that have most of them first, and names before descriptions.
func (t *toolset) search(query string) string {
	words := strings.Fields(strings.ToLower(query))
	type hit struct {
		skill
		score int
	}
	var hits []hit
	for _, s := range t.skills {
		name, description := strings.ToLower(s.id), strings.ToLower(s.manifest.description)
		score := 0
		for _, w := range words {
			switch {
			case strings.Contains(name, w):
				score += 3
			case strings.Contains(description, w):
				score += 2
			}
		}
		if score > 0 {
			hits = append(hits, hit{s, score})
		}
	}
	if len(hits) == 0 {
		return fmt.Sprintf("None of the %d skills matches %q. Try fewer or other words.", len(t.skills), core.Clip(query, 80))
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d skills match; load one with skill_id:\n", len(hits), len(t.skills))
	for _, h := range hits[:min(len(hits), maxHits)] {
		fmt.Fprintf(&b, "  - %s: %s\n", h.id, h.line())
	}
	if more := len(hits) - maxHits; more > 0 {
		fmt.Fprintf(&b, "and %d more; use more words\n", more)
	}
	return b.String()
}

// loaded is what one conversation was given: a client's, or a sub-agent's run
// (decision 23).
type loaded struct {
	mu    sync.Mutex
	texts map[string]digest // by the skill's folder
}

func loadedBy(call *core.Call) *loaded {
	return core.Local(call.Scope, func() *loaded { return &loaded{texts: map[string]digest{}} })
}

// mark notes a text and reports whether it was noted before.
func (l *loaded) mark(dir, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := digestOf([]byte(text))
	before := l.texts[dir]
	l.texts[dir] = d
	return before == d
}
