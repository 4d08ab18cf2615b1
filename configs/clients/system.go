package clients

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// A System is where a client's files are looked for.
type System struct {
	OS     string // as runtime.GOOS has it
	Home   string // the user's home directory
	Getenv func(string) string
}

// Here is the system that runs, with the user's home directory.
func Here(home string) System { return System{OS: runtime.GOOS, Home: home, Getenv: os.Getenv} }

// A location is one place where a client may have its file.
type location struct {
	file string
	sign string // is there when the client was used here; "" means the file's folder
}

// there reports whether the client was used with this location.
func (l location) there() bool {
	for _, path := range []string{l.file, cmp.Or(l.sign, filepath.Dir(l.file))} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// locate picks the location that the client reads: of several installations the
// first that is there, else where the usual one would have it.
func (c Client) locate(s System) (l location, present bool) {
	all := c.files(s)
	if i := slices.IndexFunc(all, location.there); i >= 0 {
		return all[i], true
	}
	return all[len(all)-1], false
}

// roaming is where programs on Windows keep a user's settings.
func (s System) roaming() string {
	return cmp.Or(s.Getenv("APPDATA"), filepath.Join(s.Home, "AppData", "Roaming"))
}

// xdg is where programs on Linux keep a user's settings.
func (s System) xdg() string {
	if dir := s.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(s.Home, ".config")
}

// appData is what Electron names so, and VS Code and Claude Desktop use:
// electronjs.org/docs/latest/api/app.
func (s System) appData() string {
	switch s.OS {
	case "windows":
		return s.roaming()
	case "darwin":
		return filepath.Join(s.Home, "Library", "Application Support")
	}
	return s.xdg()
}

// claudeDesktop: on Windows the app comes as a package since February 2026, and
// reads only its private copy of %APPDATA%: anthropics/claude-code#26073 and
// #25579. The number behind Claude_ is that of the publisher. What runs on Linux
// uses Electron's folder too: aaddrick/claude-desktop-debian.
func claudeDesktop(s System) []location {
	const name = "claude_desktop_config.json"
	var all []location
	if s.OS == "windows" {
		local := cmp.Or(s.Getenv("LOCALAPPDATA"), filepath.Join(s.Home, "AppData", "Local"))
		packages, _ := os.ReadDir(filepath.Join(local, "Packages")) // none, mostly
		for _, p := range packages {
			if ok, _ := filepath.Match("Claude_*", p.Name()); ok {
				folder := filepath.Join(local, "Packages", p.Name())
				all = append(all, location{filepath.Join(folder, "LocalCache", "Roaming", "Claude", name), folder})
			}
		}
	}
	return append(all, location{file: filepath.Join(s.appData(), "Claude", name)})
}

// claudeCode: servers of the user's scope are at the top of ~/.claude.json, which
// is in $CLAUDE_CONFIG_DIR where that is set: code.claude.com/docs/en/mcp and
// code.claude.com/docs/en/settings.
func claudeCode(s System) []location {
	if dir := s.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return []location{{file: filepath.Join(dir, ".claude.json")}}
	}
	return []location{{filepath.Join(s.Home, ".claude.json"), filepath.Join(s.Home, ".claude")}}
}

// vsCode: mcp.json of the user's default profile:
// code.visualstudio.com/docs/agents/reference/mcp-configuration, with the folders
// of code.visualstudio.com/docs/configure/settings; $VSCODE_PORTABLE is set in the
// terminal of a portable one.
func vsCode(s System) []location {
	if dir := s.Getenv("VSCODE_PORTABLE"); dir != "" {
		return []location{{filepath.Join(dir, "user-data", "User", "mcp.json"), dir}}
	}
	at := func(base, app string) location {
		return location{filepath.Join(base, app, "User", "mcp.json"), filepath.Join(base, app)}
	}
	all := []location{at(s.appData(), "Code")}
	if s.OS == "linux" {
		all = append(all, at(filepath.Join(s.Home, ".var", "app", "com.visualstudio.code", "config"), "Code"))
	}
	return append(all, at(s.appData(), "Code - Insiders"), at(s.appData(), "VSCodium"), at(s.appData(), "Code"))
}

// cursor: cursor.com/docs/mcp.
func cursor(s System) []location {
	return []location{{file: filepath.Join(s.Home, ".cursor", "mcp.json")}}
}

// windsurf: docs.windsurf.com/windsurf/cascade/mcp.
func windsurf(s System) []location {
	return []location{{file: filepath.Join(s.Home, ".codeium", "windsurf", "mcp_config.json")}}
}

// codex: docs/config.md of openai/codex.
func codex(s System) []location {
	return []location{{file: filepath.Join(cmp.Or(s.Getenv("CODEX_HOME"), filepath.Join(s.Home, ".codex")), "config.toml")}}
}

// gemini: geminicli.com/docs/cli/configuration; $GEMINI_CLI_HOME stands for the
// user's home, google-gemini/gemini-cli#23622.
func gemini(s System) []location {
	return []location{{file: filepath.Join(cmp.Or(s.Getenv("GEMINI_CLI_HOME"), s.Home), ".gemini", "settings.json")}}
}

// zed: crates/paths/src/paths.rs of zed-industries/zed.
func zed(s System) []location {
	const name = "settings.json"
	switch s.OS {
	case "windows":
		return []location{{file: filepath.Join(s.roaming(), "Zed", name)}}
	case "darwin":
		return []location{{file: filepath.Join(s.Home, ".config", "zed", name)}}
	}
	usual := location{file: filepath.Join(s.xdg(), "zed", name)}
	return []location{usual, {file: filepath.Join(s.Home, ".var", "app", "dev.zed.Zed", "config", "zed", name)}, usual}
}

// goose: crates/goose/src/config/paths.rs of block/goose, whose library takes
// XDG's folders on macOS too.
func goose(s System) []location {
	const name = "config.yaml"
	if root := s.Getenv("GOOSE_PATH_ROOT"); filepath.IsAbs(root) {
		return []location{{file: filepath.Join(root, "config", name)}}
	}
	if s.OS == "windows" {
		return []location{{file: filepath.Join(s.roaming(), "Block", "goose", "config", name)}}
	}
	return []location{{file: filepath.Join(s.xdg(), "goose", name)}}
}
