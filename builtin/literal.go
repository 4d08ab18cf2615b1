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

// maxNeedles is how many texts are looked for at a time. Each is a pass over the
// buffer, and an automaton does all in one.
const maxNeedles = 6

// needlesOf returns needles of which every match of the expression holds one;
// nil if there are none that are rare enough to help.
func needlesOf(re *syntax.Regexp) []needle {
	texts := requiredTexts(re)
	if len(texts) > maxNeedles {
		return nil
	}
	var all []needle
	for _, text := range texts {
		n := newNeedle(text)
		if !n.selective() {
			return nil
		}
		all = append(all, n)
	}
	return all
}

// requiredTexts returns the best texts of which every match holds one.
func requiredTexts(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if text := literalText(re); text != "" {
			return []string{text}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredTexts(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredTexts(re.Sub[0])
		}
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			texts := requiredTexts(sub)
			if texts == nil {
				return nil
			}
			all = append(all, texts...)
		}
		return all
	case syntax.OpConcat:
		var best []string
		run := ""
		for _, sub := range re.Sub {
			if text := literalText(sub); text != "" {
				run += text
				best = better(best, []string{run})
				continue
			}
			run = ""
			best = better(best, requiredTexts(sub))
		}
		return best
	}
	return nil
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

// better returns the texts that are likely to be met less often.
func better(a, b []string) []string {
	if worth(b) > worth(a) {
		return b
	}
	return a
}

func worth(texts []string) int {
	least := 0
	for i, text := range texts {
		n := newNeedle(text)
		if w := 1 + rarity(n.text[n.rare]) + 10*min(len(text), 5); i == 0 || w < least {
			least = w
		}
	}
	return least
}
