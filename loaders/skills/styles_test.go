package skills

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestStyles reads SKILL.md files in the styles in which people write them.
func TestStyles(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "styles", "want.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]struct {
		Description              string
		Loaded, Listed, SubAgent bool
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) < 50 {
		t.Errorf("only %d styles", len(want))
	}
	for id, w := range want {
		text, err := os.ReadFile(filepath.Join("testdata", "styles", id+".md"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseManifest(text, id)
		if loaded := err == nil; loaded != w.Loaded {
			t.Errorf("%s: loaded %v: %v", id, loaded, err)
		}
		if err != nil {
			continue
		}
		if m.description != w.Description || m.subAgent != w.SubAgent {
			t.Errorf("%s: %q, sub-agent %v; want %q, %v", id, m.description, m.subAgent, w.Description, w.SubAgent)
		}
		if listed := m.frontmatter != nil; listed != w.Listed {
			t.Errorf("%s: listed %v: %v", id, listed, m.unlisted)
		}
	}
}

// TestFrontmatterValues checks that hosts are told the values that YAML 1.2 gives.
func TestFrontmatterValues(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"octal":              `{"name":"octal","description":"Numbers of many kinds.","mode":644,"hex":255,"big":12345678901234567000,"under":"1_000","exp":1000}`,
		"date":               `{"name":"date","description":"Has a date.","updated":"2026-01-31","priority":10,"ratio":0.5,"draft":false,"owner":null}`,
		"yes-no":             `{"name":"yes-no","description":"Words that were booleans once.","auto":"yes","country":"NO"}`,
		"folded-paragraphs":  `{"name":"folded-paragraphs","description":"First paragraph goes on.\nSecond paragraph.\n"}`,
		"folded-strip":       `{"name":"folded-strip","description":"Use this skill when the user wants a slide deck.","license":"MIT"}`,
		"literal-keep":       `{"name":"literal-keep","description":"Keeps its line ends.\n\n","license":"MIT"}`,
		"allowed-tools-flow": `{"name":"allowed-tools-flow","description":"As a flow list.","allowed-tools":["Read","Bash(npm test)","Write"]}`,
		"crlf-block":         `{"name":"crlf-block","description":"Saved on Windows,\nin two lines.\n"}`,
		"escapes":            `{"name":"escapes","description":"A quote \" and a tab\tand é."}`,
	} {
		text, err := os.ReadFile(filepath.Join("testdata", "styles", id+".md"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseManifest(text, id)
		if err != nil || string(m.frontmatter) != want {
			t.Errorf("%s: %s, want %s (%v)", id, m.frontmatter, want, err)
		}
	}
}
