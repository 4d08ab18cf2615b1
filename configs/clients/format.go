package clients

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"zenmcp/configs"
	"zenmcp/core/rawjson"
)

// A format reads files of one syntax.
type format interface {
	// parse reads a text without BOM; empty is a file that holds nothing yet. An
	// error is a [configs.Problem].
	parse(file string, text []byte) (document, error)
}

// A document is a parsed text in which single values can be changed. Whatever is
// not below the path of a change stays as it is, byte by byte.
type document interface {
	// value is the content as encoding/json would decode it. It must not be changed.
	value() map[string]any
	// span is where the value at a path stands: in TOML the lines of a table, in
	// YAML what is behind the colon.
	span(path ...string) (span, bool)
	// set makes a text with the value at the path changed or added. It fails with
	// errStyle where the text is written in a way that leaves no place for it.
	set(value any, path ...string) ([]byte, error)
	// remove makes a text without the value at the path, which is there.
	remove(path ...string) ([]byte, error)
}

// A span is a range of bytes of a text.
type span struct{ start, end int }

// An object is a value to write: members in order. Other values are strings, lists
// of strings, numbers, truth values, and a fragment, which is text of the same
// syntax as a document's span has it.
type object []member

type member struct {
	name  string
	value any
}

type fragment string

// splice puts text in the place of a range of another.
func splice(text []byte, at span, with string) []byte {
	out := make([]byte, 0, len(text)-(at.end-at.start)+len(with))
	out = append(out, text[:at.start]...)
	out = append(out, with...)
	return append(out, text[at.end:]...)
}

// lookup follows a path through a decoded value.
func lookup(value any, path ...string) (any, bool) {
	for _, name := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = m[name]; !ok {
			return nil, false
		}
	}
	return value, true
}

// newline is the line end of a text, by its first line.
func newline(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// lineStart is where the line with an offset begins.
func lineStart(text []byte, offset int) int {
	return bytes.LastIndexByte(text[:offset], '\n') + 1
}

// lineEnd is where the line after that with an offset begins.
func lineEnd(text []byte, offset int) int {
	if n := bytes.IndexByte(text[offset:], '\n'); n >= 0 {
		return offset + n + 1
	}
	return len(text)
}

// indentation is the blank beginning of the line with an offset.
func indentation(text []byte, offset int) string {
	line := text[lineStart(text, offset):offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// problem locates an error at an offset.
func problem(file string, text []byte, offset int, err error) *configs.Problem {
	start := lineStart(text, offset)
	return &configs.Problem{
		File: file, Line: 1 + bytes.Count(text[:start], []byte("\n")), Column: 1 + utf8.RuneCount(text[start:offset]), Err: err,
	}
}

// quoted writes text as JSON does, which YAML and TOML read as well.
func quoted(s string) string { return string(rawjson.AppendString(nil, s)) }

// inline writes a list or a scalar on one line, as all three syntaxes have it.
func inline(value any, scalar func(string) string) string {
	switch v := value.(type) {
	case string:
		return scalar(v)
	case []string:
		parts := make([]string, len(v))
		for i, s := range v {
			parts[i] = scalar(s)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(value)
}
