package builtin

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// White space as \s means it in JavaScript (ECMA-262, WhiteSpace and
// LineTerminator), and everything else, as the insides of RE2 classes.
const (
	jsSpace    = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	jsNotSpace = `\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}` +
		`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	// Under the flags i and u two more letters are word characters, since they
	// fold to s and k.
	jsFoldedWord    = `\w\x{17f}\x{212a}`
	jsNotFoldedWord = `\x00-/:-@\[-^\x60{-\x{17e}\x{180}-\x{2129}\x{212b}-\x{10ffff}`

	never   = `[^\x00-\x{10ffff}]`
	maxLoop = 1000 // RE2 counts no further
)

// A jsTranslator writes a JavaScript regular expression, of which it is known
// that it is valid, in RE2's words, for texts of one line. Groups are not
// captured.
type jsTranslator struct {
	src     string
	pos     int
	unicode bool // \p{L} and \u{41} mean what they do under the u flag
	groups  int  // capturing groups in all of src
	named   bool // some have names

	out        []byte
	same       jsSameness
	failed     bool // there is something that is not JavaScript
	dotAll     bool
	multiline  bool
	ignoreCase bool
}

// jsSameness is how much a translation is the same as its original.
type jsSameness uint8

const (
	// sameMatch: it matches the same texts in the same places.
	sameMatch jsSameness = iota
	// sameTexts: it matches the same texts, maybe in other places. A loop whose
	// body may be empty goes on in JavaScript until that is not, and ends in RE2.
	sameTexts
	// moreTexts: it matches other texts too. Lookaround is left out, a back
	// reference stands for anything.
	moreTexts
)

func (t *jsTranslator) only(same jsSameness) { t.same = max(t.same, same) }

// newJSTranslator prepares to translate, under the u flag unless that forbids
// something in expr: escapes of letters that mean nothing, or of numbers without
// a group. Other engines than JavaScript's take those for something.
func newJSTranslator(expr string) *jsTranslator {
	t := &jsTranslator{src: expr}
	t.countGroups()
	t.unicode = t.allowsUnicode()
	return t
}

// translate returns the expression in RE2's syntax. ok is false if that cannot
// be.
func (t *jsTranslator) translate() (re2 string, same jsSameness, ok bool) {
	t.disjunction()
	if t.failed || t.pos < len(t.src) {
		return "", 0, false
	}
	return string(t.out), t.same, true
}

func (t *jsTranslator) allowsUnicode() bool {
	for i := 0; i+1 < len(t.src); i++ {
		if t.src[i] != '\\' {
			continue
		}
		i++
		switch c := t.src[i]; {
		case c == 'k' && !t.named:
			return false
		case c >= '0' && c <= '9':
			rest := t.src[i:]
			n, _ := count(rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))])
			if n > t.groups || c == '0' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9' {
				return false
			}
		case isLetter(c) && !strings.ContainsRune("dDwWsSbBfnrtvcxupPk", rune(c)):
			return false
		}
	}
	return true
}

func (t *jsTranslator) countGroups() {
	inClass := false
	for i := 0; i < len(t.src); i++ {
		switch c := t.src[i]; {
		case c == '\\':
			i++
		case inClass:
			inClass = c != ']'
		case c == '[':
			inClass = true
		case c == '(':
			rest := t.src[i+1:]
			name := strings.HasPrefix(rest, "?<") && !strings.HasPrefix(rest, "?<=") && !strings.HasPrefix(rest, "?<!")
			t.named = t.named || name
			if name || !strings.HasPrefix(rest, "?") {
				t.groups++
			}
		}
	}
}

func (t *jsTranslator) more() bool { return t.pos < len(t.src) && !t.failed }

// take moves past prefix if it is next.
func (t *jsTranslator) take(prefix string) bool {
	if !strings.HasPrefix(t.src[t.pos:], prefix) {
		return false
	}
	t.pos += len(prefix)
	return true
}

func (t *jsTranslator) next() rune {
	r, n := utf8.DecodeRuneInString(t.src[t.pos:])
	t.pos += n
	return r
}

func (t *jsTranslator) write(re2 string) { t.out = append(t.out, re2...) }

// literal writes one character. A lone half of a surrogate pair is in no text.
func (t *jsTranslator) literal(r rune) {
	if utf16.IsSurrogate(r) {
		t.write(never)
		return
	}
	t.write(regexp.QuoteMeta(string(r)))
}

// disjunction translates up to the parenthesis that closes the group. It reports
// whether the empty text matches.
func (t *jsTranslator) disjunction() (nullable bool) {
	alternative := true
	for t.more() && t.src[t.pos] != ')' {
		if t.take("|") {
			t.write("|")
			nullable, alternative = nullable || alternative, true
		} else if !t.term() {
			alternative = false
		}
	}
	return nullable || alternative
}

func (t *jsTranslator) term() (nullable bool) {
	switch r := t.next(); r {
	case '^':
		nullable = t.anchor(`\A`)
	case '$':
		nullable = t.anchor(`\z`)
	case '.':
		if t.dotAll {
			t.write(`(?s:.)`)
		} else {
			t.write(`[^\n\r\x{2028}\x{2029}]`)
		}
	case '(':
		nullable = t.group()
	case '[':
		t.class()
	case '\\':
		nullable = t.escape()
	default:
		t.literal(r)
	}
	least, quantified := t.quantifier()
	if quantified && nullable {
		t.only(sameTexts)
	}
	return nullable || least == 0
}

// anchor writes an assertion. With the m flag there may be line ends inside of
// our lines, such as a lone CR, that RE2 does not know.
func (t *jsTranslator) anchor(re2 string) (nullable bool) {
	if t.multiline {
		re2 = `(?:)`
		t.only(moreTexts)
	}
	t.write(re2)
	return true
}

// boundary writes \b or \B.
func (t *jsTranslator) boundary(re2 string) (nullable bool) {
	if t.ignoreCase && t.unicode {
		re2 = `(?:)`
		t.only(moreTexts)
	}
	t.write(re2)
	return true
}

// quantifier translates one, if there is one. Without, least is 1.
func (t *jsTranslator) quantifier() (least int, quantified bool) {
	switch {
	case t.take("*"):
		t.write("*")
	case t.take("+"):
		t.write("+")
		least = 1
	case t.take("?"):
		t.write("?")
	default:
		most, length := 0, 0
		if least, most, length = counts(t.src[t.pos:]); length == 0 {
			return 1, false
		}
		t.pos += length
		if least > maxLoop || most > maxLoop {
			least, most = min(least, maxLoop), -1
			t.only(moreTexts)
		}
		t.write("{" + strconv.Itoa(least) + ",")
		if most >= 0 {
			t.write(strconv.Itoa(most))
		}
		t.write("}")
	}
	if t.take("?") {
		t.write("?")
	}
	return least, true
}

// counts reads {3}, {3,} or {3,5}: most is -1 for no limit, length is 0 if text
// begins with none of them and the brace stands for itself.
func counts(text string) (least, most, length int) {
	inside, _, found := strings.Cut(strings.TrimPrefix(text, "{"), "}")
	if !found || text[0] != '{' {
		return 0, 0, 0
	}
	low, high, two := strings.Cut(inside, ",")
	least, ok := count(low)
	most = least
	if two && high == "" {
		most = -1
	} else if two && ok {
		most, ok = count(high)
	}
	if !ok {
		return 0, 0, 0
	}
	return least, most, len(inside) + 2
}

func count(digits string) (n int, ok bool) {
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), maxLoop+1)
	}
	return n, digits != ""
}

// group translates (...), the parenthesis being read. Flags that are set inside
// end with it.
func (t *jsTranslator) group() (nullable bool) {
	start := len(t.out)
	dotAll, multiline, ignoreCase := t.dotAll, t.multiline, t.ignoreCase
	around := t.take("?=") || t.take("?!") || t.take("?<=") || t.take("?<!")
	switch {
	case around || t.take("?:"):
		t.write("(?:")
	case t.take("?<"):
		t.name()
		t.write("(?:")
	case t.take("?"):
		if t.flags(); t.take(")") { // (?i), for the rest of the group around it
			t.write(")")
			return true
		} else if !t.take(":") {
			t.failed = true
		}
		t.write(":")
	default:
		t.write("(?:")
	}
	nullable = t.disjunction() || around
	t.dotAll, t.multiline, t.ignoreCase = dotAll, multiline, ignoreCase
	t.failed = t.failed || !t.take(")")
	t.write(")")
	if around {
		t.out = append(t.out[:start], "(?:)"...)
		t.only(moreTexts)
	}
	return nullable
}

// name moves past the rest of <name>.
func (t *jsTranslator) name() {
	_, rest, found := strings.Cut(t.src[t.pos:], ">")
	t.pos = len(t.src) - len(rest)
	t.failed = t.failed || !found
}

// flags translates the letters of (?im-s: up to the colon. Only i is RE2's too;
// what the others change is written out.
func (t *jsTranslator) flags() {
	t.write("(?")
	for on := true; t.more() && !strings.ContainsRune(":)", rune(t.src[t.pos])); {
		switch t.next() {
		case '-':
			on = false
		case 'i':
			if !on {
				t.write("-")
			}
			t.write("i")
			t.ignoreCase = on
			t.failed = t.failed || !t.unicode // without the flag u letters fold in another way
		case 's':
			t.dotAll = on
		case 'm':
			t.multiline = on
		default:
			t.failed = true
		}
	}
}

// escape translates what follows a backslash outside of a class.
func (t *jsTranslator) escape() (nullable bool) {
	rest := t.src[t.pos:]
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	n, numbered := count(digits)
	switch set := t.set(); {
	case set != "":
		t.write("[" + set + "]")
	case t.take("b"):
		return t.boundary(`\b`)
	case t.take("B"):
		return t.boundary(`\B`)
	case t.named && t.take("k<"):
		t.name()
		return t.backReference()
	case numbered && digits[0] != '0' && n <= t.groups:
		t.pos += len(digits)
		return t.backReference()
	default:
		t.literal(t.character())
	}
	return false
}

func (t *jsTranslator) backReference() (nullable bool) {
	t.write(`(?:(?s:.*))`)
	t.only(moreTexts)
	return true
}

// set moves past an escape that stands for many characters, and returns it as
// the inside of a class; "" if there is none.
func (t *jsTranslator) set() string {
	folded := t.ignoreCase && t.unicode
	switch {
	case folded && t.take("w"):
		return jsFoldedWord
	case folded && t.take("W"):
		return jsNotFoldedWord
	case t.take("d"):
		return `0-9`
	case t.take("D"):
		return `\D`
	case t.take("w"):
		return `\w`
	case t.take("W"):
		return `\W`
	case t.take("s"):
		return jsSpace
	case t.take("S"):
		return jsNotSpace
	case t.unicode && (t.take("p{") || t.take("P{")):
		letter := t.src[t.pos-2 : t.pos-1]
		property, rest, _ := strings.Cut(t.src[t.pos:], "}")
		t.pos = len(t.src) - len(rest)
		// Go takes categories and scripts by their names alone. What it does
		// not know does not compile and is left to the other engine.
		for _, key := range []string{"Script=", "sc=", "General_Category=", "gc="} {
			property = strings.TrimPrefix(property, key)
		}
		return `\` + letter + `{` + property + `}`
	}
	return ""
}

// character moves past an escape that stands for one character.
func (t *jsTranslator) character() rune {
	start := t.pos
	switch r := t.next(); r {
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	case 'x':
		if n, ok := t.hex(2); ok {
			return n
		}
		return r
	case 'u':
		return t.codePoint()
	case 'c':
		if t.more() && isLetter(t.src[t.pos]) {
			return t.next() & 31
		}
		t.pos = start // the backslash is what is meant
		return '\\'
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n := r - '0'
		for t.more() && t.src[t.pos] >= '0' && t.src[t.pos] <= '7' && n*8+rune(t.src[t.pos]-'0') <= 0o377 && t.pos-start < 3 {
			n = n*8 + t.next() - '0'
		}
		return n
	default:
		return r
	}
}

// hex moves past so many hexadecimal digits, if they are there.
func (t *jsTranslator) hex(digits int) (rune, bool) {
	if t.pos+digits > len(t.src) {
		return 0, false
	}
	n, err := strconv.ParseUint(t.src[t.pos:t.pos+digits], 16, 32)
	if err != nil {
		return 0, false
	}
	t.pos += digits
	return rune(n), true
}

// codePoint reads what follows \u. Two halves of a pair are one character where
// characters are code points.
func (t *jsTranslator) codePoint() rune {
	if t.unicode && t.take("{") {
		digits, rest, _ := strings.Cut(t.src[t.pos:], "}")
		t.pos = len(t.src) - len(rest)
		n, err := strconv.ParseUint(digits, 16, 32)
		t.failed = t.failed || err != nil || n > utf8.MaxRune
		return rune(n)
	}
	high, ok := t.hex(4)
	if !ok {
		return 'u'
	}
	after := t.pos
	if t.unicode && utf16.IsSurrogate(high) && t.take(`\u`) {
		if low, ok := t.hex(4); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r
			}
		}
		t.pos = after
	}
	return high
}
