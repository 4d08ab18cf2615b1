package configs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zenmcp/configs"
	"zenmcp/core"
)

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// find returns the places of a user who has nothing yet.
func find(t *testing.T, o configs.Options) *configs.Places {
	t.Helper()
	return newUser(t).find(t, o)
}

func TestNothingOnDisk(t *testing.T) {
	t.Parallel()
	p := find(t, configs.Options{})
	config, warnings, err := p.Config()
	if err != nil || len(warnings) > 0 || len(config.Endpoints) > 0 {
		t.Errorf("Config() = %v, %v, %v", config, warnings, err)
	}
	agent, err := p.Agent(configs.ChooseAgent("", config))
	if err != nil || agent.ID != "default" || agent.File != "" {
		t.Errorf("Agent() = %+v, %v", agent, err)
	}
	for _, kind := range core.Kinds() {
		if !agent.Permissions.Permits(core.Capability{Kind: kind, Name: "x"}) {
			t.Errorf("the default agent permits no %s", kind)
		}
	}
	if entries, _ := os.ReadDir(p.Home); len(entries) > 0 {
		t.Errorf("reading wrote %v", entries)
	}
}

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Files of a foreign project are read too. None may cost much, whatever it holds:
// what is told about one has an end, and so has its size.
func TestHugeFiles(t *testing.T) {
	t.Parallel()
	fill := func(piece string) string { return strings.Repeat(piece, configs.MaxFileSize/64/len(piece)) }
	for name, text := range map[string]string{
		"duplicate keys":   `{` + fill(`"a":1,`) + `}`,
		"near keys":        `{` + fill(`"mesages":1,`) + `}`,
		"wrong types":      `{"messages":[` + fill(`1,`) + `]}`,
		"lists in lists":   strings.Repeat("[", 99) + fill(`1,`) + strings.Repeat("]", 99),
		"unclosed strings": fill(`"`) + `"`,
		"comments":         fill(`/**/`) + `{}`,
	} {
		doc, err := configs.Parse("F", []byte(text))
		if err == nil {
			var warnings []*configs.Problem
			warnings, err = doc.Decode(new(core.AgentDefinition))
			if len(warnings) > 100 {
				t.Errorf("%s: %d warnings", name, len(warnings))
			}
		}
		if problems := configs.Problems(err); len(problems) > 100 {
			t.Errorf("%s: %d errors", name, len(problems))
		}
	}
	_, err := configs.ReadFile(write(t, filepath.Join(t.TempDir(), "x.json"), strings.Repeat(" ", configs.MaxFileSize+1)))
	if err == nil || !strings.HasSuffix(err.Error(), "x.json: is larger than 4 MB") {
		t.Errorf("got %v", err)
	}
}
