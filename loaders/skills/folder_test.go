package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"zenmcp/core"
)

// folderOf finds the folder of one skill.
func folderOf(t testing.TB, s *Source, id string) core.SkillFiles {
	t.Helper()
	o := discover(t, s)
	for _, skill := range o.Skills(o.Capabilities()) {
		if skill.Name == id {
			return skill.Files
		}
	}
	t.Fatalf("no skill %q", id)
	return nil
}

// TestRead reads what is in a skill's folder, and what is not.
func TestRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := filepath.Join(root, "s")
	write(t, s, "x/SKILL.md", plain("x"))
	write(t, s, "x/a b/ü.md", "inside")
	write(t, s, "x/.git/config", "not the skill's")
	write(t, s, "x/lib/node_modules/m/index.js", "not the skill's")
	write(t, s, "other/SKILL.md", plain("other"))
	write(t, root, "secret.txt", "secret")
	denied := []string{
		"", ".", "..", "/", "./SKILL.md", "SKILL.md/", "a b", "a b/", "a b/../SKILL.md", "../other/SKILL.md", "..\\other\\SKILL.md", "../../secret.txt",
		"a b/../../../secret.txt", "a b//ü.md", filepath.Join(root, "secret.txt"), "SKILL.md\x00", "%2e%2e/other/SKILL.md", ".git/config", "lib/node_modules/m/index.js", "none",
		strings.Repeat("../", 40) + "etc/passwd", strings.Repeat("a/", 5000),
	}
	if runtime.GOOS != "windows" {
		for from, to := range map[string]string{
			"x/out": root, "x/out.txt": filepath.Join(root, "secret.txt"), "x/up.txt": "../../secret.txt", "x/loop": "loop", "x/here": "a b", "x/in.md": "a b/ü.md",
		} {
			if err := os.Symlink(to, filepath.Join(s, from)); err != nil {
				t.Fatal(err)
			}
		}
		denied = append(denied, "out", "out/secret.txt", "out.txt", "up.txt", "loop", "here", "here/ü.md")
	}
	folder := folderOf(t, newSource(t, root, s), "x")
	for _, path := range denied {
		if data, err := folder.Read(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %q, %v", path, data, err)
		}
	}
	files, err := folder.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
		data, err := folder.Read(t.Context(), f.Path)
		if err != nil || int64(len(data)) != f.Size {
			t.Errorf("%q is listed with %d bytes, and read with %d: %v", f.Path, f.Size, len(data), err)
		}
	}
	want := []string{"SKILL.md", "a b/ü.md"}
	if runtime.GOOS != "windows" {
		want = append(want, "in.md") // a link that stays inside
	}
	if !slices.Equal(paths, want) {
		t.Errorf("files %q, want %q", paths, want)
	}
}

// TestDescribe is C83's part of the folder: every digest is that of the bytes
// that are read, also after a change that leaves size and name as they were.
func TestDescribe(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "s/SKILL.md", "---\nname: s\ndescription: d\nmetadata:\n  version: \"1.0\"\n---\n")
	write(t, root, "s/references/a.md", "one\r\ntwo\r\n")
	write(t, root, "s/b.bin", "\x00")
	write(t, root, "t/SKILL.md", "---\nname: t\ndescription: Use: a\n---\n")
	write(t, root, "u/SKILL.md", "---\nname: other\ndescription: d\n---\n")
	write(t, root, "w/SKILL.md", "---\nname: w\ndescription: d\nmetadata:\n  version: 1.0\n---\n")
	write(t, root, "x/SKILL.md", "---\nname: x\ndescription: d\n---\n\xff")
	source := newSource(t, root, root)
	check := func() {
		t.Helper()
		folder := folderOf(t, source, "s")
		m, err := folder.Describe(t.Context())
		if err != nil || string(m.Frontmatter) != `{"name":"s","description":"d","metadata":{"version":"1.0"}}` || len(m.Files) != 3 {
			t.Fatalf("%s with %d files: %v", m.Frontmatter, len(m.Files), err)
		}
		for _, f := range m.Files {
			data, err := folder.Read(t.Context(), f.Path)
			if err != nil || f.Digest != digestOf(data).hash || f.Size != int64(len(data)) {
				t.Errorf("%s: %+v does not describe %q (%v)", f.Path, f, data, err)
			}
		}
	}
	check()
	write(t, root, "s/references/a.md", "one\r\nTWO\r\n")
	check()
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(root, "s", "references", "a.md"), old, old); err != nil {
		t.Fatal(err)
	}
	check() // now it is remembered
	check()
	write(t, root, "s/references/a.md", "one\r\nttt\r\n")
	check()
	for id, want := range map[string]string{"t": "not valid YAML", "u": "name:", "w": "metadata.version", "x": "UTF-8"} {
		if _, err := folderOf(t, source, id).Describe(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is described to hosts that would refuse it: %v", id, err)
		}
	}
}

// TestDescribeLimits checks that skills beyond the limits of the extension are
// not listed, and still load.
func TestDescribeLimits(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "many/SKILL.md", plain("many"))
	for i := range maxFiles {
		write(t, root, fmt.Sprintf("many/f%03d.md", i), "x")
	}
	write(t, root, "big/SKILL.md", plain("big"))
	write(t, root, "big/hole.bin", "")
	if err := os.Truncate(filepath.Join(root, "big", "hole.bin"), maxBytes); err != nil {
		t.Fatal(err)
	}
	source := newSource(t, root, root)
	for _, id := range []string{"many", "big"} {
		if m, err := folderOf(t, source, id).Describe(t.Context()); err == nil {
			t.Errorf("%s is listed with %d files", id, len(m.Files))
		}
	}
	text, err := folderOf(t, source, "many").Text(t.Context())
	if err != nil || !strings.Contains(text, "with 513 files") || !strings.Contains(text, "\nand 313 more\n") || strings.Count(text, "\nf") != maxShown-1 {
		t.Errorf("many files: %.200q, %v", text, err)
	}
}

// TestGone checks what is said of a skill that was removed.
func TestGone(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "x/SKILL.md", plain("x"))
	scope := scopeOf(t, newSource(t, root, root), core.Allow("*"))
	if err := os.RemoveAll(filepath.Join(root, "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t, scope, `{"skill_id":"x"}`); err == nil || !strings.Contains(err.Error(), "is no longer in") {
		t.Errorf("a removed skill: %v", err)
	}
}
