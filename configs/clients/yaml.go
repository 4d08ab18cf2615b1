package clients

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"zenmcp/core"
)

// yamlFormat is YAML in block style, as goose writes it. Other styles can be read,
// but not changed.
type yamlFormat struct{}

type yamlDocument struct {
	file string
	text []byte
	all  map[string]any
	root ast.Node // nil when the file holds nothing
}

func (yamlFormat) parse(file string, text []byte) (document, error) {
	// The parser counts a line end of two bytes twice behind comments.
	plain := bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	if !utf8.Valid(text) {
		return nil, problem(file, plain, 0, errors.New("is not UTF-8 text"))
	}
	if i := bytes.IndexByte(plain, '\r'); i >= 0 {
		return nil, problem(file, plain, i, errors.New("a carriage return stands alone here; lines end with LF or CR LF"))
	}
	tree, err := parser.ParseBytes(plain, 0)
	d := &yamlDocument{file: file, text: text, all: map[string]any{}}
	if err == nil {
		err = yaml.Unmarshal(plain, &d.all)
	}
	if err != nil {
		p := problem(file, text, 0, errors.New("is no YAML that can be read as a mapping"))
		var at yaml.Error
		if errors.As(err, &at) {
			p.Err = errors.New(at.GetMessage())
			if t := at.GetToken(); t != nil && t.Position != nil {
				p.Line, p.Column = t.Position.Line, t.Position.Column
			}
		}
		return nil, p
	}
	switch len(tree.Docs) {
	case 0:
	case 1:
		d.root = tree.Docs[0].Body
	default:
		return nil, problem(file, text, 0, errors.New("holds several documents"))
	}
	return d, nil
}

func (d *yamlDocument) value() map[string]any { return d.all }

// pairs are the members of a mapping that has a line for each.
func pairs(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle {
			return m.Values
		}
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	return nil
}

// find follows a path as far as it leads.
func (d *yamlDocument) find(path []string) (pair *ast.MappingValueNode, in ast.Node, missing []string) {
	in = d.root
	for i, name := range path {
		all := pairs(in)
		at := slices.IndexFunc(all, func(p *ast.MappingValueNode) bool { return p.Key.GetToken().Value == name })
		if at < 0 {
			return pair, in, path[i:]
		}
		pair, in = all[at], all[at].Value
	}
	return pair, in, nil
}

// line is where the line with a number, from 1, begins.
func (d *yamlDocument) line(number int) int {
	at := 0
	for ; number > 1; number-- {
		at = lineEnd(d.text, at)
	}
	return at
}

// lines is where a pair stands: from the line of its key to the last line that is
// indented more, or that is an item of a list at the same depth.
func (d *yamlDocument) lines(pair *ast.MappingValueNode) span {
	key := pair.Key.GetToken().Position
	s := span{start: d.line(key.Line)}
	s.end = lineEnd(d.text, s.start)
	for at := s.end; at < len(d.text); {
		end := lineEnd(d.text, at)
		line := bytes.TrimRight(d.text[at:end], "\r\n")
		content := bytes.TrimLeft(line, " ")
		depth := len(line) - len(content)
		item := depth == key.Column-1 && (bytes.HasPrefix(content, []byte("- ")) || string(content) == "-")
		if len(content) > 0 {
			if depth < key.Column && !item {
				break
			}
			s.end = end
		}
		at = end
	}
	return s
}

// span begins behind the colon: what stands before it is the name.
func (d *yamlDocument) span(path ...string) (span, bool) {
	pair, _, missing := d.find(path)
	if pair == nil || len(missing) > 0 {
		return span{}, false
	}
	s := d.lines(pair)
	s.start = d.afterColon(pair)
	s.end = s.start + len(bytes.TrimRight(d.text[s.start:s.end], "\r\n"))
	return s, true
}

// afterColon is the offset behind the colon of a pair. Columns count characters.
func (d *yamlDocument) afterColon(pair *ast.MappingValueNode) int {
	at := pair.Start.Position
	start := d.line(at.Line)
	runes := []rune(string(d.text[start:lineEnd(d.text, start)]))
	return start + len(string(runes[:min(at.Column, len(runes))]))
}

func (d *yamlDocument) set(value any, path ...string) ([]byte, error) {
	pair, in, missing := d.find(path)
	if _, there := lookup(d.all, path...); there != (len(missing) == 0) {
		return nil, errStyle
	}
	if len(missing) == 0 {
		at, _ := d.span(path...)
		return splice(d.text, at, d.render(value, pair.Key.GetToken().Position.Column-1)), nil
	}
	for _, name := range slices.Backward(missing[1:]) {
		value = object{{name, value}}
	}
	siblings := pairs(in)
	switch {
	case len(siblings) > 0:
		last := siblings[len(siblings)-1]
		return d.insert(d.lines(last).end, last.Key.GetToken().Position.Column-1, missing[0], value), nil
	case pair == nil && in == nil:
		return d.insert(len(d.text), 0, missing[0], value), nil
	case pair == nil || !empty(in):
		return nil, errStyle
	}
	at, _ := d.span(path[:len(path)-len(missing)]...)
	rest := yamlNothing().ReplaceAllString(string(d.text[at.start:at.end]), "")
	if left := strings.TrimSpace(rest); left != "" && left[0] != '#' { // a comment may stay; a tag would be of the new value
		return nil, errStyle
	}
	return splice(d.text, at, rest+d.render(object{{missing[0], value}}, pair.Key.GetToken().Position.Column-1)), nil
}

// yamlNothing is how a value that is [empty] is written.
var yamlNothing = core.Regexp(`^ *(\{ *\}|null|~)|^ +$`)

// empty reports whether a value may become a mapping: nothing, or {}.
func empty(n ast.Node) bool {
	switch v := n.(type) {
	case *ast.NullNode:
		return true
	case *ast.MappingNode:
		return len(v.Values) == 0
	}
	return false
}

// insert puts a pair on lines of its own.
func (d *yamlDocument) insert(at, depth int, name string, value any) []byte {
	nl := newline(d.text)
	entry := strings.Repeat(" ", depth) + yamlString(name) + ":" + d.render(value, depth) + nl
	if at > 0 && d.text[at-1] != '\n' {
		entry = nl + entry
	}
	return splice(d.text, span{at, at}, entry)
}

func (d *yamlDocument) remove(path ...string) ([]byte, error) {
	pair, _, missing := d.find(path)
	if pair == nil || len(missing) > 0 {
		return nil, errStyle
	}
	_, in, _ := d.find(path[:len(path)-1])
	if len(pairs(in)) == 1 && len(path) > 1 {
		return d.set(object{}, path[:len(path)-1]...) // no mapping is left without members
	}
	return splice(d.text, d.lines(pair), ""), nil
}

// render writes what stands behind a colon, of a key that is indented by depth.
func (d *yamlDocument) render(value any, depth int) string {
	switch v := value.(type) {
	case fragment:
		return string(v)
	case object:
		if len(v) == 0 {
			return " {}"
		}
		var b strings.Builder
		for _, m := range v {
			b.WriteString(newline(d.text) + strings.Repeat(" ", depth+2) + yamlString(m.name) + ":" + d.render(m.value, depth+2))
		}
		return b.String()
	}
	return " " + inline(value, yamlString)
}

// yamlPlain is text that means itself without quotes.
var yamlPlain = core.Regexp(`^[A-Za-z/][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)

func yamlString(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return quoted(s)
	}
	if yamlPlain().MatchString(s) {
		return s
	}
	return quoted(s)
}
