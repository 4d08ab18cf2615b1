package skills

import (
	"errors"
	"fmt"
	"strings"

	"zenmcp/core"
)

// keyLine begins an entry at the outermost level: a key, and what follows.
var keyLine = core.Regexp(`^([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*))?$`)

// parseTolerant reads frontmatter that is no YAML because of a few values: those
// with an unquoted colon above all, as people write descriptions (decision 24).
// Every entry that is YAML on its own is read as that. Of the others the value
// becomes text if it is one, and is left out if it is a list or a map; the notes
// say so. It is an error when something is no entry at all, or is there twice.
func parseTolerant(text string) (root node, notes []error, err error) {
	entries, err := entriesOf(text)
	if err != nil {
		return node{}, nil, err
	}
	root.isMap = true
	for _, e := range entries {
		value, problem := e.read()
		if problem != nil {
			value = e.asText()
			note := fmt.Errorf("was read as plain text; put the value in quotes (%w)", problem)
			if e.nested() {
				note = fmt.Errorf("was ignored (%w)", problem)
			}
			notes = append(notes, core.InField(e.key, note))
		}
		if problem == nil || !e.nested() {
			if err := root.add(e.key, value); err != nil {
				return node{}, nil, err
			}
		}
	}
	return root, notes, nil
}

// An entry is the lines of one key of the outermost level.
type entry struct {
	key   string
	lines []string // the first one with the key
	rest  string   // of the first line, after the colon
}

func entriesOf(text string) ([]entry, error) {
	var entries []entry
	indent := -1 // of the outermost level, that of its first line
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimLeft(line, " ")
		blank := strings.TrimSpace(line) == ""
		if indent < 0 && !blank && bare[0] != '#' {
			indent = len(line) - len(bare)
		}
		found := keyLine().FindStringSubmatch(bare)
		switch {
		case found != nil && len(line)-len(bare) == indent:
			entries = append(entries, entry{key: found[1], lines: []string{bare}, rest: strings.TrimSpace(found[2])})
		case blank || bare[0] == '#' || len(entries) > 0 && (len(line)-len(bare) > indent || line[0] == '\t' || strings.HasPrefix(bare, "- ")):
			if len(entries) > 0 {
				last := &entries[len(entries)-1]
				last.lines = append(last.lines, strings.TrimPrefix(line, strings.Repeat(" ", max(0, indent))))
			}
		default:
			return nil, inLine(i+2, fmt.Errorf(`line %d: not valid YAML, and no "key: value" either`, i+2))
		}
	}
	return entries, nil
}

// read reads the entry as YAML.
func (e *entry) read() (node, error) {
	root, err := parseYAML(strings.Join(e.lines, "\n") + "\n")
	if err != nil {
		return node{}, unlocated(err)
	}
	if len(root.keys) != 1 {
		return node{}, errors.New("not valid YAML")
	}
	return root.keys[0].value, nil
}

// unlocated drops the line of an error, which counts from the entry's own.
func unlocated(err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "line "); ok {
		if _, text, ok = strings.Cut(text, ": "); ok {
			return errors.New(text)
		}
	}
	return err
}

// nested reports whether the entry is a list or a map: nothing follows its key
// in the same line.
func (e *entry) nested() bool { return e.rest == "" }

// asText joins the lines of the value, as YAML folds them, without the quotes
// around it.
func (e *entry) asText() node {
	parts := []string{e.rest}
	for _, line := range e.lines[1:] {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	text := strings.Join(parts, " ")
	if n := len(text); n > 1 && text[0] == text[n-1] && (text[0] == '"' || text[0] == '\'') {
		text = text[1 : n-1]
	}
	return node{text: text, quoted: true}
}
