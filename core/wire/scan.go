package wire

import (
	"encoding/binary"
	"math/bits"
)

// maxDepth is how deep objects and arrays may nest. It is go-sdk's limit too:
// what is deeper would be refused later, there by ending the session.
const maxDepth = 1000

// A scanner validates JSON text by RFC 8259 and finds where values end, in one
// pass and without allocating. encoding/json's Valid does the first half in two
// to three times the time, and go-sdk's decoder passes over a frame four times.
type scanner struct {
	b    []byte
	at   int    // where the text stopped being JSON
	what string // what is wrong there
}

// fail records the error and returns -1, the index that means one.
func (s *scanner) fail(at int, what string) int {
	s.at, s.what = at, what
	return -1
}

// space returns the index of the first byte from i on that is not white space.
func (s *scanner) space(i int) int {
	for i < len(s.b) && isSpace(s.b[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// value returns the index after the value that starts at i. depth is the number
// of objects and arrays around it.
func (s *scanner) value(i, depth int) int {
	if i >= len(s.b) {
		return s.fail(i, "unexpected end")
	}
	switch c := s.b[i]; c {
	case '"':
		return s.str(i + 1)
	case '{':
		return s.object(i+1, depth+1)
	case '[':
		return s.array(i+1, depth+1)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	default:
		return s.number(i)
	}
}

func (s *scanner) literal(i int, word string) int {
	if end := i + len(word); end <= len(s.b) && string(s.b[i:end]) == word {
		return end
	}
	return s.fail(i, "no JSON value")
}

// object returns the index after the object whose first byte after the brace is
// at i.
func (s *scanner) object(i, depth int) int {
	if depth > maxDepth {
		return s.fail(i-1, tooDeep)
	}
	if i = s.space(i); i < len(s.b) && s.b[i] == '}' {
		return i + 1
	}
	for {
		if i = s.key(i); i < 0 {
			return -1
		}
		if i = s.value(i, depth); i < 0 {
			return -1
		}
		var end bool
		if i, end = s.next(i, '}'); i < 0 || end {
			return i
		}
	}
}

// array is object for arrays.
func (s *scanner) array(i, depth int) int {
	if depth > maxDepth {
		return s.fail(i-1, tooDeep)
	}
	if i = s.space(i); i < len(s.b) && s.b[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth); i < 0 {
			return -1
		}
		var end bool
		if i, end = s.next(i, ']'); i < 0 || end {
			return i
		}
	}
}

const tooDeep = "nesting deeper than 1000"

// key passes over a member's name and colon and returns where its value starts.
func (s *scanner) key(i int) int {
	if i >= len(s.b) || s.b[i] != '"' {
		return s.fail(i, "expected a member's name")
	}
	if i = s.str(i + 1); i < 0 {
		return -1
	}
	if i = s.space(i); i >= len(s.b) || s.b[i] != ':' {
		return s.fail(i, "expected ':'")
	}
	return s.space(i + 1)
}

// next passes over what follows an element: a comma, and then it returns where
// the next element starts, or the closing bracket, and then end is true.
func (s *scanner) next(i int, closing byte) (_ int, end bool) {
	i = s.space(i)
	switch {
	case i >= len(s.b):
		return s.fail(i, "unexpected end"), false
	case s.b[i] == ',':
		return s.space(i + 1), false
	case s.b[i] == closing:
		return i + 1, true
	}
	return s.fail(i, "expected ',' or the end of the "+container(closing)), false
}

func container(closing byte) string {
	if closing == '}' {
		return "object"
	}
	return "array"
}

// str returns the index after the closing quote of the string whose first byte
// is at i. It looks at eight bytes at a time, which beats bytes.IndexByte here:
// text in JSON has an escape every line or so, and control characters, which
// JSON does not allow, would need a pass of their own.
func (s *scanner) str(i int) int {
	b := s.b
	for {
		for i+8 <= len(b) {
			m := special(binary.LittleEndian.Uint64(b[i:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if i >= len(b) {
			return s.fail(len(b), "unterminated string")
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = s.escape(i + 1); i < 0 {
				return -1
			}
		case c < ' ':
			return s.fail(i, "control character in a string")
		default: // one of the last seven bytes
			i++
		}
	}
}

// special returns a word in which the lowest set bit is in the lowest byte of x
// that is a quote, a backslash or a control character; 0 if there is none.
// Borrows can set bits above a true hit, never below one.
func special(x uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := x^ones*'"', x^ones*'\\'
	return ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// escape returns the index after the escape whose first byte after the backslash
// is at i.
func (s *scanner) escape(i int) int {
	if i >= len(s.b) {
		return s.fail(i, "unterminated string")
	}
	switch s.b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		for j := i + 1; j <= i+4; j++ {
			if j >= len(s.b) || !isHex(s.b[j]) {
				return s.fail(i, "bad \\u escape in a string")
			}
		}
		return i + 5
	}
	return s.fail(i, "bad escape in a string")
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number returns the index after the number that starts at i.
func (s *scanner) number(i int) int {
	b, start := s.b, i
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b) || !isDigit(b[i]):
		return s.fail(start, "no JSON value")
	case b[i] == '0':
		i++
	default:
		i = s.digits(i)
	}
	if i < len(b) && b[i] == '.' {
		if i = s.digits(i + 1); !isDigit(b[i-1]) {
			return s.fail(start, "bad number")
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i = s.digits(i); !isDigit(b[i-1]) {
			return s.fail(start, "bad number")
		}
	}
	return i
}

// digits returns the index of the first byte from i on that is not a digit.
func (s *scanner) digits(i int) int {
	for i < len(s.b) && isDigit(s.b[i]) {
		i++
	}
	return i
}
