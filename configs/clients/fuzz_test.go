package clients

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"zenmcp/configs"
)

// FuzzEdit: whatever a file holds, an entry that can be added can be found and
// taken away again, and nothing else means anything else.
func FuzzEdit(f *testing.F) {
	names := []string{"cursor", "codex", "goose"} // one for each format
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		before, after, _ := strings.Cut(string(text), "=== after\n")
		for i := range names {
			f.Add(i, []byte(before))
			f.Add(i, []byte(after))
		}
	}
	for _, text := range []string{
		"{\"mcpServers\":{\"a\":1,}/*x*/}", "{\"mcpServers\" : /*a*/ {\n/*b*/}\n/*c*/}", "{\"a\":1//\n}", "[mcp_servers.a]\n[[x]]\n[mcp_servers.zen.env]\na=1",
		"mcp_servers.zen.command = 'x'", "extensions:\n- a\n", "extensions: !!map {}\n", "extensions: ~ # x\n# y\n", "? extensions\n: a: b\n", "extensions:\n  zen: x\n # y\nb: |\n  c",
	} {
		for i := range names {
			f.Add(i, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, which int, text []byte) {
		if which < 0 || which >= len(names) {
			return
		}
		c, err := Lookup(names[which])
		if err != nil {
			t.Fatal(err)
		}
		doc, err := c.format.parse("f", text)
		if err != nil {
			var p *configs.Problem
			if !errors.As(err, &p) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		o := opened{File: File{Path: "f"}, version: version{text, doc}}
		o.Entries = c.entries(o)
		added, err := o.changed(c, "zen", func(d document) ([]byte, error) { return d.set(c.entry(server), c.section, "zen") })
		if err != nil {
			return // it leaves no place
		}
		value, _ := lookup(added.doc.value(), c.section, "zen")
		if e := c.entryOf("zen", value); e.Command != server.Command && !strings.Contains(string(text), "zen") {
			t.Fatalf("%q became %q: %+v", text, added.text, e)
		}
		removed, err := added.doc.remove(c.section, "zen")
		if err != nil {
			t.Fatalf("%q: %v", added.text, err)
		}
		last, err := c.format.parse("f", removed)
		if err != nil {
			t.Fatalf("%q became %q: %v", added.text, removed, err)
		}
		if a, b := without(doc.value(), c.section, "zen"), without(last.value(), c.section, "zen"); !reflect.DeepEqual(a, b) {
			t.Fatalf("%q became %q: %v, %v", text, removed, a, b)
		}
	})
}
