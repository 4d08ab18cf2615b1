package mcpserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// skillStyles is where the SKILL.md files are that people could have written.
const skillStyles = "../loaders/skills/testdata/styles"

// skillHome makes a home with skills in all styles, one with files of many kinds,
// and one that the agent is denied. It returns the names of those that hosts of
// the skills extension are told of.
func skillHome(t *testing.T) (dir string, listed []string) {
	t.Helper()
	dir = t.TempDir()
	write := func(path string, data []byte) {
		t.Helper()
		path = filepath.Join(dir, "skills", filepath.FromSlash(path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(skillStyles, "want.json"))
	if err != nil {
		t.Fatal(err)
	}
	var styles map[string]struct{ Listed bool }
	if err := json.Unmarshal(data, &styles); err != nil {
		t.Fatal(err)
	}
	for name, s := range styles {
		text, err := os.ReadFile(filepath.Join(skillStyles, name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		write(name+"/SKILL.md", text)
		if s.Listed {
			listed = append(listed, name)
		}
	}
	write("a-rich/SKILL.md", []byte("---\nname: a-rich\ndescription: Has files of many kinds.\n---\n\n# Rich\n"))
	write("a-rich/references/über uns & co?.md", []byte("\uFEFFone\r\ntwo\r\n"))
	write("a-rich/references/deep/a#1.txt", []byte(""))
	write("a-rich/scripts/run.sh", []byte("#!/bin/sh\necho hi\n"))
	write("a-rich/assets/one.bin", []byte{0xff})
	write("secret/SKILL.md", []byte("---\nname: secret\ndescription: Denied.\n---\n"))
	listed = append(listed, "a-rich")
	slices.Sort(listed)
	return dir, listed
}

const denySecret = "skills:secret"

// skillTarget is target for the skills of a home.
func skillTarget(t *testing.T, http bool, dir string) []string {
	t.Helper()
	if http {
		return []string{serveHTTP(t, dir, "--deny", denySecret)}
	}
	return []string{"--", program(t), "serve", "--cwd", dir, "--home", dir, "--deny", denySecret}
}

// TestSkillsClient has the official client list, read and verify every skill, in
// each of the four ways to a skill.
func TestSkillsClient(t *testing.T) {
	t.Parallel()
	program(t)
	for _, era := range []string{"legacy", "modern"} {
		for _, http := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s http=%v", era, http), func(t *testing.T) {
				t.Parallel()
				dir, listed := skillHome(t)
				out, errs, err := node(t, append([]string{"skills.mjs", era}, skillTarget(t, http, dir)...)...)
				if err != nil {
					t.Fatalf("%v\n%s%s", err, out, errs)
				}
				var r skillReport
				if err := json.Unmarshal([]byte(out), &r); err != nil {
					t.Fatalf("%v in %s", err, out)
				}
				r.check(t, listed)
			})
		}
	}
}

// skillReport is what testdata/e2e/skills.mjs prints.
type skillReport struct {
	Supported, DirectoryRead   bool
	Verified                   map[string][]string
	Folder, Prompts, Resources []string
	Tool, Prompt, Resource     string
	Denied                     struct{ Tool, Prompt, Resource, Skill string }
}

func (r *skillReport) check(t *testing.T, listed []string) {
	t.Helper()
	if !r.Supported || !r.DirectoryRead {
		t.Error("the extension is not declared")
	}
	var verified []string
	for name := range r.Verified {
		verified = append(verified, name)
	}
	slices.Sort(verified)
	if !slices.Equal(verified, listed) {
		t.Errorf("verified %q, want %q", verified, listed)
	}
	want := []string{"SKILL.md", "assets/one.bin", "references/deep/a#1.txt", "references/über uns & co?.md", "scripts/run.sh"}
	if !slices.Equal(r.Verified["a-rich"], want) {
		t.Errorf("files %q, want %q", r.Verified["a-rich"], want)
	}
	if want := []string{"deep", "über uns & co?.md"}; !slices.Equal(r.Folder, want) {
		t.Errorf("the folder holds %q, want %q", r.Folder, want)
	}
	for way, text := range map[string]string{"tool": r.Tool, "prompt": r.Prompt, "resource": r.Resource} {
		if !strings.Contains(text, "description: Has files of many kinds.\n---\n\n# Rich\n") {
			t.Errorf("the %s gives %q", way, text)
		}
	}
	if !slices.Contains(r.Prompts, "unquoted-colon") || slices.Contains(r.Prompts, "secret") || slices.Contains(r.Prompts, "nameless") {
		t.Errorf("prompts %q", r.Prompts)
	}
	if !slices.Contains(r.Resources, "skill://unquoted-colon/SKILL.md") || slices.ContainsFunc(r.Resources, func(u string) bool { return strings.Contains(u, "secret") }) {
		t.Errorf("resources %q", r.Resources)
	}
	for way, c := range map[string]struct{ got, want string }{
		"tool": {r.Denied.Tool, `unknown skill "secret"`}, "prompt": {r.Denied.Prompt, `-32602 unknown prompt "secret"`},
		"resource": {r.Denied.Resource, "-32602 resource not found"}, "skill": {r.Denied.Skill, `-32602 unknown skill "skill://secret/SKILL.md"`},
	} {
		if !strings.HasPrefix(c.got, c.want) {
			t.Errorf("the denied %s says %q, want %q", way, c.got, c.want)
		}
	}
}

func TestInspectorVerifiesSkills(t *testing.T) {
	t.Parallel()
	program(t)
	for _, era := range []string{"legacy", "auto", "modern"} {
		for _, http := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s http=%v", era, http), func(t *testing.T) {
				t.Parallel()
				dir, listed := skillHome(t)
				args := slices.Concat([]string{inspector, "--cli", "--protocol-era", era, "--method", "skills/list", "--verify", "--require-digests"},
					skillTarget(t, http, dir))
				out, errs, err := node(t, args...)
				if got := strings.Count(out, `"skill://`); err != nil || got < len(listed) {
					t.Errorf("%v: %d URIs of %d skills in\n%s%s", err, got, len(listed), out, errs)
				}
			})
		}
	}
}

func TestSkillsConformance(t *testing.T) {
	t.Parallel()
	program(t)
	dir, _ := skillHome(t)
	url := serveHTTP(t, dir, "--deny", denySecret)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, name := range []string{"sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"} {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				out, errs, err := node(t, "node_modules/@modelcontextprotocol/conformance/dist/index.js",
					"server", "--url", url, "--scenario", name, "--spec-version", version, "--force", "-o", dir)
				passed, failed := conformanceChecks(t, dir)
				if passed < 5 || len(failed) > 0 {
					t.Errorf("%d passed, failed: %q\n%v\n%s%s", passed, failed, err, out, errs)
				}
			})
		}
	}
}
