package builtin

import (
	"strconv"
	"unicode/utf16"
)

// This file translates the character classes of JavaScript's expressions; the rest
// of the translation is in jsregexp.go.

// class translates [...], the bracket being read.
func (t *jsTranslator) class() {
	open := "["
	if t.take("^") {
		open = "[^"
	}
	t.write(open)
	empty := len(t.out)
	for t.more() && t.src[t.pos] != ']' {
		low, set := t.member()
		if rest := t.src[t.pos:]; len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
			t.members(low, low, set)
			continue
		}
		t.pos++
		high, other := t.member()
		if set+other == "" {
			t.members(low, high, "")
			continue
		}
		t.members(low, low, set)
		t.members('-', '-', "")
		t.members(high, high, other)
	}
	t.failed = t.failed || !t.take("]")
	if len(t.out) > empty {
		t.write("]")
		return
	}
	t.out = t.out[:empty-len(open)]
	if open == "[" {
		t.write(never)
	} else {
		t.write(`(?s:.)`)
	}
}

// member reads one character of a class, or a set of them.
func (t *jsTranslator) member() (r rune, set string) {
	if !t.take(`\`) {
		return t.next(), ""
	}
	if set = t.set(); set != "" {
		return 0, set
	}
	if t.take("b") {
		return '\b', ""
	}
	// Inside a class a control letter may be a digit, too.
	if rest := t.src[t.pos:]; len(rest) > 1 && rest[0] == 'c' && (rest[1] == '_' || rest[1] >= '0' && rest[1] <= '9') {
		t.pos += 2
		return rune(rest[1] & 31), ""
	}
	return t.character(), ""
}

// members writes a set, or a range without the halves of surrogate pairs at its
// ends.
func (t *jsTranslator) members(low, high rune, set string) {
	if set != "" {
		t.write(set)
		return
	}
	if utf16.IsSurrogate(low) {
		low = 0xe000
	}
	if utf16.IsSurrogate(high) {
		high = 0xd7ff
	}
	if low <= high {
		t.write(classLiteral(low) + "-" + classLiteral(high))
	}
}

func classLiteral(r rune) string { return `\x{` + strconv.FormatInt(int64(r), 16) + `}` }
