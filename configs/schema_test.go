package configs_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/coretest"
)

// schema reads one of the schemas.
func schema(t *testing.T, name string) []byte {
	t.Helper()
	text, err := fs.ReadFile(configs.Schemas(), name+".json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// valid reports what a schema says of a document.
func valid(t *testing.T, name string, doc []byte) error {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(schema(t, name), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(doc, &value); err != nil {
		t.Fatal(err)
	}
	return resolved.Validate(value)
}

func TestSchemasAreTheTypes(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]reflect.Type{
		"config": reflect.TypeFor[core.Config](),
		"agent":  reflect.TypeFor[core.AgentDefinition](),
	} {
		if err := coretest.TestSchema(schema(t, name), of); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemaVectors: what the schemas take and refuse, the loader takes and
// refuses as well.
func TestSchemaVectors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		schema, text string
		ok           bool
	}{
		{"config", `{}`, true},
		{"config", `{"$schema": "./schema/config.json", "mine": 1}`, true},
		{"config", `{"endpoints": [{"id": "a", "baseUrl": "http://x", "apiKey": "${K}"}], "models": [{"id": "m", "endpointId": "a", "defaultParams": {"x": [1]}, "vision": true}], "defaultModel": "m"}`, true},
		{"config", `{"maxToolOutput": 5000, "maxDownloadBytes": 0, "inlineImages": true, "allowPrivateNetwork": false}`, true},
		{"config", `[]`, false},
		{"config", `{"endpoints": {}}`, false},
		{"config", `{"endpoints": [{"name": "no id"}]}`, false},
		{"config", `{"models": [{"id": "m", "endpointId": "a", "maxContextTokens": "9"}], "endpoints": [{"id": "a"}]}`, false},
		{"config", `{"models": [{"id": "m", "endpointId": "a", "maxContextTokens": -1}], "endpoints": [{"id": "a"}]}`, false},
		{"config", `{"maxToolOutput": 0}`, false},
		{"config", `{"maxToolOutput": 1.5}`, false},
		{"config", `{"inlineImages": "yes"}`, false},
		{"agent", `{}`, true},
		{"agent", `{"$schema": "../schema/agent.json", "name": "x", "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b"}]}]}`, true},
		{"agent", `{"permissions": {"tools": {"allow": ["ls"]}, "skills": {"deny": []}}, "roots": ["."], "maxRounds": 3, "modelId": "m"}`, true},
		{"agent", `{"function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}`, true},
		{"agent", `{"permissions": {"tools": {"allow": ["ls"], "deny": ["ls"]}}}`, false},
		{"agent", `{"permissions": {"tools": {}}}`, false},
		{"agent", `{"permissions": {"tools": {"allow": "ls"}}}`, false},
		{"agent", `{"permissions": {"tools": ["ls"]}}`, false},
		{"agent", `{"permissions": []}`, false},
		{"agent", `{"maxRounds": -1}`, false},
		{"agent", `{"modelId": ""}`, false},
		{"agent", `{"messages": "x"}`, false},
		{"agent", `{"roots": "."}`, false},
	} {
		if err := valid(t, test.schema, []byte(test.text)); (err == nil) != test.ok {
			t.Errorf("schema %s of %s: %v", test.schema, test.text, err)
		}
		home := t.TempDir()
		file := filepath.Join(home, map[string]string{"config": "config.json", "agent": "agents/x.json"}[test.schema])
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		places, err := configs.Find(configs.Options{Home: home, Project: home, UserHome: home})
		if err != nil {
			t.Fatal(err)
		}
		var warnings []*configs.Problem
		if test.schema == "config" {
			_, warnings, err = places.Config()
		} else {
			var agent configs.Agent
			agent, err = places.Agent("x")
			warnings = agent.Warnings
		}
		if (err == nil) != test.ok || len(warnings) > 0 {
			t.Errorf("loading %s: %v, warnings %v", test.text, err, warnings)
		}
	}
}

// TestDefaultsNameTheirSchema: each of the factory's files is valid, and names its
// schema by where init puts it.
func TestDefaultsNameTheirSchema(t *testing.T) {
	t.Parallel()
	err := fs.WalkDir(configs.Defaults(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(configs.Defaults(), name)
		if err != nil {
			return err
		}
		doc, err := configs.Parse(name, text)
		if err != nil {
			return err
		}
		var head struct {
			Schema string `json:"$schema"`
		}
		if _, err := doc.Decode(&head); err != nil {
			return err
		}
		file := filepath.ToSlash(filepath.Join(filepath.Dir(name), head.Schema))
		kind, ok := strings.CutPrefix(strings.TrimSuffix(file, ".json"), "schema/")
		if !ok {
			t.Errorf("%s names %q", name, head.Schema)
			return nil
		}
		if err := valid(t, kind, doc.JSON()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
