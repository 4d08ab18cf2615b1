package proc

import (
	"strings"
	"unicode/utf8"
)

// Decode makes text of what a program printed. It is UTF-8 as a rule; on Windows
// it can be in the code page of the console. A byte that is not text becomes
// U+FFFD.
func Decode(output []byte) string {
	if utf8.Valid(output) {
		return string(output)
	}
	if text, ok := decodeConsole(output); ok {
		return text
	}
	var b strings.Builder
	b.Grow(len(output) + len(output)/8)
	for len(output) > 0 {
		r, size := utf8.DecodeRune(output)
		b.WriteRune(r)
		output = output[size:]
	}
	return b.String()
}
