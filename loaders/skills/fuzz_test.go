package skills

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzManifest gives the reader anything. It must come back, soon, with a reason
// or with a skill that has a description; what hosts are told of is JSON.
func FuzzManifest(f *testing.F) {
	styles, err := filepath.Glob(filepath.Join("testdata", "styles", "*.md"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range styles {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, yaml := range []string{"a: &x [*x]", "? a\n: b", "a: !!binary x", "<<: {a: b}", "a: |9\n x", "\ta: b", "- a", "a: \"\\ud800\"", "{", "a: b: c", "'", "a:\n- - - x"} {
		f.Add([]byte("---\nname: x\ndescription: d\n" + yaml + "\n---\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseManifest(data, "x")
		if err != nil {
			return
		}
		if m.description == "" {
			t.Error("a skill without a description")
		}
		if (m.frontmatter == nil) == (m.unlisted == nil) {
			t.Errorf("frontmatter %q, but unlisted because of %v", m.frontmatter, m.unlisted)
		}
		if m.frontmatter != nil && !json.Valid(m.frontmatter) {
			t.Errorf("frontmatter is %q", m.frontmatter)
		}
	})
}

// TestHostileFrontmatter reads what is made to be slow or deep.
func TestHostileFrontmatter(t *testing.T) {
	t.Parallel()
	for name, yaml := range map[string]string{
		"deep list":     "a: " + strings.Repeat("[", 15_000),
		"closed list":   "a: " + strings.Repeat("[", 7_000) + strings.Repeat("]", 7_000),
		"deep map":      "a: " + strings.Repeat("{a: ", 3_900),
		"deep indent":   deepIndent(160),
		"many keys":     strings.Repeat("k: v\n", 3_000),
		"many items":    "a:\n" + strings.Repeat("- x\n", 3_900),
		"aliases":       "a: &a [x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n",
		"many colons":   "a: " + strings.Repeat("b: ", 5_000),
		"many quotes":   "a: " + strings.Repeat("'", 15_000),
		"many anchors":  strings.Repeat("&a ", 5_000),
		"deep dashes":   "a:\n" + strings.Repeat("- ", 7_000) + "x",
		"deep question": strings.Repeat("? ", 7_000),
		"long line":     "a: " + strings.Repeat("x", 15_000),
	} {
		began := time.Now()
		m, err := parseManifest([]byte("---\nname: x\ndescription: d\n"+yaml+"\n---\n"), "x")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %v (%v, %v)", name, took, m, err)
		}
	}
	if _, err := parseManifest([]byte("---\nname: x\n"+strings.Repeat("# x\n", maxFrontmatter)+"---\n"), "x"); err == nil {
		t.Error("frontmatter of any length is read")
	}
}

func deepIndent(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
