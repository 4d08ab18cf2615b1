package doctor

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"zenmcp/configs"
	"zenmcp/core"
)

var update = flag.Bool("update", false, "write the golden files")

// report has a fact, findings of each level, and an empty check.
func report() *Report {
	files := Check{Name: "files", Level: OK, Facts: []Fact{}, Findings: []Finding{}}
	files.fact("home", "%s", "/home/zoë/.ai-zen")
	files.add(finding("place-missing", fmt.Errorf("--skills %q: does not exist", "x")))
	files.add(finding("config-key", &configs.Problem{File: "/c.json", Line: 2, Column: 3, Field: "a.b", Err: configs.UnknownKey.Of(fmt.Errorf("is no known key"))}))
	files.add(finding("name-shadowed", core.Omit(core.Capability{Kind: core.KindSkill, Name: "pdf"}, "/s/pdf", &core.ShadowedError{By: "/t/pdf"})))
	return &Report{Version: "1.2.3", System: "linux/amd64", Errors: 1, Warnings: 1, Checks: []Check{
		files, {Name: "roots", Level: OK, Facts: []Fact{}, Findings: []Finding{}},
	}}
}

// TestReport compares the two forms of a report with golden files: scripts read the
// one, people the other.
func TestReport(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*Report, *bytes.Buffer) error{
		"report.json": func(r *Report, b *bytes.Buffer) error { return r.JSON(b) },
		"report.txt":  func(r *Report, b *bytes.Buffer) error { return r.Text(b) },
	} {
		var b bytes.Buffer
		if err := write(report(), &b); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", name), b.String())
	}
	for _, c := range []struct {
		errors, warnings int
		strict, want     bool
	}{{0, 0, true, true}, {0, 1, false, true}, {0, 1, true, false}, {1, 0, false, false}} {
		if got := (&Report{Errors: c.errors, Warnings: c.warnings}).Healthy(c.strict); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s differs (go test -update writes it), %v:\n%s", file, err, got)
	}
}

// TestCodes: a code is written as others are, once, and says what to do.
func TestCodes(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`)
	seen := map[string]bool{}
	for _, c := range Codes() {
		if !form.MatchString(c.ID) || seen[c.ID] || c.Level.rank() == 0 || c.Title == "" || !strings.HasSuffix(c.Advice, ".") {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
	}
}
