package core

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
)

// unknown decides about an argument that the schema does not name. One that looks
// like an argument which is not given is refused even by tools that only read:
// without it the answer would be the wrong one.
func (c *checker) unknown(s *jsonschema.Schema, name string, given map[string]bool) (keep bool, err error) {
	if !closed(s) {
		return true, nil
	}
	names := propertyNames(s)
	missing := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return given[n] })
	text := fmt.Sprintf("unknown argument %q", Clip(name, 80))
	takes := fmt.Sprintf("it takes %q", names)
	if len(names) == 0 {
		takes = "it takes none"
	}
	if near := nearestArgument(name, missing); near != "" {
		return false, fmt.Errorf("%s; did you mean %q?", text, near)
	}
	if c.strict {
		return false, fmt.Errorf("%s; %s", text, takes)
	}
	c.notes = append(c.notes, fmt.Sprintf("note: the %s was ignored; %s", text, takes))
	return false, nil
}

// synonyms are words that models use for one another in names of arguments,
// since that is what the arguments of other tools are called.
var synonyms = [][]string{
	{"path", "file", "filename", "filepath", "dir", "directory", "folder"},
	{"text", "query", "search", "keyword", "string", "str"},
	{"content", "contents", "data", "body"},
	{"command", "cmd", "script"},
	{"pattern", "glob"},
	{"regex", "regexp"},
}

// nearestArgument is the name that was most likely meant: one that is spelled
// alike, or the only one that shares most words.
func nearestArgument(name string, names []string) string {
	if near := Nearest(name, names); near != "" {
		return near
	}
	words := wordsOf(name)
	best, most, tie := "", 0, false
	for _, n := range names {
		shared := 0
		for w := range wordsOf(n) {
			if words[w] {
				shared++
			}
		}
		switch {
		case shared > most:
			best, most, tie = n, shared, false
		case shared == most:
			tie = true
		}
	}
	if tie {
		return ""
	}
	return best
}

// wordsOf takes oldText, old_text and old-text apart, and gives synonyms the same
// word.
func wordsOf(name string) map[string]bool {
	var b strings.Builder
	for _, r := range Clip(name, 80) {
		switch {
		case unicode.IsUpper(r):
			b.WriteByte(' ')
			b.WriteRune(unicode.ToLower(r))
		case unicode.IsLetter(r):
			b.WriteRune(r)
		default:
			b.WriteByte(' ')
		}
	}
	words := map[string]bool{}
	for _, w := range strings.Fields(b.String()) {
		if i := slices.IndexFunc(synonyms, func(group []string) bool { return slices.Contains(group, w) }); i >= 0 {
			w = synonyms[i][0]
		}
		words[w] = true
	}
	return words
}
