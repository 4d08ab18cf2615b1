package clients

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"unicode"

	"github.com/rogpeppe/go-internal/diff"

	"zenmcp/configs"
)

// A Change is what is to become of a client's file. Nothing is written before
// [Installer.Apply].
type Change struct {
	Client Client
	File   File // as it was found
	Name   string

	before, after []byte // nil is no file
	undo          bool
}

// Empty reports whether the file is already as it is to be.
func (c *Change) Empty() bool {
	return bytes.Equal(c.before, c.after) && (c.before == nil) == (c.after == nil)
}

// Removes reports whether the file goes, because it was not there before.
func (c *Change) Removes() bool { return c.before != nil && c.after == nil }

// Diff shows the change as a unified diff. The values of everything but the entry
// itself are left out of it: client files hold other servers' keys.
func (c *Change) Diff() string {
	name := func(text []byte) string {
		if text == nil {
			return os.DevNull
		}
		return c.File.Path
	}
	text := diff.Diff(name(c.before), c.masked(c.before), name(c.after), c.masked(c.after))
	_, text, _ = bytes.Cut(text, []byte("\n")) // a line that names both files, again
	return string(text)
}

// words are the strings, names and bare words of all three syntaxes, with the sign
// that makes one a name; and the headers of TOML's tables.
var words = regexp.MustCompile(`(?m)^\[[\w.-]+\]$|(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')(?:\s*[:=])?|[^\s"'{}\[\],]+(?: +=)?`)

// hidden is text without anything but its structure: names and signs.
func hidden(text []byte) []byte {
	return words.ReplaceAllFunc(text, func(word []byte) []byte {
		switch end := bytes.TrimSpace(word); {
		case end[0] == '[', bytes.HasSuffix(end, []byte(":")), bytes.HasSuffix(end, []byte(" =")), bytes.HasSuffix(end, []byte(`"=`)),
			!bytes.ContainsFunc(end, func(r rune) bool { return r == '"' || r == '\'' || unicode.IsLetter(r) || unicode.IsDigit(r) }):
			return word
		}
		return []byte("…")
	})
}

// masked hides all but the entry.
func (c *Change) masked(text []byte) []byte {
	plain := bytes.TrimPrefix(text, bom)
	doc, err := c.Client.format.parse(c.File.Path, plain)
	if err != nil {
		return hidden(plain)
	}
	at, ok := doc.span(c.Client.section, c.Name)
	if !ok {
		return hidden(plain)
	}
	return bytes.Join([][]byte{hidden(plain[:at.start]), plain[at.start:at.end], hidden(plain[at.end:])}, nil)
}

// edit is one step of a change to a document.
type edit func(document) ([]byte, error)

// changed applies edits one after the other, and insists that nothing outside the
// entry has another meaning than before.
func (f opened) changed(c Client, name string, edits ...edit) ([]byte, error) {
	doc := f.doc
	var text []byte
	for _, e := range edits {
		var err error
		if text, err = e(doc); err != nil {
			return nil, f.problem(c, name, err)
		}
		if doc, err = c.format.parse(f.Path, text); err != nil {
			return nil, f.problem(c, name, errStyle)
		}
	}
	if !reflect.DeepEqual(without(f.doc.value(), c.section, name), without(doc.value(), c.section, name)) {
		return nil, f.problem(c, name, errStyle)
	}
	if bytes.HasPrefix(f.text, bom) {
		text = append(bytes.Clone(bom), text...)
	}
	return text, nil
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
	change := &Change{Client: c, File: f.File, Name: s.Name, before: f.text}
	old, found := f.find(s.Name)
	set := func(value any, path ...string) edit {
		return func(d document) ([]byte, error) { return d.set(value, append([]string{c.section, s.Name}, path...)...) }
	}
	switch {
	case found && old.Ours() && old.Command == s.Command && slices.Equal(old.Args, s.Args):
		change.after = f.text
		return change, nil
	case found && old.Ours():
		change.after, err = f.changed(c, s.Name, set(s.Command, c.command), set(s.Args, "args"))
	case found && !force:
		return nil, f.problem(c, s.Name, fmt.Errorf(
			"is another server%s; choose a name with --name, or replace it with --force, which --undo takes back", runs(old)))
	default:
		change.after, err = f.changed(c, s.Name, set(c.entry(s)))
	}
	if err != nil {
		return nil, err
	}
	now, err := c.format.parse(f.Path, bytes.TrimPrefix(change.after, bom))
	if err != nil {
		return nil, err
	}
	value, _ := lookup(now.value(), c.section, s.Name)
	if e := c.entryOf(s.Name, value); e.Command != s.Command || !slices.Equal(e.Args, s.Args) {
		return nil, f.problem(c, s.Name, errors.New("is there more than once; keep one of them"))
	}
	return change, nil
}

func runs(e Entry) string {
	if e.Command == "" {
		return ""
	}
	return fmt.Sprintf(", which runs %q", e.Command)
}
