package clients

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlFormat is TOML, with an entry as a table of its own, as Codex writes it. An
// entry in another style can be read, but not changed.
type tomlFormat struct{}

type tomlDocument struct {
	file  string
	text  []byte
	all   map[string]any
	lines []expression
}

// An expression is a line of TOML that says something: the header of a table, or a
// key and its value.
type expression struct {
	path   []string // from the top of the file
	header bool
	at     span // whole lines
	value  span // of a key's value
}

func (tomlFormat) parse(file string, text []byte) (document, error) {
	d := &tomlDocument{file: file, text: text, all: map[string]any{}}
	if err := toml.Unmarshal(text, &d.all); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, column := at.Position()
			p := problem(file, text, 0, errors.New(strings.TrimPrefix(at.Error(), "toml: ")))
			p.Line, p.Column = line, column
			return nil, p
		}
		return nil, problem(file, text, 0, err)
	}
	var p unstable.Parser
	p.Reset(text)
	var table []string
	for p.NextExpression() {
		e := newExpression(&p, text, table)
		if e.header {
			table = e.path
		}
		d.lines = append(d.lines, e)
	}
	return d, p.Error()
}

func newExpression(p *unstable.Parser, text []byte, table []string) expression {
	node := p.Expression()
	var e expression
	var first, last span
	for it := node.Key(); it.Next(); {
		raw := it.Node().Raw
		last = span{int(raw.Offset), int(raw.Offset + raw.Length)}
		if e.path == nil {
			first = last
		}
		e.path = append(e.path, string(it.Node().Data))
	}
	end := last.end
	if e.header = node.Kind != unstable.KeyValue; !e.header {
		e.path = slices.Concat(table, e.path)
		end = int(node.Raw.Offset + node.Raw.Length)
		e.value.start = last.end + bytes.IndexByte(text[last.end:], '=') + 1
		e.value.start += len(text[e.value.start:end]) - len(bytes.TrimLeft(text[e.value.start:end], " \t"))
		e.value.end = end
	}
	e.at = span{lineStart(text, first.start), lineEnd(text, end)}
	return e
}

func (d *tomlDocument) value() map[string]any { return d.all }

// span gives the lines of a table and of those in it, or the value of a key.
func (d *tomlDocument) span(path ...string) (span, bool) {
	under := func(e expression) bool {
		return len(e.path) >= len(path) && slices.Equal(e.path[:len(path)], path)
	}
	first := slices.IndexFunc(d.lines, under)
	if first < 0 {
		return span{}, false
	}
	e := d.lines[first]
	if !e.header {
		return e.value, len(e.path) == len(path)
	}
	last := first
	for i := first; i < len(d.lines); i++ {
		if under(d.lines[i]) {
			if i > last+1 {
				return span{}, false // something else is between
			}
			last = i
		}
	}
	return span{e.at.start, d.lines[last].at.end}, true
}

func (d *tomlDocument) set(value any, path ...string) ([]byte, error) {
	at, found := d.span(path...)
	_, there := lookup(d.all, path...)
	switch {
	case found != there:
		return nil, errStyle
	case found:
		return splice(d.text, at, d.render(value, path)), nil
	}
	if _, table := value.(object); !table {
		if _, raw := value.(fragment); !raw {
			return d.addKey(value, path)
		}
	}
	nl, before := newline(d.text), ""
	if len(d.text) > 0 {
		before = nl
		if d.text[len(d.text)-1] != '\n' {
			before += nl
		}
	}
	end := len(d.text)
	return splice(d.text, span{end, end}, before+d.render(value, path)), nil
}

// addKey puts a key into a table, right below its header.
func (d *tomlDocument) addKey(value any, path []string) ([]byte, error) {
	table := path[:len(path)-1]
	i := slices.IndexFunc(d.lines, func(e expression) bool { return e.header && slices.Equal(e.path, table) })
	if i < 0 {
		return nil, errStyle
	}
	end := d.lines[i].at.end
	line := path[len(path)-1] + " = " + inline(value, tomlString) + newline(d.text)
	if end > 0 && d.text[end-1] != '\n' {
		line = newline(d.text) + line
	}
	return splice(d.text, span{end, end}, line), nil
}

func (d *tomlDocument) remove(path ...string) ([]byte, error) {
	at, found := d.span(path...)
	if !found || !slices.ContainsFunc(d.lines, func(e expression) bool { return e.header && e.at.start == at.start }) {
		return nil, errStyle
	}
	// The empty line that divided the table from what was before it goes as well.
	nl, before := newline(d.text), d.text[:at.start]
	next := d.text[at.end:lineEnd(d.text, at.end)]
	switch {
	case len(bytes.TrimSpace(next)) > 0:
	case len(before)-len(bytes.TrimRight(before, "\r\n")) >= 2*len(nl):
		at.start -= len(nl)
	case at.start == 0:
		at.end += len(next)
	}
	return splice(d.text, at, ""), nil
}

func (d *tomlDocument) render(value any, path []string) string {
	switch v := value.(type) {
	case fragment:
		return string(v)
	case object:
		nl := newline(d.text)
		var b strings.Builder
		b.WriteString("[" + strings.Join(path, ".") + "]" + nl)
		for _, m := range v {
			b.WriteString(m.name + " = " + inline(m.value, tomlString) + nl)
		}
		return b.String()
	}
	return inline(value, tomlString)
}

// tomlString writes paths of Windows as people do.
func tomlString(s string) string {
	if strings.Contains(s, `\`) && !strings.ContainsFunc(s, func(r rune) bool { return r == '\'' || r < ' ' || r == 0x7f }) {
		return "'" + s + "'"
	}
	return quoted(s)
}
