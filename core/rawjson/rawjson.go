// Package rawjson reads and writes JSON text without decoding it into Go values.
//
// A server that relays other servers' results, and checks arguments of many
// kilobytes, must not pay for (or lose anything in) a round trip through Go
// maps: big integers, key order, duplicate keys and odd escapes stay as they
// were sent. The functions that read expect text that json.Valid accepts. Of
// other text they check the object or array itself, and of what lies in its
// values no more than where it ends.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/bits"
	"slices"
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
	i = skipSpace(raw, i+1)
	for more := i < len(raw) && raw[i] != shut; more; {
		var name string
		if open == '{' {
			end := valueEnd(raw, i)
			text, ok := Unquote(raw[i:max(i, end)])
			if i = skipSpace(raw, end); !ok || i >= len(raw) || raw[i] != ':' {
				return ErrMalformed
			}
			name, i = text, skipSpace(raw, i+1)
		}
		end := valueEnd(raw, i)
		if end < 0 {
			return ErrMalformed
		}
		f(name, raw[i:end:end])
		if i = skipSpace(raw, end); i < len(raw) && raw[i] == ',' {
			i = skipSpace(raw, i+1)
		} else {
			more = false
		}
	}
	if i >= len(raw) || raw[i] != shut || skipSpace(raw, i+1) < len(raw) {
		return ErrMalformed
	}
	return nil
}

// Unquote decodes a JSON string; false for what is none.
func Unquote(raw []byte) (string, bool) {
	if KindOf(raw) != String {
		return "", false
	}
	if n := len(raw); plainEnd(raw, 1) == n-1 {
		return string(raw[1 : n-1]), true
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// JoinMembers is the inverse of [Members]: an object without insignificant blanks.
func JoinMembers(members []Member) json.RawMessage { return AppendMembers(nil, members) }

// AppendMembers appends to dst what [JoinMembers] gives.
func AppendMembers(dst []byte, members []Member) []byte {
	size := 2
	for _, m := range members {
		size += len(m.Name) + len(m.Value) + 4
	}
	dst = append(slices.Grow(dst, size), '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, m.Name), ':')
		dst = append(dst, m.Value...)
	}
	return append(dst, '}')
}

// JoinElements is the inverse of [Elements].
func JoinElements(elements []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

// skipSpace gives the index of the first byte from i on that is no white space.
// It takes a negative index, which means that there is nothing, for the end.
func skipSpace(raw []byte, i int) int {
	if i < 0 {
		return len(raw)
	}
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// valueEnd gives the index behind the value that starts at i, or -1. Strings are
// crossed with IndexByte, so a long text costs next to nothing.
func valueEnd(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			if i = stringEnd(raw, i); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
			if depth < 0 {
				return -1
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return -1
			}
			i++
			continue
		default:
			i = scalarEnd(raw, i)
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// scalarEnd gives the index behind the number or literal that starts at i.
func scalarEnd(raw []byte, i int) int {
	for ; i < len(raw); i++ {
		switch raw[i] {
		case ',', ':', ']', '}', '[', '{', '"', ' ', '\t', '\r', '\n':
			return i
		}
	}
	return i
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
	dst = append(slices.Grow(dst, len(s)+2), '"')
	start := 0 // of what is not in dst yet
	for i := plainEnd(s, 0); i < len(s); i = plainEnd(s, i) {
		c := s[i]
		switch {
		case c < utf8.RuneSelf:
			dst = appendEscape(append(dst, s[start:i]...), c)
			i++
			start = i
		case eastAsian(s, i):
			for i += 3; eastAsian(s, i); i += 3 {
			}
		default:
			r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			dst = append(dst, s[start:i]...)
			if r == '\u2028' || r == '\u2029' { // valid, but a line end to old JavaScript parsers
				dst = append(dst, '\\', 'u', '2', '0', '2', hex[r&0xf])
			} else {
				dst = utf8.AppendRune(dst, r)
			}
			i += size
			start = i
		}
	}
	return append(append(dst, s[start:]...), '"')
}

// eastAsian reports whether a character of three bytes is at i that begins with
// E3 to EF, as most in that part of the world do. Nothing among them is special,
// except behind ED, where the surrogates are.
func eastAsian[T ~string | ~[]byte](s T, i int) bool {
	return i+3 <= len(s) && s[i]-0xe3 <= 0xef-0xe3 && s[i] != 0xed && s[i+1]&0xc0 == 0x80 && s[i+2]&0xc0 == 0x80
}

// plainEnd gives the index of the first byte from i on that is not plain. It
// looks at eight bytes at once. In the top bit of each byte a subtraction tells
// whether a byte below 0x80 is less than what is subtracted; what is borrowed from
// the bytes above spoils only those, and the first one counts.
func plainEnd[T ~string | ~[]byte](s T, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		quote, slash := w^ones*'"', w^ones*'\\'
		if special := (w | (w - ones*' ') | (quote - ones) | (slash - ones)) & high; special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for i < len(s) && plain(s[i]) {
		i++
	}
	return i
}

// plain reports whether a byte is ASCII and needs no escape in a JSON string.
func plain(c byte) bool { return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' }

// escapes are the letters that stand behind a backslash for a byte.
var escapes = [utf8.RuneSelf]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't'}

func appendEscape(dst []byte, c byte) []byte {
	if e := escapes[c]; e != 0 {
		return append(dst, '\\', e)
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
