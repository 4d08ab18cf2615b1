package builtin

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
	"golang.org/x/text/encoding/unicode"
)

type lineMatch struct {
	line, from, to int
	text           string
}

// plainly is what a lineFinder is to find, line by line with the engine that
// backtracks. ok is false if that does not get anywhere.
func plainly(t testing.TB, e *lineExpression, data []byte) (found []lineMatch, ok bool) {
	t.Helper()
	var js *regexp2.Regexp
	if e.text == nil {
		js = regexp2.MustCompile(e.js, e.flags)
		js.MatchTimeout = 200 * time.Millisecond
	}
	lines := strings.Split(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i, line := range lines {
		line, _ = unicode.UTF8.NewDecoder().String(strings.TrimSuffix(line, "\r"))
		if js == nil {
			if from := strings.Index(line, string(e.text)); from >= 0 {
				found = append(found, lineMatch{i + 1, from, from + len(e.text), line})
			}
			continue
		}
		m, err := js.FindStringMatch(line)
		if err != nil {
			return nil, false
		}
		if m != nil {
			runes := []rune(line)
			from := len(string(runes[:m.RuneIndex]))
			found = append(found, lineMatch{i + 1, from, from + len(m.String()), line})
		}
	}
	return found, true
}

func findAll(t testing.TB, e *lineExpression, data []byte) (found []lineMatch, ok bool) {
	t.Helper()
	f := e.finder()
	f.begin()
	for from := 0; ; {
		line, ok, err := f.next(data, from)
		if err != nil {
			return nil, false
		}
		if !ok {
			return found, true
		}
		n := strings.Count(string(data[:line.start]), "\n") + 1
		found = append(found, lineMatch{n, line.from, line.to, string(line.text)})
		from = line.end + 1
	}
}

func checkFinder(t *testing.T, e *lineExpression, data []byte) {
	t.Helper()
	want, ok := plainly(t, e, data)
	if !ok {
		return
	}
	got, ok := findAll(t, e, data)
	if !ok {
		return
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("text %q regex %q re2 %v in %q:\n got %v\nwant %v", e.text, e.js, e.re, data, got, want)
	}
}

func FuzzFindText(f *testing.F) {
	f.Add("a", []byte("a\r\nb\xffa\n\n\ra"))
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		text = string([]rune(text))
		e, err := textExpression(text)
		if err != nil || text == "" || strings.Contains(text, "\uFFFD") {
			return
		}
		checkFinder(t, e, data)
	})
}

func FuzzFindRegex(f *testing.F) {
	for _, expr := range []string{`a`, `^a$`, `\bfoo\b`, `[^a-c]+\d`, `(?:a|bc)*d`, `\s\S`, `x{2,3}?y`, `(\w)\1`, `foo(?=bar)`, `(?<!\$)\b\d+`, `\p{L}+`, `[\s\S]`, `é|ж`, `(?i:straße)k`, `.{3}`, `\u{1F600}`, `(\A)|\e|a\Z`, `[]|a`, `[^]`, `\B`} {
		f.Add(expr, []byte("a foo bar1\r\nabcbcd é1 xxxy foobar\n$12 12\xff\xc3a\nSTRASSE STRAßE\u212a\n😀\n\n"))
	}
	f.Fuzz(func(t *testing.T, expr string, data []byte) {
		e, err := regexExpression(expr)
		if err != nil || expr == "" {
			return
		}
		checkFinder(t, e, data)
	})
}

// randomRegex writes an expression of what RE2 can do, and of what it cannot.
func randomRegex(r *rand.Rand, depth int) string {
	atoms := []string{"a", "b", "é", "😀", ".", `\d`, `\D`, `\w`, `\W`, `\s`, `\S`, "[ab]", "[^a]", `[\w-é]`, `[^\s\d]`, "[]", "[^]", `\b`, `\B`, "^", "$",
		`\x41`, `\u00e9`, `\t`, `\r`, `\cA`, `\0`, `\/`, "{", "}", "]", `\q`, `\1`, `\k<n>`, "a{2", `[\b]`, `\-`, `\p{L}`, `\u{1F600}`, `\ud83d\ude00`}
	quantifiers := []string{"", "", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}?", "{2,}"}
	var b strings.Builder
	for range 1 + r.IntN(4) {
		atom := atoms[r.IntN(len(atoms))]
		if depth > 0 {
			inner := randomRegex(r, depth-1)
			switch r.IntN(16) {
			case 0, 1:
				atom = "(?:" + inner + ")"
			case 2:
				atom = "(" + inner + ")"
			case 3:
				atom = "(?:" + inner + "|" + randomRegex(r, depth-1) + ")"
			case 4:
				atom = "(?" + []string{"=", "!", "<=", "<!", "i:", "s:", "-i:", "m:", "<n>"}[r.IntN(9)] + inner + ")"
			}
		}
		b.WriteString(atom)
		if !strings.HasSuffix(atom, "^") && !strings.HasSuffix(atom, "$") {
			b.WriteString(quantifiers[r.IntN(len(quantifiers))])
		}
	}
	return b.String()
}

func randomLines(r *rand.Rand) []byte {
	pieces := []string{"a", "a", "b", "b", "A", "é", "É", "😀", " ", "\t", "\r", "\n", "\r\n", "1", "_", "-", "{", "}", "]", "q", "\x00", "\x01", "\xff", "\xe6\x97", "\u2028", "\u00a0", "\u212a", "k", "ſ", "s", "p{L}", "/"}
	var b strings.Builder
	for range r.IntN(16) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return []byte(b.String())
}

// RE2, where it is used, and the engine that backtracks find the same, and the
// filters in front of them hide nothing.
func TestRegexEnginesAgree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	exact, filtered := 0, 0
	for range 100 {
		e, err := regexExpression(randomRegex(r, 2))
		if err != nil {
			continue
		}
		if e.re != nil {
			exact++
		} else if e.filter != nil {
			filtered++
		}
		for range 3 {
			checkFinder(t, e, randomLines(r))
		}
	}
	if exact < 25 || filtered < 5 {
		t.Errorf("only %d expressions were RE2's and %d filtered", exact, filtered)
	}
}
