//go:build unix

package configs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zenmcp/configs"
	"zenmcp/core"
)

func TestTheUsersOwnPlacesThroughALink(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	write(t, filepath.Join(u.home, ".ai-zen", "tools", "x.json"), "{}")
	link := filepath.Join(u.project, "link")
	if err := os.Symlink(u.home, link); err != nil {
		t.Fatal(err)
	}
	p := u.find(t, configs.Options{Project: link})
	places, err := p.Of(core.KindTool)
	if err != nil || len(places) != 1 || places[0].Project {
		t.Errorf("%+v, %v", places, err)
	}
}

// What is no regular file is refused at once; a pipe must not be waited for. A
// link to nowhere is an error and not a missing file, which would mean defaults.
func TestIrregularFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		syscall.Mkfifo(at("pipe"), 0o600), os.Symlink(at("nowhere"), at("link")), os.Mkdir(at("folder"), 0o700),
		os.Symlink(write(t, at("real.json"), "{}"), at("good")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"pipe": "is not a regular file", "link": "is a link to a file that does not exist", "folder": "is a folder, not a file",
		"nothing": "no such file or directory", "real.json/x": "not a directory",
	} {
		_, err := configs.ReadFile(at(name))
		if err == nil || err.Error() != at(name)+": "+want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := configs.ReadFile(at("good")); err != nil {
		t.Error(err)
	}

	p := find(t, configs.Options{})
	if err := os.MkdirAll(filepath.Join(p.Home, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "agents/default.json"} {
		if err := os.Symlink(at("nowhere"), filepath.Join(p.Home, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := p.Config(); err == nil {
		t.Error("a configuration that is away counts as none")
	}
	if _, err := p.Agent("default"); err == nil {
		t.Error("an agent that is away counts as none")
	}
}

func TestNewFilesArePrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "new", "config.json")
	if err := configs.WriteFile(t.Context(), file, []byte("{}"), false); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if got := stat(t, path).Mode().Perm(); got != want {
			t.Errorf("%s has mode %o", path, got)
		}
	}
	// The user's own mode and link stay.
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := configs.WriteFile(t.Context(), link, []byte("[]"), true); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(file); string(text) != "[]" || stat(t, file).Mode().Perm() != 0o640 {
		t.Errorf("%q, mode %o", text, stat(t, file).Mode().Perm())
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info, err)
	}
}

// A failing write says so, keeps the old content, and leaves nothing about.
func TestWriteIntoAFolderThatTakesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "x"), "file, not a folder")
	err := configs.WriteFile(t.Context(), filepath.Join(file, "config.json"), []byte("{}"), true)
	if err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("got %v", err)
	}
}

// TestSecrets: what others could read, and what is none.
func TestSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mcp.json")
	text := `{"env": {"GITHUB_TOKEN": "x", "PATH": "/bin", "API_KEY": "${KEY}", "EMPTY_KEY": "", "TOKENIZER": "x"},
 "headers": [{"Authorization": "Bearer x"}], "maxTokens": 5}`
	for mode, want := range map[os.FileMode][]string{0o600: nil, 0o640: {"1:26", "2:32"}} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		doc, err := configs.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range doc.Secrets() {
			if !errors.Is(p, configs.Exposed) {
				t.Error(p)
			}
			got = append(got, fmt.Sprintf("%d:%d", p.Line, p.Column))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%o: %q, want %q", mode, got, want)
		}
	}
}
