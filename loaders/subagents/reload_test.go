package subagents_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zenmcp/core"
)

// TestBrokenAndMended checks that a file in which somebody is writing counts as it
// was, and that one which is gone does not.
func TestBrokenAndMended(t *testing.T) {
	t.Parallel()
	dir := folder(t, helper("one", "{}"))
	source := sourceOf(t, dir)
	file := filepath.Join(dir, "a.json")
	look := func(want, problem string) {
		t.Helper()
		offer, err := source.Discover(t.Context())
		got := ""
		for _, c := range offer.Capabilities() {
			got += c.Name
		}
		omitted := core.Omissions(err)
		if got != want || (problem == "") != (omitted == nil) {
			t.Errorf("offered %q, want %q; %v", got, want, omitted)
		}
		if problem != "" && (!omitted[0].Offered || !strings.Contains(omitted[0].Error(), problem)) {
			t.Errorf("said %+v, want %q", omitted[0], problem)
		}
	}
	save := func(text json.RawMessage) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	look("one", "")
	save(json.RawMessage(`{"function": `))
	look("one", "a.json:1:14")
	look("one", "stays in force")
	save(helper("two", "{}"))
	look("two", "")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	look("", "")
}
