package builtin

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"zenmcp/core"
)

// The search for the nearest text is bounded: it looks at so much of the file,
// and starts from so much of either end of oldText.
const (
	nearestText = 4 << 20
	nearestSeed = 4 << 10
)

// absent says why there is no match, as far as that can be seen: what in the
// file is nearest to OldText, and the first character that differs.
func (r replacement) absent(text []byte) string {
	const again = "; read the file again and copy the text exactly"
	text = bytes.ReplaceAll(text[:min(len(text), nearestText)], []byte("\r\n"), []byte("\n"))
	old := []byte(foldLines(r.OldText))
	switch {
	case len(text) == 0:
		return "no match: the file is empty; use writeFile"
	case len(r.NewText) > 8 && !strings.Contains(r.NewText, r.OldText) && bytes.Contains(text, []byte(foldLines(r.NewText))):
		at := bytes.Index(text, []byte(foldLines(r.NewText)))
		return fmt.Sprintf("no match: oldText is not in the file, but newText already is, in line %d", lineAt(text, at))
	}
	c, ok := nearest(text, old)
	if !ok {
		return "no match, and nothing in the file is like oldText" + again
	}
	return "no match; nearest is " + c.String() + again
}

// A common is a piece of oldText that is in the file.
type common struct {
	text, old []byte
	at, from  int // where it begins in text and in old
	length    int
}

// nearest finds the longest piece that begins or ends old, or is around its
// longest line. It tells nothing if that is too little of old to mean much.
func nearest(text, old []byte) (common, bool) {
	var best common
	try := func(seed []byte, from int) {
		at := bytes.Index(text, seed)
		if len(seed) == 0 || at < 0 {
			return
		}
		c := common{text, old, at, from, len(seed)}
		c.extend()
		if c.length > best.length {
			best = c
		}
	}
	head := old[:min(len(old), nearestSeed)]
	n := longest(len(head), func(n int) bool { return bytes.Contains(text, head[:n]) })
	try(head[:n], 0)
	tail := old[max(0, len(old)-nearestSeed):]
	n = longest(len(tail), func(n int) bool { return bytes.Contains(text, tail[len(tail)-n:]) })
	try(tail[len(tail)-n:], len(old)-n)
	line := longestLine(old)
	try(line, bytes.Index(old, line))

	shared := best.old[best.from : best.from+best.length]
	letters := len(bytes.Join(bytes.Fields(shared), nil))
	return best, letters >= 16 || letters >= 2 && best.length*4 >= len(old)
}

// longest finds the greatest n up to limit for which ok holds, where ok holds
// for all smaller numbers too.
func longest(limit int, ok func(n int) bool) int {
	low := 0
	for low < limit {
		middle := low + (limit-low+1)/2
		if ok(middle) {
			low = middle
		} else {
			limit = middle - 1
		}
	}
	return low
}

func longestLine(old []byte) []byte {
	var best []byte
	for line := range bytes.Lines(old) {
		if line = bytes.TrimSpace(line); len(line) > len(best) {
			best = line
		}
	}
	return best[:min(len(best), nearestSeed)]
}

// extend makes the piece as long as it goes, in whole characters.
func (c *common) extend() {
	for c.at > 0 && c.from > 0 && c.text[c.at-1] == c.old[c.from-1] {
		c.at, c.from, c.length = c.at-1, c.from-1, c.length+1
	}
	for c.at+c.length < len(c.text) && c.from+c.length < len(c.old) && c.text[c.at+c.length] == c.old[c.from+c.length] {
		c.length++
	}
	for c.length > 0 && !utf8.RuneStart(c.old[c.from]) {
		c.at, c.from, c.length = c.at+1, c.from+1, c.length-1
	}
	for end := c.from + c.length; c.length > 0 && end < len(c.old) && !utf8.RuneStart(c.old[end]); end-- {
		c.length--
	}
}

// String names the line, shows it, and says what differs: before the piece if
// something of old is missing there, else behind it.
func (c common) String() string {
	at := c.at
	var have, want string
	if c.from > 0 {
		r, size := utf8.DecodeLastRune(c.text[:c.at])
		at -= size
		have = character(r, c.text[at:c.at], "the beginning of the file")
		r, size = utf8.DecodeLastRune(c.old[:c.from])
		want = character(r, c.old[c.from-size:c.from], "")
	} else {
		at += c.length
		r, size := utf8.DecodeRune(c.text[at:])
		have = character(r, c.text[at:at+size], "the end of the file")
		r, size = utf8.DecodeRune(c.old[c.length:])
		want = character(r, c.old[c.length:c.length+size], "")
	}
	begin := bytes.LastIndexByte(c.text[:at], '\n') + 1
	end := len(c.text)
	if i := bytes.IndexByte(c.text[at:], '\n'); i >= 0 {
		end = at + i
	}
	// Of a long line, what is around the difference.
	shown := c.text[max(begin, at-60):min(end, at+60)]
	return fmt.Sprintf("line %d, %q: at column %d the file has %s and oldText has %s",
		lineAt(c.text, at), core.Clip(strings.ToValidUTF8(string(shown), ""), 120),
		utf8.RuneCount(c.text[begin:at])+1, have, want)
}

// lineAt is the line of a place, counted from 1.
func lineAt(text []byte, at int) int { return bytes.Count(text[:at], []byte("\n")) + 1 }

// character names a character so that one sees what one does not see.
func character(r rune, raw []byte, none string) string {
	name := map[rune]string{
		'\n': "a line end", '\r': "a carriage return", '\t': "a tab", ' ': "a space",
		0x00A0: "a no-break space", 0x00AD: "a soft hyphen", 0x200B: "a zero-width space",
		0x200C: "a zero-width non-joiner", 0x200D: "a zero-width joiner", 0x200E: "a left-to-right mark",
		0x200F: "a right-to-left mark", 0x202F: "a narrow no-break space", 0x2028: "a line separator",
		0x2029: "a paragraph separator", 0x2060: "a word joiner", 0x3000: "an ideographic space", 0xFEFF: "a byte order mark",
	}[r]
	switch {
	case len(raw) == 0:
		return none
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Sprintf("the byte 0x%02X", raw[0])
	case name != "" && r > 0x7F:
		return fmt.Sprintf("%s (U+%04X)", name, r)
	case name != "":
		return name
	case r < 0x7F && unicode.IsPrint(r):
		return fmt.Sprintf("%q", r)
	case unicode.IsGraphic(r) && !unicode.IsMark(r):
		return fmt.Sprintf("%q (U+%04X)", r, r)
	}
	return fmt.Sprintf("U+%04X", r)
}
