package core

import (
	"path/filepath"
	"testing"
)

func TestMasker(t *testing.T) {
	t.Setenv("SOME_API_KEY", "from-the-environment")
	t.Setenv("SOME_DATABASE", "postgres://me:of-the-database@host/db")
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	for _, test := range []struct {
		text, want string
		values     []string
	}{
		{"no: abcdefgh-ijkl and abcdefgh", "no: *** and ***", []string{"abcdefgh", "Bearer abcdefgh-ijkl"}},
		{"no: from-the-environment", "no: ***", nil},
		{"no: of-the-database", "no: ***", nil},
		{"no: of-an-entry", "no: ***", []string{"postgres://me:of-an-entry@host/db"}},
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
	for _, test := range []struct {
		args []string
		text string
		want string
	}{
		{[]string{"-y", "@scope/server", "--api-key", "sesame-1"}, "@scope/server: sesame-1", "@scope/server: ***"},
		{[]string{"--token=sesame-1", "sesame-2"}, "sesame-1 sesame-2", "*** sesame-2"},
		{[]string{"--keys", "sesame-1", "--secret"}, "sesame-1", "sesame-1"},
		{[]string{"-e", "DB_PASSWORD=sesame-1"}, "sesame-1", "***"},
		{[]string{"--env=API_KEY=sesame-1"}, "sesame-1", "***"},
		{[]string{"--header", "Authorization: Bearer sesame-1"}, "no Bearer sesame-1", "no Bearer ***"},
		{[]string{"--header=X-Api-Key:sesame-1"}, "sesame-1", "***"},
		{[]string{"postgres://somebody:sesame-1@host/db"}, "somebody, sesame-1", "somebody, ***"},
		{[]string{"--db=postgres://somebody:sesame#1@host/db"}, "sesame#1", "***"},
		{[]string{"https://somebody:sesame%2f1@host/a:b@c"}, "sesame%2f1 sesame/1 host/a:b@c", "*** *** host/a:b@c"},
		{[]string{"https://ghp_sesame@host/x"}, "ghp_sesame at host", "*** at host"},
		{[]string{"https://host/mcp?n=12345678&api_key=a%2Fsesame&more=12345678"}, "n=12345678 a%2Fsesame a/sesame", "n=12345678 *** ***"},
		{[]string{"https://localhost:8080/secrets/12345678"}, "localhost:8080/secrets/12345678", "localhost:8080/secrets/12345678"},
	} {
		if got := Masker(SecretsOf(test.args...)...).Replace(test.text); got != test.want {
			t.Errorf("%q: %q, want %q", test.args, got, test.want)
		}
	}
}
