package clients

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFiles: where the clients look, on every system. Paths are below the home.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		os, client string
		env        map[string]string // values below the home
		made       []string          // folders that are there
		want       string
		present    bool
	}{
		{os: "darwin", client: "claude-desktop", want: "Library/Application Support/Claude/claude_desktop_config.json"},
		{os: "linux", client: "claude-desktop", want: ".config/Claude/claude_desktop_config.json"},
		{os: "linux", client: "claude-desktop", env: map[string]string{"XDG_CONFIG_HOME": "cfg"}, made: []string{"cfg/Claude"}, want: "cfg/Claude/claude_desktop_config.json", present: true},
		{os: "windows", client: "claude-desktop", want: "AppData/Roaming/Claude/claude_desktop_config.json"},
		{os: "windows", client: "claude-desktop", env: map[string]string{"APPDATA": "Redirected"}, made: []string{"Redirected/Claude"}, want: "Redirected/Claude/claude_desktop_config.json", present: true},
		// The packaged app never sees the usual folder, even if an older version has left one.
		{os: "windows", client: "claude-desktop", made: []string{"AppData/Roaming/Claude", "AppData/Local/Packages/Claude_pzs8sxrjxfjjc"},
			want: "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json", present: true},
		{os: "windows", client: "claude-desktop", env: map[string]string{"LOCALAPPDATA": "L"}, made: []string{"L/Packages/Claude_x", "L/Packages/Other_y"},
			want: "L/Packages/Claude_x/LocalCache/Roaming/Claude/claude_desktop_config.json", present: true},
		{os: "darwin", client: "claude-code", want: ".claude.json"},
		{os: "windows", client: "claude-code", made: []string{".claude"}, want: ".claude.json", present: true},
		{os: "linux", client: "claude-code", env: map[string]string{"CLAUDE_CONFIG_DIR": "cc"}, want: "cc/.claude.json"},
		{os: "darwin", client: "vscode", want: "Library/Application Support/Code/User/mcp.json"},
		{os: "windows", client: "vscode", made: []string{"AppData/Roaming/Code"}, want: "AppData/Roaming/Code/User/mcp.json", present: true},
		{os: "linux", client: "vscode", want: ".config/Code/User/mcp.json"},
		{os: "linux", client: "vscode", made: []string{".config/Code - Insiders"}, want: ".config/Code - Insiders/User/mcp.json", present: true},
		{os: "linux", client: "vscode", made: []string{".config/Code - Insiders", ".config/Code"}, want: ".config/Code/User/mcp.json", present: true},
		{os: "linux", client: "vscode", made: []string{".var/app/com.visualstudio.code/config/Code"}, want: ".var/app/com.visualstudio.code/config/Code/User/mcp.json", present: true},
		{os: "windows", client: "vscode", env: map[string]string{"VSCODE_PORTABLE": "P"}, made: []string{"P"}, want: "P/user-data/User/mcp.json", present: true},
		{os: "darwin", client: "cursor", want: ".cursor/mcp.json"},
		{os: "windows", client: "cursor", made: []string{".cursor"}, want: ".cursor/mcp.json", present: true},
		{os: "linux", client: "windsurf", want: ".codeium/windsurf/mcp_config.json"},
		{os: "windows", client: "codex", want: ".codex/config.toml"},
		{os: "linux", client: "codex", env: map[string]string{"CODEX_HOME": "x"}, want: "x/config.toml"},
		{os: "linux", client: "gemini", want: ".gemini/settings.json"},
		{os: "linux", client: "gemini", env: map[string]string{"GEMINI_CLI_HOME": "g"}, want: "g/.gemini/settings.json"},
		{os: "darwin", client: "zed", want: ".config/zed/settings.json"},
		{os: "darwin", client: "zed", env: map[string]string{"XDG_CONFIG_HOME": "cfg"}, want: ".config/zed/settings.json"},
		{os: "windows", client: "zed", want: "AppData/Roaming/Zed/settings.json"},
		{os: "linux", client: "zed", env: map[string]string{"XDG_CONFIG_HOME": "cfg"}, want: "cfg/zed/settings.json"},
		{os: "linux", client: "zed", made: []string{".var/app/dev.zed.Zed/config/zed"}, want: ".var/app/dev.zed.Zed/config/zed/settings.json", present: true},
		{os: "darwin", client: "goose", want: ".config/goose/config.yaml"},
		{os: "windows", client: "goose", want: "AppData/Roaming/Block/goose/config/config.yaml"},
		{os: "linux", client: "goose", env: map[string]string{"GOOSE_PATH_ROOT": "r"}, want: "r/config/config.yaml"},
	} {
		home := filepath.Join(t.TempDir(), "Zoë's home")
		for _, dir := range test.made {
			if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		c, err := Lookup(test.client)
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.Read(System{OS: test.os, Home: home, Getenv: func(name string) string {
			if value, ok := test.env[name]; ok {
				return filepath.Join(home, value)
			}
			return ""
		}})
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(home, test.want); f.Path != want || f.Present != test.present || f.Exists || len(f.Entries) > 0 {
			t.Errorf("%s on %s with %v and %v: %+v\nwant %s, present %v", test.client, test.os, test.env, test.made, f, want, test.present)
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	_, err := Lookup("claude_desktop")
	if want := `unknown client "claude_desktop"; did you mean "claude-desktop"?; there are claude-desktop, claude-code, vscode, cursor, windsurf, codex, gemini, zed, goose`; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	for _, c := range All() {
		if c.Limits.Shown("zen", "readFile") == "" || c.Title == "" || c.Restart == "" || c.section == "" {
			t.Errorf("%+v lacks something", c)
		}
	}
	cursor, err := Lookup("cursor")
	if got := cursor.Limits.Shown("zen", "ls"); err != nil || got != "zen:ls" {
		t.Errorf("%s, %v", got, err)
	}
}
