package skills

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"zenmcp/configs"
	"zenmcp/core"
)

// vectors are behaviours that were recorded, amended where it was decided
// otherwise.
type vectors struct {
	Parse []struct {
		ID, Name, Content, Dir string
		Want                   struct {
			Loaded, SubAgent, Tolerant bool
			Description                string
			Warnings                   []string
		}
	}
	Discovery []struct {
		ID, Name string
		Files    []vectorFile
		Dirs     []string
		Want     []struct {
			ID, Description, Dir string
			SubAgent             bool
		}
	}
}

type vectorFile struct{ Path, Type, Text, Target string }

func readVectors(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "skills.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// fieldOf is the field that a warning is about.
func fieldOf(err error) string {
	name, _, _ := strings.Cut(err.Error(), ":")
	return name
}

func TestParseVectors(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Parse {
		m, err := parseManifest([]byte(v.Content), v.Dir)
		if loaded := err == nil; loaded != v.Want.Loaded {
			t.Errorf("%s (%s): loaded %v (%v), want %v", v.ID, v.Name, loaded, err, v.Want.Loaded)
			continue
		}
		if err != nil {
			continue
		}
		var warnings []string
		for _, w := range m.warnings {
			warnings = append(warnings, fieldOf(w))
		}
		slices.Sort(warnings)
		if m.description != strings.TrimSpace(v.Want.Description) || m.subAgent != v.Want.SubAgent || !slices.Equal(slices.Compact(warnings), v.Want.Warnings) {
			t.Errorf("%s (%s): got %q, sub-agent %v, warnings %q; want %+v", v.ID, v.Name, m.description, m.subAgent, m.warnings, v.Want)
		}
		if v.Want.Tolerant && (m.frontmatter != nil || m.unlisted == nil) {
			t.Errorf("%s (%s): hosts are told frontmatter that they cannot read: %s", v.ID, v.Name, m.frontmatter)
		}
	}
}

func TestDiscoveryVectors(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Discovery {
		root := t.TempDir()
		if !lay(t, root, v.Files) {
			continue
		}
		var given []string
		for _, d := range v.Dirs {
			if info, err := os.Stat(filepath.Join(root, d)); err == nil && info.IsDir() {
				given = append(given, filepath.Join(root, d))
			}
		}
		o := discover(t, newSource(t, root, given...))
		if len(o.skills) != len(v.Want) {
			t.Errorf("%s (%s): %d skills, want %d", v.ID, v.Name, len(o.skills), len(v.Want))
			continue
		}
		for i, s := range o.skills {
			w := v.Want[i]
			dir := filepath.FromSlash(strings.ReplaceAll(w.Dir, "{{ROOT}}", filepath.ToSlash(root)))
			if s.id != w.ID || s.manifest.description != w.Description || s.manifest.subAgent != w.SubAgent || s.dir != dir {
				t.Errorf("%s (%s): skill %q %q %v in %s, want %+v", v.ID, v.Name, s.id, s.manifest.description, s.manifest.subAgent, s.dir, w)
			}
		}
	}
}

// lay makes the files of a vector. It reports false where the system cannot.
func lay(t *testing.T, root string, files []vectorFile) bool {
	t.Helper()
	for _, f := range files {
		path := filepath.Join(root, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch f.Type {
		case "dir":
			err = os.MkdirAll(path, 0o755)
		case "symlink":
			if runtime.GOOS == "windows" {
				return false
			}
			err = os.Symlink(f.Target, path)
		default:
			err = os.WriteFile(path, []byte(f.Text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return true
}

// newSource is a source of the folders given and of nothing else.
func newSource(t testing.TB, root string, given ...string) *Source {
	t.Helper()
	places, err := configs.Find(configs.Options{
		Home: filepath.Join(root, "no-home"), Project: root, UserHome: filepath.Join(root, "no-user"), Skills: given,
		Getenv: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return New(places)
}

func discover(t testing.TB, s *Source) *offer {
	t.Helper()
	found, err := s.Discover(t.Context())
	for _, o := range core.Omissions(err) {
		if o.Reason == "" {
			t.Errorf("%v has no reason", o)
		}
	}
	return found.(*offer)
}

// write makes one file of a skill.
func write(t testing.TB, root, path, text string) {
	t.Helper()
	path = filepath.Join(root, filepath.FromSlash(path))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func plain(name string) string {
	return "---\nname: " + name + "\ndescription: about " + name + "\n---\n# " + name + "\n"
}

func TestDiscoverEndsWithContext(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "x/SKILL.md", plain("x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := core.Discover(ctx, newSource(t, root, root)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
