package configs_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"zenmcp/configs"
	"zenmcp/core"
)

// FuzzReader: reading never panics, every error and warning has a place in the
// text, and what is plain JSON is read as encoding/json reads it.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, "\ufeff{\r\n}", `{"a": [1, "x", null,], /* c */ "b": {"c": 'x'}} // end`, "{\"a\": \"\\u12\"", "[[[[", `{"a": 1, "a": 2}`,
		`{"models": [{"id": "a", "endpointId": 1}], "endpoints": "x", "maxToolOuput": 1e400}`,
		`{"permissions": {"tools": {"allow": ["*"], "deny": []}, "subAgents": 1}, "messages": [{}, 5]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := configs.Parse("F", text)
		if err != nil {
			located(t, text, configs.Problems(err))
			if json.Valid(text) && utf8.Valid(text) && strings.Count(string(text), "[")+strings.Count(string(text), "{") < 100 {
				t.Fatalf("valid JSON is refused: %v", err)
			}
			return
		}
		if !json.Valid(doc.JSON()) {
			t.Fatalf("the document is not JSON: %s", doc.JSON())
		}
		var any any
		if json.Valid(text) {
			want := compact(t, text)
			if got := compact(t, doc.JSON()); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
		for _, v := range []interface{}{&any, new(core.Config), new(core.AgentDefinition), new([]map[string]int)} {
			warnings, err := doc.Decode(v)
			located(t, text, warnings)
			located(t, text, configs.Problems(err))
		}
	})
}

func located(t *testing.T, text []byte, problems []*configs.Problem) {
	t.Helper()
	lines := strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n")
	for _, p := range problems {
		if p.File != "F" || p.Line < 1 || p.Line > len(lines) {
			t.Fatalf("%v: line %d of %d", p, p.Line, len(lines))
		}
		if p.Column < 1 || p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 {
			t.Fatalf("%v: column %d", p, p.Column)
		}
		if strings.Count(p.Excerpt(), "\n") != 2 {
			t.Fatalf("%v: excerpt %q", p, p.Excerpt())
		}
	}
}
