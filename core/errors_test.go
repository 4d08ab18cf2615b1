package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestInField(t *testing.T) {
	t.Parallel()
	bang := errors.New("bang")
	for _, c := range []struct {
		err  error
		path []string
		text string
	}{
		{InField("a", bang), []string{"a"}, "a: bang"},
		{InField("a", InField("0", InField("b", bang))), []string{"a", "0", "b"}, "a.0.b: bang"},
		{InField("a", fmt.Errorf("while reading: %w", InField("b", bang))), []string{"a"}, "a: while reading: b: bang"},
	} {
		var f *FieldError
		if !errors.As(c.err, &f) || !slices.Equal(f.Path, c.path) || c.err.Error() != c.text || !errors.Is(c.err, bang) {
			t.Errorf("got %q at %q, want %q at %q", c.err, f.Path, c.text, c.path)
		}
	}
}

func TestOmissions(t *testing.T) {
	t.Parallel()
	a := Omission{Capability: Capability{KindSkill, "a"}, Reason: "r"}
	err := errors.Join(a, errors.Join(errors.New("plain"), fmt.Errorf("wrapped: %w", a)))
	want := []Omission{a, {Reason: "plain"}, a}
	if got := Omissions(err); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Omissions(nil); got != nil {
		t.Errorf("nothing was left out, and yet %v", got)
	}
	for o, want := range map[Omission]string{
		a:                          "skills:a: r",
		{Reason: "r"}:              "r",
		{Origin: "f", Reason: "r"}: "f: r",
		{Capability: Capability{Kind: KindTool}, Origin: "f", Reason: "r"}: "tools (f): r",
	} {
		if o.Error() != want {
			t.Errorf("got %q, want %q", o.Error(), want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"cwd", "readFile", "writeFile", "rm", "ls", "findText", "日本語.txt"}
	for in, want := range map[string]string{
		"readfile":   "readFile",
		"read_file":  "readFile",
		"raedFile":   "readFile",
		"wirteFile":  "writeFile",
		"l":          "",
		"LS":         "ls",
		"mv":         "", // as far from rm as from ls
		"cdw":        "",
		"findtxt":    "findText",
		"日本話.txt":    "日本語.txt",
		"":           "",
		"whatever":   "",
		"deleteFile": "",
	} {
		if got := Nearest(in, names); got != want {
			t.Errorf("Nearest(%q) is %q, want %q", in, got, want)
		}
	}
	if got := Nearest("", []string{""}); got != "" {
		t.Errorf("Nearest of nothing is %q", got)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本語", 3, "日本語"}, {"日本語文", 3, "日本…"}, {"ab", 1, "…"}, {"ab", 0, "…"}, {"", 0, ""},
	} {
		got := Clip(c.in, c.limit)
		if got != c.want {
			t.Errorf("Clip(%q, %d) is %q, want %q", c.in, c.limit, got, c.want)
		}
		if n := utf8.RuneCountInString(got); c.limit > 0 && n > c.limit {
			t.Errorf("Clip(%q, %d) has %d code points", c.in, c.limit, n)
		}
	}
	if got := Clip(strings.Repeat("x", 1<<20), 10); len(got) > 20 {
		t.Errorf("%d bytes are left of a megabyte", len(got))
	}
}
