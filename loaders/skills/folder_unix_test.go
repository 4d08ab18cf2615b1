//go:build unix

package skills

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinkedManifest checks that a SKILL.md that is a link out of the folder is
// read as long as it is a SKILL.md, and is no way to read anything else.
func TestLinkedManifest(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "shared.md", plain("x"))
	write(t, root, "secret.txt", "secret")
	write(t, root, "s/x/a.md", "a")
	link := filepath.Join(root, "s", "x", manifestName)
	if err := os.Symlink(filepath.Join(root, "shared.md"), link); err != nil {
		t.Fatal(err)
	}
	folder := folderOf(t, newSource(t, root, filepath.Join(root, "s")), "x")
	if data, err := folder.Read(t.Context(), manifestName); err != nil || string(data) != plain("x") {
		t.Errorf("SKILL.md is %q, %v", data, err)
	}
	if err := errors.Join(os.Remove(link), os.Symlink(filepath.Join(root, "secret.txt"), link)); err != nil {
		t.Fatal(err)
	}
	if data, err := folder.Read(t.Context(), manifestName); err == nil {
		t.Errorf("the link led to %q", data)
	}
	if text, err := folder.Text(t.Context()); err == nil || strings.Contains(text, "secret\n") {
		t.Errorf("the link led to %q", text)
	}
}
