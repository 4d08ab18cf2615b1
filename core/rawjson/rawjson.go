// Package rawjson reads and writes JSON text without decoding it into Go values.
//
// A server that relays other servers' results, and checks arguments of many
// kilobytes, must not pay for (or lose anything in) a round trip through Go
// maps: big integers, key order, duplicate keys and odd escapes stay as they
// were sent. The functions that read expect text that json.Valid accepts; on
// other text they report malformed rather than guess.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// ErrMalformed reports text that is not the JSON value that was asked for.
var ErrMalformed = errors.New("malformed JSON")

// Kind is the type of a JSON value, named as JSON Schema names it.
type Kind string

// The kinds of JSON values. A number is [Number] whether or not it is whole.
const (
	Object  Kind = "object"
	Array   Kind = "array"
	String  Kind = "string"
	Number  Kind = "number"
	Boolean Kind = "boolean"
	Null    Kind = "null"
	Invalid Kind = ""
)

// KindOf tells the kind of the value that raw starts with.
func KindOf(raw []byte) Kind {
	i := skipSpace(raw, 0)
	if i == len(raw) {
		return Invalid
	}
	switch c := raw[i]; {
	case c == '{':
		return Object
	case c == '[':
		return Array
	case c == '"':
		return String
	case c == 't' || c == 'f':
		return Boolean
	case c == 'n':
		return Null
	case c == '-' || c >= '0' && c <= '9':
		return Number
	}
	return Invalid
}

// A Member is one name and value of an object, in the order of the text.
type Member struct {
	Name  string
	Value json.RawMessage // aliases the text it was read from
}

// Members splits an object into its members. Values alias raw.
func Members(raw []byte) ([]Member, error) {
	var out []Member
	err := each(raw, '{', '}', func(name string, value json.RawMessage) {
		out = append(out, Member{name, value})
	})
	return out, err
}

// Elements splits an array into its elements, which alias raw.
func Elements(raw []byte) ([]json.RawMessage, error) {
	var out []json.RawMessage
	err := each(raw, '[', ']', func(_ string, value json.RawMessage) { out = append(out, value) })
	return out, err
}

// each calls f for every entry of the object or array in raw.
func each(raw []byte, open, shut byte, f func(string, json.RawMessage)) error {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != open {
		return ErrMalformed
	}
	for i = skipSpace(raw, i+1); i < len(raw) && raw[i] != shut; {
		var name string
		if open == '{' {
			end, err := valueEnd(raw, i)
			if err != nil || json.Unmarshal(raw[i:end], &name) != nil {
				return ErrMalformed
			}
			if i = skipSpace(raw, end); i == len(raw) || raw[i] != ':' {
				return ErrMalformed
			}
			i = skipSpace(raw, i+1)
		}
		end, err := valueEnd(raw, i)
		if err != nil {
			return err
		}
		f(name, raw[i:end:end])
		if i = skipSpace(raw, end); i < len(raw) && raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	if i >= len(raw) || len(bytes.TrimSpace(raw[i+1:])) > 0 {
		return ErrMalformed
	}
	return nil
}

// JoinMembers is the inverse of [Members]: an object without insignificant blanks.
func JoinMembers(members []Member) json.RawMessage {
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = AppendString(out, m.Name)
		out = append(out, ':')
		out = append(out, m.Value...)
	}
	return append(out, '}')
}

// JoinElements is the inverse of [Elements].
func JoinElements(elements []json.RawMessage) json.RawMessage {
	out := append([]byte{'['}, bytes.Join(rawSlices(elements), []byte{','})...)
	return append(out, ']')
}

func rawSlices(elements []json.RawMessage) [][]byte {
	out := make([][]byte, len(elements))
	for i, e := range elements {
		out[i] = e
	}
	return out
}

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// valueEnd gives the index behind the value that starts at i. Strings are
// crossed with IndexByte, so a long text costs next to nothing.
func valueEnd(raw []byte, i int) (int, error) {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			end := stringEnd(raw, i)
			if end < 0 {
				return 0, ErrMalformed
			}
			if i = end; depth == 0 {
				return i, nil
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return 0, ErrMalformed
			}
			if depth == 0 {
				return i + 1, nil
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return 0, ErrMalformed
			}
		default:
			i = scalarEnd(raw, i)
			if depth == 0 {
				return i, nil
			}
			continue
		}
		i++
	}
	return 0, ErrMalformed
}

// scalarEnd gives the index behind the number or literal that starts at i.
func scalarEnd(raw []byte, i int) int {
	if n := bytes.IndexAny(raw[i:], ",:]}[{\" \t\r\n"); n > 0 {
		return i + n
	}
	return len(raw)
}

// stringEnd gives the index behind the string that starts at i, or -1.
func stringEnd(raw []byte, i int) int {
	for j := i + 1; ; {
		n := bytes.IndexByte(raw[j:], '"')
		if n < 0 {
			return -1
		}
		j += n
		slashes := 0
		for raw[j-1-slashes] == '\\' {
			slashes++
		}
		if j++; slashes%2 == 0 {
			return j
		}
	}
}

const hex = "0123456789abcdef"

// AppendString appends s to dst as a JSON string. Unlike encoding/json it does
// not escape <, > and &, which would only make code longer on the wire. Bytes
// that are not UTF-8 become U+FFFD.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, s[start:i]...), "\ufffd"...)
			start = i + size
		case r == '\u2028' || r == '\u2029':
			// Valid JSON, but a line end to old JavaScript parsers.
			dst = append(append(dst, s[start:i]...), `\u202`...)
			dst = append(dst, hex[r&0xf])
			start = i + size
		}
		i += size
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
}

// Marshal is encoding/json's Marshal without HTML escaping and without blanks.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
