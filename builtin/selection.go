package builtin

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"zenmcp/core"
)

// defaultExclude is left out unless the caller's list is empty (decision 15).
const defaultExclude = "**/node_modules/**"

// A selection says which paths are wanted: what a glob pattern and excludes mean
// in a folder.
type selection struct {
	starts []*start
}

// A start is a folder that a walk begins in. What patterns name in front of
// their first wildcard is not searched for.
type start struct {
	root  string   // of the patterns: "", "../", "/"
	lits  []string // the names that lead on from there
	path  core.Path
	shown string // root and names: how the paths of results begin
	self  bool   // the folder itself is a result

	nodes []*node // the rest of the patterns
	want  []*node // what of it is looked for in the folder
	skip  []*node // what excludes say in the folder
}

// selectPaths reads the arguments that glob and findText have in common. exclude
// is nil when it was not given. The folder must exist.
func selectPaths(ctx context.Context, scope *core.Scope, path, glob string, exclude []string) (*selection, error) {
	patterns, err := parsePattern(glob)
	if err != nil {
		return nil, err
	}
	base, err := scope.Path(cmp.Or(path, "."))
	if err != nil {
		return nil, err
	}
	info, err := base.Stat(ctx)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%q is not a directory; give the folder to search in", base.Given)
	}
	excludes, err := parseExcludes(exclude, base)
	if err != nil {
		return nil, err
	}
	sel := &selection{}
	slices.SortStableFunc(patterns, func(a, b pattern) int { return a.literals() - b.literals() })
	for _, p := range patterns {
		if len(p.segs) > 0 { // else it names the folder or one above, which is no result
			sel.add(p)
		}
	}
	sel.starts = slices.DeleteFunc(sel.starts, func(s *start) bool { return !s.limit(excludes) })
	for _, s := range sel.starts {
		if err := s.resolve(scope, base); err != nil {
			return nil, err
		}
	}
	return sel, nil
}

// parseExcludes reads excludes, which are patterns relative to base. In them **
// stands for names with a dot in front too: what is below a folder is all of it.
func parseExcludes(texts []string, base core.Path) ([]pattern, error) {
	if texts == nil || len(texts) > 0 {
		texts = append([]string{defaultExclude}, texts...)
	}
	var all []pattern
	for _, text := range texts {
		if text == "" {
			continue
		}
		patterns, err := parsePattern(strings.TrimPrefix(text, filepath.ToSlash(base.Abs)+"/"))
		if err != nil {
			return nil, core.InField("exclude", err)
		}
		for _, p := range patterns {
			for i := range p.segs {
				p.segs[i].dot = p.segs[i].dot || p.segs[i].kind == deep
			}
			if len(p.segs) > 0 {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// literals counts the names in front of the first wildcard, without the last.
func (p pattern) literals() int {
	n := 0
	for n < len(p.segs)-1 && p.segs[n].kind == exact {
		n++
	}
	return n
}

// add puts a pattern into the start that it belongs to, or makes one. Patterns
// in a part of the tree that has a start share it, so that nothing is found
// twice; those with fewer names in front must come first.
func (sel *selection) add(p pattern) {
	lits := make([]string, p.literals())
	for i := range lits {
		lits[i] = p.segs[i].head
	}
	i := slices.IndexFunc(sel.starts, func(s *start) bool {
		return s.root == p.root && len(s.lits) <= len(lits) && slices.Equal(s.lits, lits[:len(s.lits)])
	})
	if i < 0 {
		i = len(sel.starts)
		sel.starts = append(sel.starts, &start{root: p.root, lits: lits})
	}
	s := sel.starts[i]
	rest := p.segs[len(s.lits):]
	insert(&s.nodes, rest, p.dirs)
	s.self = s.self || len(rest) == 1 && rest[0].kind == deep && len(s.lits) > 0
}

// limit applies excludes to the start and reports whether anything is left.
// Those that begin with ** hold wherever the start is.
func (s *start) limit(excludes []pattern) bool {
	var nodes []*node
	for _, p := range excludes {
		if p.root == s.root || p.root == "" && p.segs[0].kind == deep {
			insert(&nodes, p.segs, p.dirs)
		}
	}
	s.want, s.skip = link(s.nodes), link(nodes)
	for _, name := range s.lits {
		e, next := step(s.skip, name, fs.ModeDir)
		if e.excluded(true) || emptied(next) {
			return false
		}
		s.skip = next
	}
	return true
}

// resolve finds the folder of the start.
func (s *start) resolve(scope *core.Scope, base core.Path) error {
	s.shown = s.root
	if len(s.lits) > 0 {
		s.shown += strings.Join(s.lits, "/") + "/"
	}
	if s.shown == "" {
		s.path = base
		return nil
	}
	given := filepath.FromSlash(s.shown)
	if !filepath.IsAbs(given) {
		given = filepath.Join(base.Given, given)
	}
	var err error
	s.path, err = scope.Path(given)
	return err
}

// named reports whether all that is wanted in the folder are names without
// wildcards, which can be looked up.
func (s *start) named() bool {
	return !slices.ContainsFunc(s.want, func(n *node) bool { return n.kind != exact || len(n.kids) > 0 })
}
