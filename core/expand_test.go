package core

import (
	"strings"
	"testing"
)

func TestExpandEnv(t *testing.T) {
	t.Parallel()
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"A": "1", "B_2": "two", "EMPTY": ""}[name]
		return value, ok
	}
	for _, c := range []struct{ in, want, missing string }{
		{"", "", ""},
		{"${A}", "1", ""},
		{"x${A}y${B_2}z", "x1ytwoz", ""},
		{"${EMPTY}", "", ""},
		{"${EMPTY:-d}${NO:-}${NO:-e}", "de", ""},
		{"a${NO}b${NEITHER}", "ab", "NO"},
		{"$A ${1X} ${} ${a b} ${A", "$A ${1X} ${} ${a b} ${A", ""},
		{"${${A}}", "${1}", ""},
	} {
		got, err := ExpandEnv(c.in, lookup)
		if got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
		if (err != nil) != (c.missing != "") || err != nil && !strings.Contains(err.Error(), "variable "+c.missing+" is") {
			t.Errorf("%q: error %v, want one about %q", c.in, err, c.missing)
		}
	}
}
