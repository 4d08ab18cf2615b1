package core

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestMasker(t *testing.T) {
	t.Setenv("SOME_API_KEY", "from-the-environment")
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	for _, test := range []struct {
		text, want string
		values     []string
	}{
		{"no: abcdefgh-ijkl and abcdefgh", "no: *** and ***", []string{"abcdefgh", "Bearer abcdefgh-ijkl"}},
		{"no: from-the-environment", "no: ***", nil},
		{"short is short", "short is short", []string{"short"}},
		{dir + "/x: no such file", dir + "/x: no such file", []string{dir}},
		{"no: " + gone, "no: ***", []string{gone}},
	} {
		if got := Masker(test.values...).Replace(test.text); got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}

func TestSecretsOf(t *testing.T) {
	t.Parallel()
	args := []string{"-y", "@scope/server", "--api-key", "one", "--token=two", "-e", "DB_PASSWORD=three", "postgres://me:four@host/db", "--keys", "no",
		"https://host/mcp?n=1&api_key=five", "--secret"}
	if got, want := SecretsOf(args...), []string{"one", "two", "three", "four", "five"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
