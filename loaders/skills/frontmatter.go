package skills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// maxFrontmatter is how many bytes the frontmatter may take. Those of people have
// one or two thousand.
const maxFrontmatter = 16 << 10

// maxDepth is how deep values of the frontmatter may be nested.
const maxDepth = 32

// A node is one value of the frontmatter: a text, a list or a map. Unlike a
// decoded value it still knows how a scalar was written, so that a skill can be
// called 123 or true.
type node struct {
	text   string // of a scalar
	quoted bool   // or otherwise text for certain
	list   []node
	isList bool
	keys   []field
	isMap  bool
}

// A field is one member of a map.
type field struct {
	name  string
	value node
}

// get returns the value of a key, nil when it is missing or null.
func (n *node) get(name string) *node {
	for i := range n.keys {
		if v := &n.keys[i].value; n.keys[i].name == name && !v.isNull() {
			return v
		}
	}
	return nil
}

// split cuts SKILL.md into its frontmatter and the rest. A BOM and CRLF are
// accepted (decision 24), and blanks behind the markers, which YAML allows.
func split(data []byte) (yaml string, err error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	first, rest, found := bytes.Cut(data, []byte("\n"))
	if !isMarker(first) || !found {
		return "", inLine(1, errors.New("no frontmatter: the file must begin with a line ---, then name and description, then a line ---"))
	}
	for at := 0; at <= len(rest); {
		line, _, more := bytes.Cut(rest[at:], []byte("\n"))
		if isMarker(line) {
			if at > maxFrontmatter {
				break
			}
			return strings.ReplaceAll(string(rest[:at]), "\r\n", "\n"), nil
		}
		if !more || at > maxFrontmatter {
			break
		}
		at += len(line) + 1
	}
	return "", inLine(1, fmt.Errorf("the frontmatter does not end: a line --- is missing in the first %d KB", maxFrontmatter>>10))
}

func isMarker(line []byte) bool { return string(bytes.TrimRight(line, " \t\r")) == "---" }

// parseYAML reads frontmatter as YAML 1.2, without anchors, aliases and tags:
// hosts of the skills extension refuse those, and a value that seems to be one
// is text such as "*important*".
func parseYAML(text string) (root node, err error) {
	// The library is not ours and the text is anybody's.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("not readable: %v", p)
		}
	}()
	if !utf8.ValidString(text) {
		return node{}, errors.New("not valid UTF-8")
	}
	if deep(text) {
		return node{}, errTooDeep
	}
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return node{}, located(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if body != nil && doc.Body != nil {
			return node{}, errors.New("more than one YAML document")
		}
		body = doc.Body
	}
	if body == nil {
		return node{isMap: true}, nil
	}
	if root, err = convert(body, 0); err != nil {
		return node{}, err
	}
	if !root.isMap {
		return node{}, errors.New(`not a list of "key: value" lines`)
	}
	return root, nil
}

var errTooDeep = fmt.Errorf("nested more than %d levels deep", maxDepth)

// deep reports brackets that are nested too deep, for which the parser takes time
// that grows with their square. Brackets in texts count too; who has that many
// does not mean YAML.
func deep(text string) bool {
	depth := 0
	for _, c := range []byte(text) {
		switch c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return true
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return false
}

// located words an error of the library with the line in SKILL.md, whose first
// line is the marker.
func located(err error) error {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil || at.GetToken().Position == nil {
		return errors.New("not valid YAML")
	}
	line := at.GetToken().Position.Line + 1
	return inLine(line, fmt.Errorf("line %d: not valid YAML: %s", line, at.GetMessage()))
}

// A lineError is an error in a line of SKILL.md, from 1. Its text need not say so.
type lineError struct {
	error
	line int
}

func (e *lineError) Unwrap() error { return e.error }

func inLine(line int, err error) error { return &lineError{err, line} }

// inEntry is an error of the value of a key in the frontmatter.
func inEntry(text, key string, err error) error {
	for i, line := range strings.Split(text, "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \"'"), key); ok && strings.HasPrefix(strings.TrimLeft(rest, " \"'"), ":") {
			return inLine(i+2, err)
		}
	}
	return inLine(1, err)
}

func convert(n ast.Node, depth int) (node, error) {
	if depth > maxDepth {
		return node{}, errTooDeep
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return convertMap(n.Values, depth)
	case *ast.MappingValueNode:
		return convertMap([]*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out := node{isList: true}
		for _, v := range n.Values {
			item, err := convert(v, depth+1)
			if err != nil {
				return node{}, err
			}
			out.list = append(out.list, item)
		}
		return out, nil
	case *ast.LiteralNode:
		return node{text: n.Value.Value, quoted: true}, nil
	case *ast.StringNode:
		t := n.GetToken()
		return node{text: n.Value, quoted: strings.HasSuffix(t.Type.String(), "Quote")}, nil
	case *ast.NullNode:
		return node{}, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node{text: n.GetToken().Value}, nil
	}
	line := n.GetToken().Position.Line + 1
	return node{}, inLine(line, fmt.Errorf("line %d: anchors, aliases and tags are not read; put the value in quotes", line))
}

func convertMap(values []*ast.MappingValueNode, depth int) (node, error) {
	out := node{isMap: true}
	for _, v := range values {
		key, err := convert(v.Key, depth)
		if err != nil {
			return node{}, err
		}
		value, err := convert(v.Value, depth+1)
		if err != nil {
			return node{}, err
		}
		if err := out.add(key.text, value); err != nil {
			return node{}, err
		}
	}
	return out, nil
}

func (n *node) add(name string, value node) error {
	for _, f := range n.keys {
		if f.name == name {
			return fmt.Errorf("%q is there twice; keep one", name)
		}
	}
	n.keys = append(n.keys, field{name, value})
	return nil
}

// The scalars of YAML's core schema (YAML 1.2.2, 10.3.2) that are not text.
var (
	isInteger = core.Regexp(`^[-+]?[0-9]+$`)
	isBased   = core.Regexp(`^0(?:o[0-7]+|x[0-9a-fA-F]+)$`)
	isFloat   = core.Regexp(`^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$`)
	isSpecial = core.Regexp(`^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
)

// isNull reports whether n is a scalar without a value. The word null counts as
// text for who asks for text, and as null in JSON.
func (n *node) isNull() bool { return !n.isList && !n.isMap && !n.quoted && n.text == "" }

// scalar is the value of a scalar that is not quoted, as JSON has it.
func scalar(text string) (any, error) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil, nil
	case "true", "True", "TRUE":
		return true, nil
	case "false", "False", "FALSE":
		return false, nil
	}
	switch {
	case isInteger().MatchString(text), isFloat().MatchString(text):
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%q is no number that JSON has; put it in quotes", text)
		}
		return f, nil
	case isBased().MatchString(text):
		i, err := strconv.ParseUint(text, 0, 53)
		if err != nil {
			return nil, fmt.Errorf("%q is too large a number; put it in quotes", text)
		}
		return i, nil
	case isSpecial().MatchString(text):
		return nil, fmt.Errorf("%q is no number that JSON has; put it in quotes", text)
	}
	return text, nil
}

// json is the value as every reader of YAML 1.2 has it.
func (n *node) json() (json.RawMessage, error) {
	switch {
	case n.isMap:
		members := make([]rawjson.Member, len(n.keys))
		for i := range n.keys {
			value, err := n.keys[i].value.json()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n.keys[i].name, err)
			}
			members[i] = rawjson.Member{Name: n.keys[i].name, Value: value}
		}
		return rawjson.JoinMembers(members), nil
	case n.isList:
		items := make([]json.RawMessage, len(n.list))
		for i := range n.list {
			item, err := n.list[i].json()
			if err != nil {
				return nil, err
			}
			items[i] = item
		}
		return rawjson.JoinElements(items), nil
	case n.quoted:
		return rawjson.Marshal(n.text)
	}
	v, err := scalar(n.text)
	if err != nil {
		return nil, err
	}
	return rawjson.Marshal(v)
}
