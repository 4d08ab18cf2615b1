package builtin

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"golang.org/x/text/encoding/unicode"

	"zenmcp/core"
)

const (
	// maxRegexLength bounds an expression in bytes.
	maxRegexLength = 10_000
	// maxBacktracking is how long one file may take when RE2 cannot do the
	// expression.
	maxBacktracking = time.Second
)

// A lineExpression says which lines are wanted. It does not change.
type lineExpression struct {
	text   []byte // the line holds it; or
	js     string // the line matches it, with
	flags  regexp2.RegexOptions
	re     *regexp.Regexp // nil, or what matches the same lines and, if
	same   jsSameness     // is sameMatch, in the same places
	filter *syntax.Prog   // nil, or what matches those lines at least

	needles []needle // empty, or every match holds one of them
}

// textExpression wants lines that hold text.
func textExpression(text string) (*lineExpression, error) {
	if strings.Contains(text, "\n") {
		return nil, fmt.Errorf("text %q holds a line break, and lines are searched one by one; search for one of its lines", core.Clip(text, 80))
	}
	return &lineExpression{text: []byte(text), needles: []needle{newNeedle(text)}}, nil
}

// regexExpression wants lines that match a JavaScript expression without flags.
// It is read as under the u flag where it is valid there, so that a character is
// a code point and \p{L} a letter, and otherwise as without.
func regexExpression(expr string) (*lineExpression, error) {
	if len(expr) > maxRegexLength {
		return nil, fmt.Errorf("the regex has %d bytes, and %d is the limit; use several calls", len(expr), maxRegexLength)
	}
	t := newJSTranslator(expr)
	e := &lineExpression{js: expr, flags: regexp2.ECMAScript | regexp2.Unicode}
	if _, err := regexp2.Compile(expr, e.flags); err != nil || !t.unicode {
		t.unicode, e.flags = false, regexp2.ECMAScript
		if _, err := regexp2.Compile(expr, e.flags); err != nil {
			reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
			return nil, fmt.Errorf("regex: %s; it must be a JavaScript regular expression, and text is the argument for plain text", core.Clip(reason, 300))
		}
	}
	translated, same, ok := t.translate()
	if !ok {
		return e, nil
	}
	e.same = same
	parsed, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return e, nil // too big for RE2, or a property that it does not know
	}
	e.needles = needlesOf(parsed)
	if e.filter, err = syntax.Compile(parsed.Simplify()); err != nil {
		return nil, err
	}
	if same != moreTexts {
		e.re, err = regexp.Compile(translated)
	}
	return e, err
}

// A lineFinder looks for an expression's lines. It serves one goroutine.
type lineFinder struct {
	*lineExpression
	dfa      *lineDFA
	js       *regexp2.Regexp
	deadline time.Time // of js, for the file
	runes    []rune
	ahead    []int // where the needles are next in the buffer; its length if nowhere
}

func (e *lineExpression) finder() *lineFinder {
	f := &lineFinder{lineExpression: e, ahead: make([]int, len(e.needles))}
	if e.filter != nil {
		f.dfa = newLineDFA(e.filter)
	}
	if e.text == nil && (e.re == nil || e.same != sameMatch) {
		f.js = regexp2.MustCompile(e.js, e.flags)
	}
	return f
}

// begin starts the time that a file may take.
func (f *lineFinder) begin() {
	if f.js != nil {
		f.deadline = time.Now().Add(maxBacktracking)
	}
}

// A foundLine is a line with what matched in it.
type foundLine struct {
	start, end int    // in the buffer, without the LF
	text       []byte // without a CR at its end; valid UTF-8
	from, to   int    // of the match in text
}

// next finds the first wanted line from the line on that begins at from. The
// buffer holds whole lines, and is asked about from its beginning on. What is not
// UTF-8 counts, and reads, as U+FFFD, as in readFile.
func (f *lineFinder) next(buf []byte, from int) (line foundLine, ok bool, err error) {
	for from < len(buf) {
		at := f.candidate(buf, from)
		if at < 0 {
			break
		}
		line.start = from + bytes.LastIndexByte(buf[from:at], '\n') + 1
		line.end = len(buf)
		if n := bytes.IndexByte(buf[at:], '\n'); n >= 0 {
			line.end = at + n
		}
		from = line.end + 1
		whole := buf[line.start:line.end]
		if len(f.needles) > 0 && f.dfa != nil && f.dfa.find(whole, 0) < 0 {
			continue
		}
		line.text = bytes.TrimSuffix(whole, []byte("\r"))
		if !utf8.Valid(line.text) {
			if line.text, err = unicode.UTF8.NewDecoder().Bytes(line.text); err != nil {
				return line, false, err
			}
		}
		line.from, line.to, err = f.match(line.text)
		if err != nil || line.from >= 0 {
			return line, err == nil, err
		}
	}
	return foundLine{}, false, nil
}

// candidate returns a position in, or at the end of, the next line that may be
// wanted, -1 if there is none.
func (f *lineFinder) candidate(buf []byte, from int) int {
	switch {
	case len(f.needles) > 0:
		return f.needle(buf, from)
	case f.dfa != nil:
		return f.dfa.find(buf, from)
	}
	return from
}

// needle returns the position of the next needle, -1 if there is none.
func (f *lineFinder) needle(buf []byte, from int) int {
	next := len(buf)
	for i := range f.needles {
		if at := f.ahead[i]; from == 0 || at < from {
			f.ahead[i] = len(buf)
			if n := f.needles[i].index(buf[from:]); n >= 0 {
				f.ahead[i] = from + n
			}
		}
		next = min(next, f.ahead[i])
	}
	if next == len(buf) {
		return -1
	}
	return next
}

// match returns where the expression matches the line first, from < 0 if it does
// not.
func (f *lineFinder) match(line []byte) (from, to int, err error) {
	switch {
	case f.text != nil:
		from = bytes.Index(line, f.text)
		return from, from + len(f.text), nil
	case f.re != nil:
		loc := f.re.FindIndex(line)
		if loc == nil {
			return -1, -1, nil
		}
		if f.js != nil {
			if from, to, err = f.backtrack(line); err == nil {
				return from, to, nil
			}
			f.js = nil // the line is found, and the exact place is not worth more time
		}
		return loc[0], loc[1], nil
	}
	return f.backtrack(line)
}

// backtrack is match with the engine that can do all of JavaScript, and may take
// any time for it.
func (f *lineFinder) backtrack(line []byte) (from, to int, err error) {
	left := time.Until(f.deadline)
	if left <= 0 {
		return -1, -1, skipTooSlow
	}
	f.js.MatchTimeout = left
	f.runes = f.runes[:0]
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRune(line[i:])
		f.runes = append(f.runes, r)
		i += n
	}
	from = -1
	err = f.js.FindRunesMatches(f.runes, 0, func(m regexp2.MatchView) bool {
		start, length, _ := m.GroupRange(0)
		from = len(string(f.runes[:start]))
		to = from + len(string(f.runes[start:start+length]))
		return false
	})
	if err != nil {
		err = skipTooSlow // that, or more memory for its stack than it may have
	}
	return from, to, err
}
