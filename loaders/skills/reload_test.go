package skills

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zenmcp/core"
)

// TestBrokenAndMended checks that a SKILL.md in which somebody is writing counts as
// it was, and that one which is gone does not.
func TestBrokenAndMended(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := newSource(t, root, root)
	file := "x/SKILL.md"
	look := func(want string, problems int) *offer {
		t.Helper()
		found, err := s.Discover(t.Context())
		o := found.(*offer)
		got := ""
		for _, sk := range o.skills {
			got += sk.manifest.description
		}
		if omitted := core.Omissions(err); got != want || len(omitted) != problems {
			t.Errorf("offered %q, want %q; %v", got, want, omitted)
		} else if problems > 0 && want != "" && (!omitted[0].Offered || !strings.Contains(omitted[0].Reason, "stays in force")) {
			t.Errorf("said %+v", omitted[0])
		}
		return o
	}
	write(t, root, file, "---\nname: x\n---\n")
	look("", 1) // it was never good
	write(t, root, file, plain("x"))
	look("about x", 0)
	write(t, root, file, "---\nname: x\n---\nHalf of it.\n")
	o := look("about x", 1)
	for read, err := range map[string]func() (string, error){
		"Text": func() (string, error) { return o.skills[0].Text(t.Context()) },
		"Read": func() (string, error) { b, err := o.skills[0].Read(t.Context(), manifestName); return string(b), err },
	} {
		if text, err := err(); err != nil || !strings.Contains(text, "Half of it.") {
			t.Errorf("%s while it is broken: %q, %v", read, text, err)
		}
	}
	write(t, root, file, strings.Replace(plain("x"), "about x", "mended", 1))
	look("mended", 0)
	if err := os.Remove(filepath.Join(root, file)); err != nil {
		t.Fatal(err)
	}
	look("", 0)
	write(t, root, file, "nothing")
	look("", 1) // what was before is gone
}
