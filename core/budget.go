package core

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"zenmcp/core/rawjson"
)

// Output says how much a tool may have to say, and what of it matters when it
// is over the budget of [Config.OutputBudget].
type Output int

const (
	OutputShort Output = iota // a few lines; should it be more, the beginning is kept
	OutputLong                // can be over the budget; the beginning is kept
	OutputLog                 // can be over the budget; beginning and end are kept
)

// metaMaxResultSize announces in tools/list how many characters a result may
// have, to clients that would replace longer ones by an error.
const metaMaxResultSize = "anthropic/maxResultSizeChars"

// budgeted is the tool with its results held to the budget. All tools pass here
// when they are instantiated, so no source has to care. A foreign result
// ([Result.Whole]) is passed on as it is; see [Scope.FitWhole].
func (t Tool) budgeted(scope *Scope) Tool {
	inner := t
	if t.Output != OutputShort {
		t.Meta = maps.Clone(t.Meta)
		if t.Meta == nil {
			t.Meta = map[string]any{}
		}
		t.Meta[metaMaxResultSize] = scope.Config().OutputBudget()
	}
	t.Run = func(ctx context.Context, call *Call) (*Result, error) {
		res, err := inner.Run(ctx, call)
		if err != nil {
			return res, clipError(err, scope.Config().OutputBudget())
		}
		return scope.fit(inner, res), nil
	}
	return t
}

// clipError shortens an error that repeats too much of what it is about.
func clipError(err error, limit int) error {
	text := err.Error()
	if clipped := Clip(text, limit); len(clipped) < len(text) {
		return &clippedError{clipped, err}
	}
	return err
}

type clippedError struct {
	text string
	err  error
}

func (e *clippedError) Error() string { return e.text }
func (e *clippedError) Unwrap() error { return e.err }

// fit shortens the longest texts of a result until all of it is within the
// budget.
func (s *Scope) fit(t Tool, res *Result) *Result {
	if res == nil || res.Whole != nil {
		return res
	}
	bytes, limit := 0, s.Config().OutputBudget()
	texts := make([]string, len(res.Blocks))
	for i, b := range res.Blocks {
		if text, ok := b.(Text); ok {
			texts[i] = string(text)
			bytes += len(text)
		}
	}
	if bytes <= limit { // and so are the code points
		return res
	}
	texts = shortenAll(texts, limit, func(i int, text string, limit int) string {
		if i > 0 || res.From == nil {
			return s.shorten(t.Name, t.Output, text, limit)
		}
		all := ExtentOf(text)
		all.Place = *res.From
		return Excerpt(text, text, all, limit, t.Output, PlainCost)
	})
	short := *res
	short.Blocks = nil
	for i, b := range res.Blocks {
		if _, ok := b.(Text); !ok {
			short.Blocks = append(short.Blocks, b)
		} else if texts[i] != "" {
			short.Blocks = append(short.Blocks, Text(texts[i]))
		}
	}
	return &short
}

// leastShare is the least room in which an excerpt makes sense.
const leastShare = 500

// shortenAll cuts the longest of some texts until all of them are within limit.
// Where they are too many for an excerpt of each, the last that says something
// becomes one of all of them, and the others empty.
func shortenAll(texts []string, limit int, cut func(i int, text string, limit int) string) []string {
	sizes := make([]int, len(texts))
	total, last := 0, 0
	for i, t := range texts {
		if sizes[i] = utf8.RuneCountInString(t); sizes[i] > 0 {
			last = i
		}
		total += sizes[i]
	}
	if total <= limit {
		return texts
	}
	out := slices.Clone(texts)
	share := level(sizes, limit)
	if share < leastShare && last > 0 {
		filled := slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t == "" })
		clear(out)
		out[last] = cut(last, strings.Join(filled, "\n"), limit)
		return out
	}
	for i, t := range texts {
		if sizes[i] > share {
			out[i] = cut(i, t, share)
		}
	}
	return out
}

// level is the size to which the longest have to be cut so that all together
// are within limit.
func level(sizes []int, limit int) int {
	sorted := slices.Sorted(slices.Values(sizes))
	for i, size := range sorted {
		if rest := len(sorted) - i; size > limit/rest {
			return limit / rest
		} else {
			limit -= size
		}
	}
	return limit
}

// shorten cuts a text to limit and keeps the whole in a file. JSON stays JSON
// where that can be done.
func (s *Scope) shorten(tool string, output Output, text string, limit int) string {
	switch rawjson.KindOf([]byte(text)) {
	case rawjson.Array, rawjson.Object:
		if json.Valid([]byte(text)) {
			if short, ok := s.shortenJSON(tool, output, []byte(text), limit); ok {
				return short
			}
		}
	}
	all := ExtentOf(text)
	all.File, all.Lost = s.KeepOutput(tool+".txt", []byte(text))
	return Excerpt(text, text, all, limit, output, PlainCost)
}

// An Extent is what an excerpt was taken from.
type Extent struct {
	Chars, Lines int   // in all; a last line without its end counts
	Place              // where it is; File is "" when Lost
	Lost         error // why the whole could not be kept
}

// ExtentOf measures a text.
func ExtentOf(text string) Extent {
	e := Extent{Chars: utf8.RuneCountInString(text), Lines: strings.Count(text, "\n")}
	if text != "" && !strings.HasSuffix(text, "\n") {
		e.Lines++
	}
	return e
}

// A Cost is what a code point takes of a budget.
type Cost func(rune) int

// PlainCost is that of text which is shown as it is.
func PlainCost(rune) int { return 1 }

// JSONCost is the most that it takes in a JSON string.
func JSONCost(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
		return 2
	case r < ' ' || r == '\u2028' || r == '\u2029':
		return 6
	}
	return 1
}

// excerptSlack is what the note of an excerpt may be longer than it was guessed to
// be before the cut, and the line ends around it.
const excerptSlack = 24

// Excerpt shows what fits of a text that is over the budget: its head, for
// [OutputLog] its tail too, and between them a line that says how much there is,
// where it is and how to read on. head and tail are the text's beginning and end,
// each of at least limit code points; both may be the whole. Cuts are made at
// lines, unless a line takes more than half of the room.
func Excerpt(head, tail string, all Extent, limit int, output Output, cost Cost) string {
	note := func(shown, skipped string) string {
		return fmt.Sprintf("[cut: %s %d characters in %s. %s]\n", skipped, all.Chars, Plural(all.Lines, "line"), all.readOn(shown))
	}
	skipped := "this is the beginning of"
	if output == OutputLog {
		skipped = "something is left out here of"
	}
	room := max(0, limit-Weigh(note(head[:min(len(head), limit)], skipped), cost)-excerptSlack)
	if output != OutputLog {
		head = cutHead(head, room, cost)
		return endLine(head) + note(head, skipped)
	}
	head = cutHead(head, room/2, cost)
	tail = cutTail(tail, room-Weigh(head, cost), cost)
	return endLine(head) + note(head, skipped) + tail
}

// readOn says where the whole is and which range of it comes after shown.
func (e Extent) readOn(shown string) string {
	if e.File == "" {
		return fmt.Sprintf("The rest was not kept (%v); ask for less", e.Lost)
	}
	lines := strings.Count(shown, "\n")
	line, column := e.Line+lines, utf8.RuneCountInString(shown[strings.LastIndexByte(shown, '\n')+1:])
	if lines == 0 {
		column += e.Column
	}
	last, lastColumn := line+max(lines, 100)-1, -1
	if column > 0 {
		last, lastColumn = line, column+max(column, 1000)-1
	}
	return fmt.Sprintf("The whole is in %q; read on with readFile, range [%d,%d,%d,%d]", e.File, line, column, last, lastColumn)
}

func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// Weigh is what a text takes of a budget.
func Weigh(text string, cost Cost) int {
	total := 0
	for _, r := range text {
		total += cost(r)
	}
	return total
}

// cutHead is the longest beginning of text that costs no more than limit.
func cutHead(text string, limit int, cost Cost) string {
	used, end := 0, len(text)
	for i, r := range text {
		if used += cost(r); used > limit {
			end = i
			break
		}
	}
	if end == len(text) {
		return text
	}
	if i := strings.LastIndexByte(text[:end], '\n'); i >= end/2 {
		end = i + 1
	}
	return text[:end]
}

// cutTail is the longest end of text that costs no more than limit.
func cutTail(text string, limit int, cost Cost) string {
	used, start := 0, len(text)
	for start > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:start])
		if used += cost(r); used > limit {
			break
		}
		start -= size
	}
	if start == 0 || text[start-1] == '\n' {
		return text[start:]
	}
	if i := strings.IndexByte(text[start:], '\n'); i >= 0 && i < (len(text)-start)/2 {
		start += i + 1
	}
	return text[start:]
}
