package clients

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"unicode"

	"github.com/rogpeppe/go-internal/diff"

	"zenmcp/configs"
	"zenmcp/core"
)

// A Change is what is to become of a client's file. Nothing is written before
// [Installer.Apply].
type Change struct {
	Client Client
	File   File // as it was found
	Name   string

	before, after version
	undo          bool
}

// A version is what a file holds at one time, and its meaning.
type version struct {
	text []byte   // nil is no file
	doc  document // of the text without its BOM; nil if it cannot be understood
}

// plain is the text without its BOM, as the offsets of the document count.
func (t version) plain() []byte { return bytes.TrimPrefix(t.text, bom) }

// Empty reports whether the file is already as it is to be.
func (c *Change) Empty() bool {
	return bytes.Equal(c.before.text, c.after.text) && (c.before.text == nil) == (c.after.text == nil)
}

// Removes reports whether the file goes, because it was not there before.
func (c *Change) Removes() bool { return c.before.text != nil && c.after.text == nil }

// Diff shows the change as a unified diff. Of values it shows only those that
// [Installer.Install] writes: client files hold keys, of other servers and in the
// variables of ours.
func (c *Change) Diff() string {
	name := func(t version) string {
		if t.text == nil {
			return os.DevNull
		}
		return c.File.Path
	}
	before, after := c.before.plain(), c.after.plain()
	same := commonPrefix(before, after)
	rest := commonSuffix(before[same:], after[same:])
	text := diff.Diff(
		name(c.before), c.masked(c.before, span{same, len(before) - rest}),
		name(c.after), c.masked(c.after, span{same, len(after) - rest}))
	_, text, _ = bytes.Cut(text, []byte("\n")) // a line that names both files, again
	return string(text)
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// words are the strings, names and bare words of all three syntaxes, with the sign
// that makes one a name; and the headers of TOML's tables.
var words = core.Regexp(`(?m)^\[[\w.-]+\]$|(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')(?:\s*[:=])?|[^\s"'{}\[\],]+(?: +=)?`)

// hidden is text without anything but its structure: names and signs.
func hidden(text []byte) []byte {
	return words().ReplaceAllFunc(text, func(word []byte) []byte {
		switch end := bytes.TrimSpace(word); {
		case end[0] == '[', bytes.HasSuffix(end, []byte(":")), bytes.HasSuffix(end, []byte(" =")), bytes.HasSuffix(end, []byte(`"=`)),
			!bytes.ContainsFunc(end, func(r rune) bool { return r == '"' || r == '\'' || unicode.IsLetter(r) || unicode.IsDigit(r) }):
			return word
		}
		return []byte("…")
	})
}

// contextLines are more than a diff shows around what differs.
const contextLines = 5

// masked is what a diff may show around a range that differs. Lines before it are
// blank, and those behind it missing: client files may have a hundred thousand.
func (c *Change) masked(t version, differs span) []byte {
	text := t.plain()
	start, end := lineStart(text, differs.start), lineEnd(text, differs.end)
	for range contextLines {
		start, end = lineStart(text, max(0, start-1)), lineEnd(text, end)
	}
	out := bytes.Repeat([]byte("\n"), bytes.Count(text[:start], []byte("\n")))
	for _, own := range c.own(t) {
		if own.start >= start && own.end <= end {
			out = append(append(out, hidden(text[start:own.start])...), text[own.start:own.end]...)
			start = own.end
		}
	}
	return append(out, hidden(text[start:end])...)
}

// own lists where an entry that starts zen-mcp has the values that are written by
// [Installer.Install], in the order of the text.
func (c *Change) own(t version) []span {
	if t.doc == nil {
		return nil
	}
	entry, _ := lookup(t.doc.value(), c.Client.section, c.Name)
	if !c.Client.entryOf(c.Name, entry).Ours() {
		return nil
	}
	var all []span
	for _, m := range c.Client.entry(Server{}) {
		if _, open := m.value.(object); open { // to others, as variables are
			continue
		}
		if at, ok := t.doc.span(c.Client.section, c.Name, m.name); ok {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return a.start - b.start })
	return all
}

// edit is one step of a change to a document.
type edit func(document) ([]byte, error)

// changed applies edits one after the other, and insists that nothing outside the
// entry has another meaning than before.
func (f opened) changed(c Client, name string, edits ...edit) (version, error) {
	now := version{doc: f.doc}
	for _, e := range edits {
		var err error
		if now.text, err = e(now.doc); err != nil {
			return version{}, f.problem(c, name, err)
		}
		if now.doc, err = c.format.parse(f.Path, now.text); err != nil {
			return version{}, f.problem(c, name, errStyle)
		}
	}
	if !reflect.DeepEqual(without(f.doc.value(), c.section, name), without(now.doc.value(), c.section, name)) {
		return version{}, f.problem(c, name, errStyle)
	}
	if bytes.HasPrefix(f.text, bom) {
		now.text = append(bytes.Clone(bom), now.text...)
	}
	return now, nil
}

func (f opened) problem(c Client, name string, err error) error {
	if p, ok := err.(*configs.Problem); ok {
		return p
	}
	p := &configs.Problem{File: f.Path, Field: c.section + "." + name, Err: err}
	if e, ok := f.find(name); ok && e.Line > 0 {
		p.Line, p.Column = e.Line, 1
	}
	return p
}

// without copies a decoded file but for one entry; a section that is empty then
// counts as none.
func without(all map[string]any, section, name string) map[string]any {
	out := map[string]any{}
	for k, v := range all {
		out[k] = v
	}
	servers, ok := out[section].(map[string]any)
	if !ok {
		if out[section] == nil {
			delete(out, section)
		}
		return out
	}
	rest := map[string]any{}
	for k, v := range servers {
		if k != name {
			rest[k] = v
		}
	}
	out[section] = rest
	if len(rest) == 0 {
		delete(out, section)
	}
	return out
}

// Install plans the entry of a server. An entry of zen-mcp that is there under the
// name gets the new command and arguments, and keeps what else it has; one that
// starts something else is replaced only with force.
func (i Installer) Install(c Client, s Server, force bool) (*Change, error) {
	f, err := c.open(i.System)
	if err != nil {
		return nil, err
	}
	change := &Change{Client: c, File: f.File, Name: s.Name, before: f.version}
	old, found := f.find(s.Name)
	set := func(value any, path ...string) edit {
		return func(d document) ([]byte, error) { return d.set(value, append([]string{c.section, s.Name}, path...)...) }
	}
	switch {
	case found && old.Ours() && old.Command == s.Command && slices.Equal(old.Args, s.Args):
		change.after = f.version
		return change, nil
	case found && old.Ours():
		change.after, err = f.changed(c, s.Name, set(s.Command, c.command), set(s.Args, "args"))
	case found && !force:
		return nil, f.problem(c, s.Name, fmt.Errorf(
			"is another server%s; choose a name with --name, or replace it with --force, which --undo takes back", runs(old)))
	default:
		change.after, err = f.changed(c, s.Name, set(c.entry(s)))
	}
	var p *configs.Problem
	if errors.Is(err, errStyle) && errors.As(err, &p) {
		p.Err = fmt.Errorf("%w, so that it says:\n\n%s", p.Err, c.sample(s))
	}
	if err != nil {
		return nil, err
	}
	value, _ := lookup(change.after.doc.value(), c.section, s.Name)
	if e := c.entryOf(s.Name, value); e.Command != s.Command || !slices.Equal(e.Args, s.Args) {
		return nil, f.problem(c, s.Name, errors.New("is there more than once; keep one of them"))
	}
	return change, nil
}

// sample is a file with nothing but the entry of a server.
func (c Client) sample(s Server) []byte {
	empty, err := c.format.parse("", nil)
	if err != nil {
		return nil // an empty text is fine in each syntax
	}
	text, _ := empty.set(c.entry(s), c.section, s.Name) // likewise
	return text
}

func runs(e Entry) string {
	if e.Command == "" {
		return ""
	}
	return fmt.Sprintf(", which runs %q", e.Command)
}
