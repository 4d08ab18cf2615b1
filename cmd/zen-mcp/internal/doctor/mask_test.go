package doctor

import (
	"slices"
	"testing"
)

func TestMask(t *testing.T) {
	t.Setenv("SOME_API_KEY", "from-the-environment")
	for _, test := range []struct {
		text, want string
		values     []string
	}{
		{"no: abcdefgh-ijkl and abcdefgh", "no: *** and ***", []string{"abcdefgh", "Bearer abcdefgh-ijkl"}},
		{"no: from-the-environment", "no: ***", nil},
		{"short is short", "short is short", []string{"short"}},
	} {
		if got := mask(test.text, test.values); got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}

func TestSecretArguments(t *testing.T) {
	t.Parallel()
	args := []string{"-y", "@scope/server", "--api-key", "one", "--token=two", "-e", "DB_PASSWORD=three", "postgres://me:four@host/db", "--keys", "no", "--secret"}
	if got, want := secrets(args), []string{"one", "two", "three", "four"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
