package skills

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zenmcp/core"
	"zenmcp/core/coretest"
)

// pipelineVectors are what the tools show and answer, amended where it was
// decided otherwise: descriptions are shortened in lists, failures are errors.
type pipelineVectors struct {
	Disclosure []struct {
		ID, Name string
		Files    []vectorFile
		Want     map[string]struct {
			Enum  []any
			Lines []string
		}
	}
	LoadSkill []struct {
		ID, Name string
		Files    []vectorFile
		SkillID  string `json:"skill_id"`
		Denied   []string
		Want     struct {
			Found   bool
			Dir     string
			Files   []string
			Content string
		}
	}
}

func readPipeline(t *testing.T) (v pipelineVectors) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "pipeline.json"))
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil || len(v.Disclosure) == 0 || len(v.LoadSkill) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	return v
}

func TestDisclosureVectors(t *testing.T) {
	t.Parallel()
	for _, v := range readPipeline(t).Disclosure {
		root := t.TempDir()
		lay(t, root, v.Files)
		if err := os.MkdirAll(filepath.Join(root, "skills"), 0o755); err != nil {
			t.Fatal(err)
		}
		agent := core.AgentDefinition{ID: "main", Permissions: core.AllowAll()}
		published := agentScope(t, newSource(t, root, filepath.Join(root, "skills")), coretest.Replies(), agent).Tools()
		for name, want := range v.Want {
			tool, ok := published.Tool(name)
			if !ok {
				if len(want.Enum) > 0 {
					t.Errorf("%s (%s): %s is not published", v.ID, v.Name, name)
				}
				continue
			}
			in := tool.Input.Properties["skill_id"]
			lines := strings.Split(in.Description, "\n")[1:]
			if !slices.Equal(in.Enum, want.Enum) || !slices.Equal(lines, want.Lines) {
				t.Errorf("%s (%s): %s offers %q, %q; want %+v", v.ID, v.Name, name, in.Enum, lines, want)
			}
		}
	}
}

func TestLoadVectors(t *testing.T) {
	t.Parallel()
	for _, v := range readPipeline(t).LoadSkill {
		root := t.TempDir()
		lay(t, root, v.Files)
		// One that may be used, so that the tool is there.
		write(t, root, "skills/zz/SKILL.md", plain("zz"))
		scope := scopeOf(t, newSource(t, root, filepath.Join(root, "skills")), core.Deny(v.Denied...))
		text, err := load(t, scope, `{"skill_id":%q}`, v.SkillID)
		if found := err == nil; found != v.Want.Found {
			t.Errorf("%s (%s): %q, %v", v.ID, v.Name, text, err)
		}
		if err != nil {
			continue
		}
		dir := filepath.FromSlash(strings.ReplaceAll(v.Want.Dir, "{{ROOT}}", filepath.ToSlash(root)))
		want := fmt.Sprintf("The skill %q is in %s, with 1 file:\n%s\n\n%s", v.SkillID, dir, strings.Join(v.Want.Files, "\n"), v.Want.Content)
		if text != want {
			t.Errorf("%s (%s): %q, want %q", v.ID, v.Name, text, want)
		}
	}
}
