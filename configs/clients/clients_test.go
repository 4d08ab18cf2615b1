package clients

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zenmcp/configs"
)

// everywhere calls f for each client on each system.
func everywhere(t *testing.T, f func(t *testing.T, i Installer, c Client)) {
	for _, c := range All() {
		for _, goos := range []string{"linux", "darwin", "windows"} {
			t.Run(c.Name+"/"+goos, func(t *testing.T) {
				t.Parallel()
				home := filepath.Join(t.TempDir(), "home of Zoë")
				f(t, Installer{
					System: System{OS: goos, Home: home, Getenv: func(string) string { return "" }},
					State:  filepath.Join(home, "state"),
				}, c)
			})
		}
	}
}

// other writes a file of the client's with a server of somebody else's.
func other(t *testing.T, i Installer, c Client, name string) string {
	t.Helper()
	i.State = filepath.Join(t.TempDir(), "unused")
	install(t, i, c, Server{Name: name, Command: "npx", Args: []string{"-y", "other"}}, false)
	return content(t, c, i.System)
}

// TestFromNothing: without a file one is made, twice changes nothing, and undone
// it is gone.
func TestFromNothing(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, i Installer, c Client) {
		change := install(t, i, c, server, false)
		if change.File.Exists || change.File.Present {
			t.Errorf("found %+v", change.File)
		}
		f, err := c.Read(i.System)
		if err != nil || !f.Present || len(f.Entries) != 1 {
			t.Fatalf("%+v, %v", f, err)
		}
		e := f.Entries[0]
		if !e.Ours() || e.Name != "zen" || e.Command != server.Command || fmt.Sprint(e.Args) != fmt.Sprint(server.Args) {
			t.Errorf("%+v", e)
		}
		info, err := os.Stat(f.Path)
		if err != nil || filepath.Separator == '/' && info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if again, err := i.Install(c, server, false); err != nil || !again.Empty() {
			t.Errorf("the second time: %v, %s", err, again.Diff())
		}
		undo(t, i, c)
		if got := content(t, c, i.System); got != "-" {
			t.Errorf("undone:\n%s", got)
		}
	})
}

// TestForeignEntry: another server of the name is replaced only with force, and
// comes back.
func TestForeignEntry(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, i Installer, c Client) {
		before := other(t, i, c, "zen")
		_, err := i.Install(c, server, false)
		var p *configs.Problem
		if !errors.As(err, &p) || p.Line == 0 || !strings.Contains(err.Error(), `is another server, which runs "npx"; choose a name with --name, or replace it with --force`) {
			t.Errorf("without force: %v", err)
		}
		if _, err := i.Undo(c, "zen"); err == nil || !strings.Contains(err.Error(), `is not an entry of zen-mcp, which runs "npx", and stays`) {
			t.Errorf("undone before: %v", err)
		}
		install(t, i, c, server, true)
		if f, err := c.Read(i.System); err != nil || len(f.Entries) != 1 || !f.Entries[0].Ours() {
			t.Errorf("%+v, %v", f, err)
		}
		undo(t, i, c)
		if got := content(t, c, i.System); got != before {
			t.Errorf("undone:\n%s\nwas\n%s", got, before)
		}
	})
}

// TestLaterEdits: undo takes its own entry back, and what came later stays.
func TestLaterEdits(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, i Installer, c Client) {
		before := other(t, i, c, "first")
		install(t, i, c, server, false)
		later := other(t, i, c, "later")
		undo(t, i, c)
		f, err := c.Read(i.System)
		if err != nil || len(f.Entries) != 2 || f.Entries[0].Name != "first" || f.Entries[1].Name != "later" {
			t.Fatalf("%+v, %v", f, err)
		}
		got := content(t, c, i.System)
		for line := range strings.Lines(before) {
			if !strings.Contains(got, strings.TrimRight(line, "\n,")) {
				t.Errorf("%q is lost:\n%s", line, got)
			}
		}
		if len(got) >= len(later) || strings.Contains(got, server.Command) {
			t.Errorf("undone:\n%s", got)
		}
	})
}

// TestReplacedThenEdited: the entry that was there before comes back also when the
// file has changed elsewhere since.
func TestReplacedThenEdited(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, i Installer, c Client) {
		other(t, i, c, "zen")
		install(t, i, c, server, true)
		other(t, i, c, "later")
		undo(t, i, c)
		f, err := c.Read(i.System)
		if err != nil || len(f.Entries) != 2 || f.Entries[0].Command != "npx" || fmt.Sprint(f.Entries[0].Args) != "[-y other]" || f.Entries[1].Name != "later" {
			t.Errorf("%+v, %v\n%s", f, err, content(t, c, i.System))
		}
	})
}

// TestUndoWithoutRecord: where the record of the change is lost, or the backup, undo takes away an
// entry of ours, and nothing else.
func TestUndoWithoutRecord(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, i Installer, c Client) {
		before := other(t, i, c, "first")
		install(t, i, c, server, false)
		lost := i.State
		if i.System.OS == "linux" {
			lost = filepath.Join(lost, "backups")
		}
		if err := os.RemoveAll(lost); err != nil {
			t.Fatal(err)
		}
		undo(t, i, c)
		if got := content(t, c, i.System); got != before {
			t.Errorf("undone:\n%s\nwas\n%s", got, before)
		}
	})
}

// TestUpdate: an entry of ours gets the new flags and keeps what the user has
// added; undo goes back to before the first time.
func TestUpdate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ client, before, added, from, want string }{
		{"vscode", "{\n  \"inputs\": []\n}\n", "    \"zen\": { // mine\n      \"env\": {\"A\": \"1\"},", "    \"zen\": {", "\"args\": [\"serve\", \"--deny\", \"exec\"]"},
		{"codex", "# mine\n", "[mcp_servers.zen]\nenabled = true # for now", "[mcp_servers.zen]", "args = [\"serve\", \"--deny\", \"exec\"]"},
		{"goose", "# mine\n", "    enabled: true\n    env_keys:\n    - A # a key", "    enabled: true", "args: [serve, \"--deny\", exec]"},
	} {
		i, c := fixture(t, test.client, test.before)
		install(t, i, c, server, false)
		edited := strings.Replace(content(t, c, i.System), test.from, test.added, 1)
		put(t, c, i.System, edited)
		next := Server{Name: "zen", Command: "/new/zen-mcp", Args: []string{"serve", "--deny", "exec"}}
		install(t, i, c, next, false)
		got := content(t, c, i.System)
		if !strings.Contains(got, test.added) || !strings.Contains(got, test.want) || !strings.Contains(got, "/new/zen-mcp") || strings.Contains(got, "/opt/zen mcp") {
			t.Errorf("%s:\n%s", test.client, got)
		}
		if again, err := i.Install(c, next, false); err != nil || !again.Empty() {
			t.Errorf("%s the second time: %v", test.client, err)
		}
		undo(t, i, c)
		if f, err := c.Read(i.System); err != nil || len(f.Entries) != 0 {
			t.Errorf("%s undone: %+v, %v", test.client, f, err)
		}
		if got := content(t, c, i.System); !strings.HasPrefix(got, strings.TrimRight(test.before, "}\n")) {
			t.Errorf("%s undone:\n%s", test.client, got)
		}
	}
}

// TestTwiceThenUndo: undo brings back the bytes of before the first time.
func TestTwiceThenUndo(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, i Installer, c Client) {
		before := other(t, i, c, "first")
		install(t, i, c, server, false)
		install(t, i, c, Server{Name: "zen", Command: "/new/zen-mcp", Args: []string{"serve"}}, false)
		undo(t, i, c)
		if got := content(t, c, i.System); got != before {
			t.Errorf("undone:\n%s\nwas\n%s", got, before)
		}
		if again, err := i.Undo(c, "zen"); err != nil || !again.Empty() {
			t.Errorf("undone again: %v", err)
		}
	})
}

// TestBroken: what cannot be understood or changed is refused with its place.
func TestBroken(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ client, text, want string }{
		{"claude-desktop", "{\n  \"mcpServers\": {\n", ":3:1: the file ends here, but the { in line 2 is not closed"},
		{"claude-code", "[]", ":1:1: the file must hold one object, { … }"},
		{"cursor", "null", ":1:1: the file must hold one object, { … }"},
		{"windsurf", "{\n \"mcpServers\": []}", ":2:16: mcpServers must be an object, { … }"},
		{"gemini", "{\"mcpServers\": {}} x", ":1:20: "},
		{"zed", "{'a': 1}", ":1:2: unexpected '; text and names stand in double quotes"},
		{"vscode", "\xff\xfe{\x00", ":1:1: is UTF-16 text; save it as UTF-8"},
		{"cursor", `{"mcpServers": {"zen": {"command": "a"}, "zen": {"command": "b"}}}`, ":1:1: mcpServers.zen: is there more than once; keep one of them"},
		{"codex", "a = 1\nb = \n", ":2:"},
		{"codex", "a = 1\na = 2\n", ":2:"},
		{"codex", "mcp_servers = {a = {command = \"a\"}}\n", "mcp_servers.zen: is written in a way that cannot be changed without touching the rest; change it by hand, so that it says:\n\n" +
			"[mcp_servers.zen]\ncommand = \"/opt/zen mcp/zen-mcp\"\nargs = [\"serve\", \"--root\", \"/work/ü\"]\n"},
		{"goose", "a: [1\n", ":1:4: sequence end token ']' not found"},
		{"goose", "- a\n", ":1:1: "},
		{"goose", "a: 1\n---\nb: 1\n", ":1:1: holds several documents"},
		{"goose", "extensions: {a: {cmd: a}}\n", "extensions.zen: is written in a way that cannot be changed without touching the rest"},
		{"goose", "x: &x\n  a: {}\nextensions: *x\n", "extensions.zen: is written in a way"},
	} {
		i, c := fixture(t, test.client, test.text)
		if _, err := i.Install(c, server, true); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %q: %v\nwant %s", test.client, test.text, err, test.want)
		}
		if got := content(t, c, i.System); got != test.text {
			t.Errorf("%s %q became %q", test.client, test.text, got)
		}
	}
}

// TestSectionOfNothing: null is as good as no section.
func TestSectionOfNothing(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, i Installer, c Client) {
		text := map[format]string{
			jsonFormat{}: "{\n  \"" + c.section + "\": null, // mine\n}\n", tomlFormat{}: "[" + c.section + "]\n", yamlFormat{}: c.section + ":\nx: 1\n",
		}[c.format]
		put(t, c, i.System, text)
		install(t, i, c, server, false)
		if f, err := c.Read(i.System); err != nil || len(f.Entries) != 1 || !f.Entries[0].Ours() {
			t.Errorf("%+v, %v\n%s", f, err, content(t, c, i.System))
		}
		undo(t, i, c)
		if got := content(t, c, i.System); got != text {
			t.Errorf("undone:\n%s\nwas\n%s", got, text)
		}
	})
}

// TestFileItself: mode, links and who else writes.
func TestFileItself(t *testing.T) {
	t.Parallel()
	i, c := fixture(t, "cursor", "{}\n")
	i.Now = func() time.Time { return time.Date(2027, 1, 2, 3, 4, 5, 6000, time.UTC) }
	at, _ := c.locate(i.System)
	real := filepath.Join(i.System.Home, "dotfiles.json")
	if err := os.Rename(at.file, real); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, at.file); err != nil {
		t.Skip("links need a right here")
	}
	if err := os.Chmod(real, 0o640); err != nil {
		t.Fatal(err)
	}
	change, err := i.Install(c, server, false)
	if err != nil {
		t.Fatal(err)
	}
	backup, err := i.Apply(t.Context(), change)
	if want := filepath.Join(i.State, "backups", "cursor", "20270102-030405.000006-mcp.json"); err != nil || backup != want {
		t.Errorf("backup %q, %v", backup, err)
	}
	for file, want := range map[string]string{backup: "{}\n", real: content(t, c, i.System)} {
		text, err := os.ReadFile(file)
		info, _ := os.Lstat(file)
		if err != nil || string(text) != want || info.Mode().Perm() != 0o640 {
			t.Errorf("%s is %q, %v, %v", file, text, info.Mode(), err)
		}
	}
	if target, err := os.Readlink(at.file); err != nil || target != real {
		t.Errorf("the link leads to %q, %v", target, err)
	}

	// What somebody else wrote between the look and the change is not lost.
	stale, err := i.Undo(c, "zen")
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, i.System, "{\"x\": 1}\n")
	if _, err := i.Apply(t.Context(), stale); err == nil || !strings.HasSuffix(err.Error(), "mcp.json: has changed in the meantime; try again") {
		t.Errorf("changed in between: %v", err)
	}

	if err := os.Chmod(real, 0o440); err != nil {
		t.Fatal(err)
	}
	if change, err = i.Install(c, server, false); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Apply(t.Context(), change); err == nil || !strings.Contains(err.Error(), "mcp.json: is read-only; make it writable first") {
		t.Errorf("read-only: %v", err)
	}
	if got := content(t, c, i.System); got != "{\"x\": 1}\n" {
		t.Errorf("it became %q", got)
	}
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Install(c, server, false); err == nil || !strings.HasSuffix(err.Error(), "mcp.json: is a link to a file that does not exist") {
		t.Errorf("link to nowhere: %v", err)
	}
}

// TestDiffHidesValues: a diff goes to a terminal, and from there to others; what
// other servers are given is nobody's business.
func TestDiffHidesValues(t *testing.T) {
	t.Parallel()
	for client, text := range map[string]string{
		"claude-code": `{"mcpServers":{"a":{"command":"a","env":{"KEY":"SECRET"},"args":["-t","SECRET \" SECRET"]}},"token":"SECRET"}`,
		"vscode":      "{\n  \"servers\": {\n    \"a\": {\"headers\": {\"Authorization\": \"Bearer SECRET\"}}\n  }\n}\n",
		"codex":       "[mcp_servers.a]\ncommand = 'SECRET'\nargs = [\"SECRET\", 'SECRET']\nenv = { A = \"SECRET\" }\n",
		"goose":       "extensions:\n  a:\n    cmd: SECRET x\n    args: [SECRET, \"SECRET\"]\n    list:\n    - SECRET\n    envs:\n      A: SECRET # SECRET\n",
		"codex ":      "[mcp_servers.a]\ncommand = \"a\"\nkey = \"\"\"\nSECRET\nSECRET==\nSECRET=\n\"\"\"\n",
		"goose ":      "# SECRET\nextensions:\n  a:\n    text: |\n      SECRET\n      a SECRET\n    b: >-\n      SECRET\n",
	} {
		i, c := fixture(t, strings.TrimSpace(client), text)
		change, err := i.Install(c, server, false)
		if err != nil {
			t.Fatal(err)
		}
		if d := change.Diff(); strings.Contains(d, "SECRET") || !strings.Contains(d, server.Command) || !strings.Contains(d, "+++ ") {
			t.Errorf("%s:\n%s", client, d)
		}
	}
}

// TestDiffHidesVariables: neither what the user adds to an entry of ours is shown,
// nor an entry that ours replaces and that undo brings back.
func TestDiffHidesVariables(t *testing.T) {
	t.Parallel()
	for client, text := range map[string]string{
		"claude-code": `{"mcpServers": {"zen": {"args": ["OLD"], "env": {"KEY": "SECRET"}, "command": "%s", "headers": ["SECRET"]}}}`,
		"codex":       "[mcp_servers.zen]\nargs = [\"OLD\"]\ncommand = \"%s\"\nkey = \"SECRET\"\n[mcp_servers.zen.env]\nKEY = \"SECRET\"\n",
		"goose":       "extensions:\n  zen:\n    args: [OLD]\n    envs:\n      KEY: SECRET\n    cmd: %s\n    key: SECRET\n",
	} {
		for command, shown := range map[string]bool{"/old/zen-mcp": true, "npx SECRET": false} {
			i, c := fixture(t, client, fmt.Sprintf(text, command))
			change := install(t, i, c, server, true)
			back, err := i.Undo(c, "zen")
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{change.Diff(), back.Diff()} {
				if strings.Contains(d, "SECRET") || strings.Contains(d, "OLD") != shown || strings.Contains(d, command) != shown || !strings.Contains(d, server.Command) {
					t.Errorf("%s:\n%s", client, d)
				}
			}
		}
	}
}

// TestDiffOfLargeFile: what is far from the change costs nothing, and the lines keep their numbers.
func TestDiffOfLargeFile(t *testing.T) {
	t.Parallel()
	i, c := fixture(t, "cursor", "{\n"+strings.Repeat("  // SECRET\n", 1000)+"  \"a\": 1,\n"+
		"  \"mcpServers\": {\n    \"b\": {}\n  }"+strings.Repeat(",\n  \"k\": \"SECRET\"", 1000)+"\n}\n")
	change, err := i.Install(c, server, false)
	if err != nil {
		t.Fatal(err)
	}
	want := "@@ -1001,7 +1001,12 @@\n   // …\n   \"a\": …,\n   \"mcpServers\": {\n-    \"b\": {}\n+    \"b\": {},\n+    \"zen\": {\n+      \"type\": \"stdio\",\n" +
		"+      \"command\": \"/opt/zen mcp/zen-mcp\",\n+      \"args\": [\"serve\", \"--root\", \"/work/ü\"]\n+    }\n   },\n   \"k\": …,\n   \"k\": …,\n"
	if _, got, _ := strings.Cut(change.Diff(), ".json\n+++"); !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
