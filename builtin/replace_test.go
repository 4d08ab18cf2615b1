package builtin

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzEdit compares with a plain replacement. Line ends are folded for it, since
// what edit adds to a plain replacement is that they match each other; that
// nothing outside of a match changes is checked on the bytes themselves.
func FuzzEdit(f *testing.F) {
	f.Add([]byte("a\r\nb\nc\r\n"), "b\n", "B\nB\n", false)
	f.Add([]byte("price: X"), "X", "$& $$1", true)
	f.Add([]byte{'a', 0xE9, 'b', '\n', 'X'}, "X", "Y", false)
	f.Add([]byte("\xff\xfea\x00b\x00"), "b", "é", false)
	f.Add([]byte("\r\n\r\n"), "\r\n", "\n", true)
	f.Add([]byte("a\rb\r\n"), "\r", "x", true)
	f.Add([]byte("\x81@\x81@"), "@", "", true)
	f.Fuzz(func(t *testing.T, data []byte, old, new string, all bool) {
		r := replacement{strings.ToValidUTF8(old, "?"), strings.ToValidUTF8(new, "?"), all}
		d, err := newDocument(data)
		if err != nil || r.check() != nil {
			return
		}
		if back, err := d.bytes(); err != nil || !bytes.Equal(back, data) {
			t.Fatalf("%q becomes %q unedited: %v", data, back, err)
		}
		before := string(d.text)
		n, err := r.apply(&d)
		after := string(d.text)
		var miss *mismatch
		if errors.As(err, &miss) {
			if after != before || miss.reason == "" || !utf8.ValidString(miss.reason) {
				t.Fatalf("%q: a miss changed the text or says nothing: %q", before, miss.reason)
			}
			checkMiss(t, r, d, before, miss)
			return
		}
		if err != nil || n == 0 || n > 1 && !all {
			t.Fatalf("apply = %d, %v", n, err)
		}
		checkEdited(t, r, before, after, n)
	})
}

func checkMiss(t *testing.T, r replacement, d document, before string, miss *mismatch) {
	t.Helper()
	switch {
	case miss.matches == 0 && strings.Contains(before, r.OldText):
		t.Fatalf("%q is in %q and was not found", r.OldText, before)
	case miss.matches == 1 && !d.foreign, miss.matches > 1 && r.IsReplaceAll && !d.foreign:
		t.Fatalf("%q in %q: %d matches were not replaced: %s", r.OldText, before, miss.matches, miss.reason)
	}
}

func checkEdited(t *testing.T, r replacement, before, after string, n int) {
	t.Helper()
	if n == 1 { // what is outside of the match is as it was
		spans := find([]byte(before), r.OldText, r.exact())
		if len(spans) != 1 || !strings.HasPrefix(after, before[:spans[0].start]) || !strings.HasSuffix(after, before[spans[0].end:]) {
			t.Fatalf("%q to %q in %q changed something else: %q", r.OldText, r.NewText, before, after)
		}
	}
	if r.exact() || !strings.ContainsRune(before+r.OldText+r.NewText, '\r') {
		if want := strings.ReplaceAll(before, r.OldText, r.NewText); after != want || n != strings.Count(before, r.OldText) {
			t.Fatalf("%q to %q in %q: %q, want %q", r.OldText, r.NewText, before, after, want)
		}
		return
	}
	b, o, w := foldLines(before), foldLines(r.OldText), foldLines(r.NewText)
	if strings.ContainsRune(b+o+w, '\r') {
		return // a CR of its own can make a line end with what comes to stand beside it
	}
	if want := strings.ReplaceAll(b, o, w); foldLines(after) != want {
		t.Fatalf("%q to %q in %q: %q, want %q but for line ends", r.OldText, r.NewText, before, after, want)
	}
}

// The report of a miss takes no longer for a file that is hard to search (pain 8).
func TestNearestIsBounded(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("ab", 4<<20)
	begin := time.Now()
	for _, old := range []string{
		strings.Repeat("ab", 40<<10) + "c",
		"c" + strings.Repeat("ab", 40<<10),
		strings.Repeat("ab", 20<<10) + "c" + strings.Repeat("ab", 20<<10),
		strings.Repeat("aab", 20<<10),
	} {
		if got := (replacement{OldText: old}).absent([]byte(text)); !strings.HasPrefix(got, "no match") {
			t.Errorf("absent = %q", got)
		}
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("four reports took %v", took)
	}
}

func TestCharacterNames(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":       "nothing",
		"x":      "'x'",
		"\n":     "a line end",
		"\u200b": "a zero-width space (U+200B)",
		"\u0301": "U+0301",
		"é":      "'é' (U+00E9)",
		"\x01":   "U+0001",
		"\xe9":   "the byte 0xE9",
	} {
		r, _ := utf8.DecodeRuneInString(s)
		if got := character(r, []byte(s), "nothing"); got != want {
			t.Errorf("character(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("x\n", 30) + "x x")
	for old, want := range map[string]string{
		"x x": "all in line 31",
		" ":   "all in line 31",
		"x":   "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 and more",
	} {
		if got := lines(text, occurrences(text, []byte(old))); got != want {
			t.Errorf("lines of %q = %q, want %q", old, got, want)
		}
	}
}
