package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"zenmcp/configs"
)

// errStyle says that a text leaves no place for a change.
var errStyle = errors.New("is written in a way that cannot be changed without touching the rest; change it by hand")

// jsonFormat is JSON, with comments and trailing commas where there are any.
type jsonFormat struct{}

type jsonDocument struct {
	file string
	text []byte
	root hujson.Value
	all  map[string]any
}

func (jsonFormat) parse(file string, text []byte) (document, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}" + newline(text))
	}
	checked, err := configs.Parse(file, text) // whose errors say where and why
	if err != nil {
		if p, ok := err.(*configs.Problem); ok { // without an excerpt, which would show keys of others
			err = &configs.Problem{File: file, Line: p.Line, Column: p.Column, Err: p.Err}
		}
		return nil, err
	}
	d := &jsonDocument{file: file, text: text}
	if err := json.Unmarshal(checked.JSON(), &d.all); err != nil || d.all == nil {
		return nil, problem(file, text, 0, errors.New("the file must hold one object, { … }"))
	}
	d.root, err = hujson.Parse(append(slices.Clone(text), '\n'))
	return d, err
}

func (d *jsonDocument) value() map[string]any { return d.all }

// find follows a path as far as it leads: to a value, or to the last one on the
// way and the names that are missing.
func (d *jsonDocument) find(path []string) (v *hujson.Value, missing []string) {
	v = &d.root
	for i, name := range path {
		at := slices.IndexFunc(jsonMembers(v), func(m hujson.ObjectMember) bool { return jsonName(m) == name })
		if at < 0 {
			return v, path[i:]
		}
		v = &jsonMembers(v)[at].Value
	}
	return v, nil
}

func jsonMembers(v *hujson.Value) []hujson.ObjectMember {
	if obj, ok := v.Value.(*hujson.Object); ok {
		return obj.Members
	}
	return nil
}

func jsonName(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal)
	return name.String()
}

func (d *jsonDocument) span(path ...string) (span, bool) {
	v, missing := d.find(path)
	return span{v.StartOffset, v.EndOffset}, len(missing) == 0
}

func (d *jsonDocument) set(value any, path ...string) ([]byte, error) {
	v, missing := d.find(path)
	if len(missing) == 0 {
		return splice(d.text, span{v.StartOffset, v.EndOffset}, d.render(value, indentation(d.text, v.StartOffset))), nil
	}
	_, isObject := v.Value.(*hujson.Object)
	if isObject {
		for _, name := range slices.Backward(missing[1:]) {
			value = object{{name, value}}
		}
		return d.add(v, missing[0], value), nil
	}
	at, parent := span{v.StartOffset, v.EndOffset}, path[:len(path)-len(missing)]
	if string(d.text[at.start:at.end]) != "null" {
		return nil, problem(d.file, d.text, at.start, fmt.Errorf("%s must be an object, { … }", strings.Join(parent, ".")))
	}
	for _, name := range slices.Backward(missing) {
		value = object{{name, value}}
	}
	return splice(d.text, at, d.render(value, indentation(d.text, at.start))), nil
}

// add puts a member behind the last one of an object, or on the same line where
// the object is on one.
func (d *jsonDocument) add(obj *hujson.Value, name string, value any) []byte {
	members, shut := jsonMembers(obj), obj.EndOffset-1
	outer := indentation(d.text, obj.StartOffset)
	inner := outer + d.unit()
	if len(members) > 0 {
		last := members[len(members)-1]
		if !bytes.Contains(d.text[obj.StartOffset:last.Name.StartOffset], []byte("\n")) {
			return splice(d.text, span{last.Value.EndOffset, last.Value.EndOffset}, ", "+quoted(name)+": "+d.compact(value))
		}
		inner = indentation(d.text, last.Name.StartOffset)
	}
	entry := newline(d.text) + inner + quoted(name) + ": " + d.render(value, inner)
	if trailingComma(members) {
		entry += ","
	}
	end := len(bytes.TrimRight(d.text[:shut], " \t\r\n"))
	at := span{end, end}
	if !bytes.Contains(d.text[end:shut], []byte("\n")) {
		entry += newline(d.text) + outer
		at.end = shut
	}
	return d.comma(members, splice(d.text, at, entry))
}

// comma puts one behind the last of the members, unless it has one. What the text
// has up to there is as it was.
func (d *jsonDocument) comma(members []hujson.ObjectMember, text []byte) []byte {
	if len(members) == 0 || trailingComma(members) {
		return text
	}
	end := members[len(members)-1].Value.EndOffset
	return splice(text, span{end, end}, ",")
}

// trailingComma is how the parser tells that there is a comma behind the last.
func trailingComma(members []hujson.ObjectMember) bool {
	return len(members) > 0 && members[len(members)-1].Value.AfterExtra != nil
}

func (d *jsonDocument) remove(path ...string) ([]byte, error) {
	parent, _ := d.find(path[:len(path)-1])
	members := jsonMembers(parent)
	i := slices.IndexFunc(members, func(m hujson.ObjectMember) bool { return jsonName(m) == path[len(path)-1] })
	if i < 0 {
		return nil, errStyle
	}
	cut := span{members[i].Name.StartOffset, members[i].Value.EndOffset}
	last := i == len(members)-1
	comma := !last || trailingComma(members)
	if comma {
		cut.end += len(members[i].Value.AfterExtra) + 1
	}
	cut = wholeLines(d.text, cut)
	text := splice(d.text, cut, "")
	if !comma && i > 0 { // the one before is the last now, and its comma goes
		end := members[i-1].Value.EndOffset + len(members[i-1].Value.AfterExtra)
		text = splice(text, span{end, end + 1}, "")
	}
	if len(members) == 1 {
		open, shut := parent.StartOffset+1, parent.EndOffset-1-(cut.end-cut.start)
		if len(bytes.TrimSpace(text[open:shut])) == 0 {
			text = splice(text, span{open, shut}, "")
		}
	}
	return text, nil
}

// wholeLines widens a range to its lines if nothing else is on them, else over the
// blanks before it.
func wholeLines(text []byte, s span) span {
	start, end := lineStart(text, s.start), lineEnd(text, s.end)
	before, after := bytes.TrimSpace(text[start:s.start]), bytes.TrimSpace(text[s.end:end])
	switch {
	case len(before) == 0 && len(after) == 0:
		return span{start, end}
	case len(before) > 0:
		s.start = start + len(bytes.TrimRight(text[start:s.start], " \t"))
	}
	return s
}

// unit is what a level of the file is indented by.
func (d *jsonDocument) unit() string {
	for _, m := range jsonMembers(&d.root) {
		if unit := indentation(d.text, m.Name.StartOffset); unit != "" {
			return unit
		}
	}
	return "  "
}

// render writes a value that stands on a line with an indentation: objects over
// several lines, all else on one.
func (d *jsonDocument) render(value any, indent string) string {
	if f, ok := value.(fragment); ok {
		return string(f)
	}
	members, ok := value.(object)
	if !ok || len(members) == 0 {
		return d.compact(value)
	}
	inner, nl := indent+d.unit(), newline(d.text)
	lines := make([]string, len(members))
	for i, m := range members {
		lines[i] = nl + inner + quoted(m.name) + ": " + d.render(m.value, inner)
	}
	return "{" + strings.Join(lines, ",") + nl + indent + "}"
}

// compact writes a value on one line.
func (d *jsonDocument) compact(value any) string {
	switch v := value.(type) {
	case fragment:
		return string(v)
	case object:
		parts := make([]string, len(v))
		for i, m := range v {
			parts[i] = quoted(m.name) + ": " + d.compact(m.value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return inline(value, quoted)
}
