package builtin

import (
	"bytes"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// bytesByFrequency are the bytes of source code and prose, the most frequent
// first, as counted over 100 MB. All others are rarer.
const bytesByFrequency = " etrnaiso\n\tlcd,upf0.m\"h/g()x=b:y_1STEv2{}wA-Ck4I'R<>3P6ONDL8FM[]5*9\\B7GU`VH#;jz!W+q&|%YXKQZJ?$~^@"

// rarity is greater for rarer bytes.
func rarity(c byte) int {
	if i := strings.IndexByte(bytesByFrequency, c); i >= 0 {
		return i
	}
	return len(bytesByFrequency)
}

// A needle is a text to look for. What package bytes does well is to look for
// one byte, so the rarest is looked for, and the others only around it.
type needle struct {
	text []byte
	rare int // where the rarest byte is
}

func newNeedle(text string) needle {
	n := needle{text: []byte(text)}
	for i := range n.text {
		if rarity(n.text[i]) > rarity(n.text[n.rare]) {
			n.rare = i
		}
	}
	return n
}

// selective reports whether the needle is rare enough for it to pay that lines
// without it are not looked at.
func (n needle) selective() bool {
	return len(n.text) >= 3 || len(n.text) > 0 && rarity(n.text[n.rare]) >= 12
}

// index is bytes.Index(buf, n.text).
func (n needle) index(buf []byte) int {
	c := n.text[n.rare]
	misses := 0
	for i := n.rare; i < len(buf); i++ {
		next := bytes.IndexByte(buf[i:], c)
		if next < 0 {
			return -1
		}
		i += next
		start := i - n.rare
		if bytes.HasPrefix(buf[start:], n.text) {
			return start
		}
		// In a text full of that byte, looking at every position is better.
		if misses++; misses > 16+(i-n.rare)/8 {
			if next := bytes.Index(buf[start+1:], n.text); next >= 0 {
				return start + 1 + next
			}
			return -1
		}
	}
	return -1
}

// requiredLiteral returns the best text that is in every match of the
// expression, or "".
func requiredLiteral(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return literalText(re)
	case syntax.OpCapture, syntax.OpPlus:
		return requiredLiteral(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredLiteral(re.Sub[0])
		}
	case syntax.OpConcat:
		best, run := "", ""
		for _, sub := range re.Sub {
			if text := literalText(sub); text != "" {
				run += text
				best = better(best, run)
				continue
			}
			run = ""
			best = better(best, requiredLiteral(sub))
		}
		return best
	}
	return ""
}

// literalText is the text of a literal; "" if it is something else, or could
// be written with other bytes: in another case, or invalid ones for U+FFFD.
func literalText(re *syntax.Regexp) string {
	text := string(re.Rune)
	if re.Op != syntax.OpLiteral || re.Flags&syntax.FoldCase != 0 || strings.ContainsRune(text, utf8.RuneError) {
		return ""
	}
	return text
}

// better returns the text that is likely to be met less often.
func better(a, b string) string {
	score := func(text string) int {
		n := newNeedle(text)
		if text == "" {
			return 0
		}
		return 1 + rarity(n.text[n.rare]) + 10*min(len(text), 5)
	}
	if score(b) > score(a) {
		return b
	}
	return a
}
