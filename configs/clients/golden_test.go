package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// server is what the tests install.
var server = Server{Name: "zen", Command: "/opt/zen mcp/zen-mcp", Args: []string{"serve", "--root", "/work/ü"}}

// fixture makes an installer with an empty home in which a client's file has a
// text; no file when the text is "-".
func fixture(t *testing.T, client, text string) (Installer, Client) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home of Zoë")
	c, err := Lookup(client)
	if err != nil {
		t.Fatal(err)
	}
	s := System{OS: "linux", Home: home, Getenv: func(string) string { return "" }}
	if text != "-" {
		put(t, c, s, text)
	}
	return Installer{System: s, State: filepath.Join(home, "state")}, c
}

func put(t *testing.T, c Client, s System, text string) {
	t.Helper()
	at, _ := c.locate(s)
	if err := os.MkdirAll(filepath.Dir(at.file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at.file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// content is the text of the client's file; "-" when there is none.
func content(t *testing.T, c Client, s System) string {
	t.Helper()
	at, _ := c.locate(s)
	text, err := readFile(at.file)
	if err != nil {
		t.Fatal(err)
	}
	if text == nil {
		return "-"
	}
	return string(text)
}

func install(t *testing.T, i Installer, c Client, s Server, force bool) *Change {
	t.Helper()
	change, err := i.Install(c, s, force)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, i, change)
	return change
}

func apply(t *testing.T, i Installer, change *Change) {
	t.Helper()
	if change.Empty() {
		return
	}
	if _, err := i.Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
}

func undo(t *testing.T, i Installer, c Client) {
	t.Helper()
	change, err := i.Undo(c, "zen")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, i, change)
}

// TestInstall: what becomes of a file, byte by byte. The name of a case begins
// with the client.
func TestInstall(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before, want, ok := strings.Cut(string(text), "=== after\n")
			if !ok {
				t.Fatal("no === after")
			}
			client, _, _ := strings.Cut(name, ".")
			for _, nl := range []string{"\n", "\r\n"} {
				for _, mark := range []string{"", string(bom)} {
					style := func(s string) string { return mark + strings.ReplaceAll(s, "\n", nl) }
					i, c := fixture(t, client, style(before))
					install(t, i, c, server, false)
					if got := content(t, c, i.System); got != style(want) {
						t.Fatalf("line end %q, BOM %q:\n%s\nwant\n%s", nl, mark, got, style(want))
					}
					if again, err := i.Install(c, server, false); err != nil || !again.Empty() {
						t.Errorf("the second time: %v, %s", err, again.Diff())
					}
					undo(t, i, c)
					if got := content(t, c, i.System); got != style(before) {
						t.Errorf("undone:\n%s", got)
					}
				}
			}
		})
	}
}
