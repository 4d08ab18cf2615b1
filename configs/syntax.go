package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"zenmcp/core"
)

// unreadable finds what the parser must not be given.
func (s *source) unreadable() (offset int, err error) {
	if bytes.HasPrefix(s.text, []byte("\xff\xfe")) || bytes.HasPrefix(s.text, []byte("\xfe\xff")) {
		return 0, errors.New("is UTF-16 text; save it as UTF-8")
	}
	for i := 0; i < len(s.text); {
		r, size := utf8.DecodeRune(s.text[i:])
		if r == utf8.RuneError && size == 1 {
			return i, errors.New("this is not UTF-8 text; save the file as UTF-8")
		}
		i += size
	}
	if len(bytes.TrimSpace(s.text)) == 0 {
		return 0, errors.New("the file is empty; {} is an empty configuration")
	}
	// The parser calls itself for every level, and a stack has an end.
	if open, _ := s.open(maxDepth); len(open) > maxDepth {
		return open[maxDepth], fmt.Errorf("more than %d lists and objects lie in each other here", maxDepth)
	}
	return 0, nil
}

// open lists the offsets of the brackets that are not closed at the end of the
// text, or where they become more than limit, and of what else is not closed
// there: a string or a comment, else -1.
func (s *source) open(limit int) (brackets []int, other int) {
	t := s.text
	for i := 0; i < len(t) && len(brackets) <= limit; i++ {
		switch t[i] {
		case '{', '[':
			brackets = append(brackets, i)
		case '}', ']':
			brackets = brackets[:max(0, len(brackets)-1)]
		case '"', '/':
			end := skipOpaque(t, i)
			if end < 0 {
				return brackets, i
			}
			i = end - 1
		}
	}
	return brackets, -1
}

// skipOpaque gives the index behind the string or comment that starts at i, or
// -1 when it does not end.
func skipOpaque(t []byte, i int) int {
	rest := t[i:]
	switch {
	case rest[0] == '"':
		for j := 1; j < len(rest); j++ {
			switch rest[j] {
			case '\\':
				j++
			case '"':
				return i + j + 1
			}
		}
		return -1
	case bytes.HasPrefix(rest, []byte("//")):
		if n := bytes.IndexByte(rest, '\n'); n >= 0 {
			return i + n
		}
		return len(t)
	case bytes.HasPrefix(rest, []byte("/*")):
		if n := bytes.Index(rest[2:], []byte("*/")); n >= 0 {
			return i + 2 + n + 2
		}
		return -1
	}
	return i + 1
}

// parserError is how the parser says where it stopped; columns are bytes.
var parserError = core.Regexp(`^hujson: line (\d+), column (\d+): `)

// syntax turns the parser's error into a located one, in words for somebody who
// has the file open.
func (s *source) syntax(err error) *Problem {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		offset, err := s.explainEnd()
		return s.problem(offset, nil, err)
	}
	found := parserError().FindStringSubmatch(err.Error())
	if found == nil {
		return s.problem(0, nil, err)
	}
	line, _ := strconv.Atoi(found[1])
	column, _ := strconv.Atoi(found[2])
	offset := 0
	for ; line > 1; line-- {
		offset += bytes.IndexByte(s.text[offset:], '\n') + 1
	}
	offset, err = s.explain(offset+column-1, errors.Unwrap(err))
	return s.problem(offset, nil, err)
}

func (s *source) explain(offset int, err error) (int, error) {
	switch c := s.text[offset]; {
	case c == '\'' || c == '`':
		return offset, fmt.Errorf("unexpected %c; text and names stand in double quotes", c)
	case !strings.HasPrefix(err.Error(), "invalid literal"):
		return offset, err
	case c == '"':
		return s.explainString(offset)
	case '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.':
		return offset, errors.New("this is not a number as JSON writes it")
	}
	return offset, errors.New("this is no JSON value; text and names stand in double quotes")
}

// explainEnd is for files that stop too early.
func (s *source) explainEnd() (int, error) {
	offset := len(s.text)
	brackets, other := s.open(maxDepth)
	switch {
	case other >= 0 && s.text[other] == '"':
		return other, errors.New("this text has no closing quote")
	case other >= 0:
		return other, errors.New("this comment is not closed")
	case len(brackets) > 0:
		at := brackets[len(brackets)-1]
		return offset, fmt.Errorf("the file ends here, but the %c in line %d is not closed",
			s.text[at], s.problem(at, nil, nil).Line)
	}
	return offset, errors.New("the file ends here, but a value is missing")
}

// explainString finds what is wrong in the string at offset, whose content is
// not repeated: it may be a key.
func (s *source) explainString(offset int) (int, error) {
	for i := offset + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			return offset, errors.New("this text is not a valid JSON string")
		case c == '\n' || c == '\r':
			return offset, errors.New(`this text has no closing quote on its line; a line end within text is written \n`)
		case c < ' ':
			return i, fmt.Errorf(`the control character %#02x within text is written \u%04x`, c, c)
		case c == '\\':
			i++
			if i < len(s.text) && !bytes.ContainsRune([]byte(`"\/bfnrtu`), rune(s.text[i])) {
				return i - 1, errors.New(`a single backslash means nothing here; one that belongs to the text, as in a path, is written \\`)
			}
			if i < len(s.text) && s.text[i] == 'u' && !hexDigits(s.text[i+1:]) {
				return i - 1, errors.New(`\u needs four hexadecimal digits; a backslash that belongs to the text, as in a path, is written \\`)
			}
		}
	}
	return offset, errors.New("this text has no closing quote")
}

func hexDigits(t []byte) bool {
	if len(t) < 4 {
		return false
	}
	_, err := strconv.ParseUint(string(t[:4]), 16, 16)
	return err == nil
}
