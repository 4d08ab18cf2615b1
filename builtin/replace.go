package builtin

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"zenmcp/core"
)

// A replacement is one change of a text (decision 8). It works on bytes: what
// is outside the match stays as it is. OldText must be in exactly one place,
// unless all places are wanted. An LF in it also matches CRLF and the other way
// round, and NewText gets the line ends of what it replaces. NewText is never a
// pattern.
type replacement struct {
	OldText      string `json:"oldText"`
	NewText      string `json:"newText"`
	IsReplaceAll bool   `json:"isReplaceAll,omitempty"`
}

// A mismatch is why a replacement was not made: there were no matches, or more
// than one, or they could not be replaced without damage.
type mismatch struct {
	matches int
	reason  string
}

func (m *mismatch) Error() string { return m.reason }

// A span is a range of bytes.
type span struct{ start, end int }

// check refuses what can never be replaced.
func (r replacement) check() error {
	if r.OldText == "" {
		return core.InField("oldText", fmt.Errorf("must not be empty: it is the text to be replaced; writeFile fills an empty file"))
	}
	return nil
}

// apply makes the change in d and returns the number of places. Its error is a
// *mismatch, and d is as it was then.
func (r replacement) apply(d *document) (int, error) {
	exact := r.exact()
	spans := find(d.text, r.OldText, exact)
	switch n := len(spans); {
	case n == 0:
		return 0, &mismatch{0, r.absent(d.text)}
	case n > 1 && !r.IsReplaceAll:
		return 0, &mismatch{n, fmt.Sprintf("oldText is in %d places, %s; nothing was changed. Add the text around it, or pass isReplaceAll: true",
			n, lines(d.text, spans))}
	case d.foreign && !ascii(r.NewText):
		return 0, &mismatch{n, "the file is not in UTF-8, so newText can be ASCII only; nothing was changed"}
	case d.foreign && slices.ContainsFunc(spans, func(s span) bool { return halfCharacter(d.text, s.start) }):
		return 0, &mismatch{n, "the file is not in UTF-8 and oldText may begin in the middle of a character; nothing was changed. Begin it elsewhere"}
	}
	d.text = r.splice(d.text, spans, exact)
	return len(spans), nil
}

// exact reports whether line ends must match as they are: when they are all
// that changes, and when OldText ends between a CR and whatever follows.
func (r replacement) exact() bool {
	return strings.HasSuffix(r.OldText, "\r") ||
		r.OldText != r.NewText && strings.ContainsRune(r.OldText+r.NewText, '\r') && foldLines(r.OldText) == foldLines(r.NewText)
}

func (r replacement) splice(text []byte, spans []span, exact bool) []byte {
	out := make([]byte, 0, len(text)+len(spans)*max(0, len(r.NewText)-len(r.OldText))+16)
	end := 0
	for _, s := range spans {
		out = append(out, text[end:s.start]...)
		if exact {
			out = append(out, r.NewText...)
		} else {
			out = appendStyled(out, r.NewText, text, s)
		}
		end = s.end
	}
	return append(out, text[end:]...)
}

// find returns where old is in text, from left to right and without overlaps.
// Unless exact, a line end in old matches LF and CRLF, with the CR.
func find(text []byte, old string, exact bool) []span {
	if exact || !strings.Contains(old, "\n") {
		return occurrences(text, []byte(old))
	}
	pattern := []byte(foldLines(old))
	crlfs := crlfPlaces(text)
	if len(crlfs) == 0 {
		return occurrences(text, pattern)
	}
	// Searched without the CRs; a place then moves right by one for every CR
	// that was left out before it.
	spans := occurrences(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), pattern)
	for i, s := range spans {
		before, _ := slices.BinarySearch(crlfs, s.start)
		until, _ := slices.BinarySearch(crlfs, s.end)
		spans[i] = span{s.start + before, s.end + until}
	}
	return spans
}

// crlfPlaces lists where the CRLFs of text are once each is a single LF.
func crlfPlaces(text []byte) []int {
	var places []int
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte("\r\n"))
		if i < 0 {
			return places
		}
		places = append(places, at+i-len(places))
		at += i + 2
	}
}

func occurrences(text, pattern []byte) []span {
	var spans []span
	for at := 0; ; {
		i := bytes.Index(text[at:], pattern)
		if i < 0 {
			return spans
		}
		spans = append(spans, span{at + i, at + i + len(pattern)})
		at += i + len(pattern)
	}
}

func foldLines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// appendStyled appends what replaces a span, each line end like that of the same
// line in the span. Where the span has none (left), the line that it is in says
// how lines end here.
func appendStyled(out []byte, newText string, text []byte, s span) []byte {
	if !strings.Contains(newText, "\n") {
		return append(out, newText...)
	}
	at, crlf := s.start, false
	if i := bytes.IndexByte(text[s.start:], '\n'); i >= 0 {
		crlf = endsCRLF(text, s.start+i)
	} else if i := bytes.LastIndexByte(text[:s.start], '\n'); i >= 0 {
		crlf = endsCRLF(text, i)
	} else {
		return append(out, newText...) // one line, which ends in no way
	}
	for line := range strings.Lines(foldLines(newText)) {
		line, ended := strings.CutSuffix(line, "\n")
		out = append(out, line...)
		if !ended {
			break
		}
		if i := bytes.IndexByte(text[at:s.end], '\n'); i >= 0 {
			crlf = endsCRLF(text, at+i)
			at += i + 1
		}
		if crlf {
			out = append(out, '\r')
		}
		out = append(out, '\n')
	}
	return out
}

// endsCRLF reports whether the LF at i of text belongs to a CRLF.
func endsCRLF(text []byte, i int) bool { return i > 0 && text[i-1] == '\r' }

// lines names the lines of spans, counted from 1: "lines 1, 3 and 7".
func lines(text []byte, spans []span) string {
	const most = 20
	var numbers []string
	line, at := 1, 0
	for _, s := range spans {
		line += bytes.Count(text[at:s.start], []byte("\n"))
		at = s.start
		n := fmt.Sprint(line)
		if len(numbers) == 0 || numbers[len(numbers)-1] != n {
			numbers = append(numbers, n)
		}
		if len(numbers) > most {
			return "lines " + strings.Join(numbers[:most], ", ") + " and more"
		}
	}
	last := len(numbers) - 1
	if last == 0 {
		return "all in line " + numbers[0]
	}
	return "lines " + strings.Join(numbers[:last], ", ") + " and " + numbers[last]
}
