package usertools

import (
	"encoding/json"
	"io/fs"
	"reflect"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/configs"
	"zenmcp/core/coretest"
)

// TestSchema: the schema of a manifest is its type, and takes and refuses what
// reading takes and refuses.
func TestSchema(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(configs.Schemas(), "tool.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := coretest.TestSchema(text, reflect.TypeFor[manifest]()); err != nil {
		t.Error(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		`{"function": {"name": "f"}, "command": ["x"]}`:                                                               true,
		`{"$schema": "../schema/tool.json", "function": {"name": "f", "parameters": {}}, "command": ["x", "y"]}`:      true,
		`{"function": {"name": "f"}, "command": ["x"], "timeout": 5, "env": {"A": "b"}, "hints": {"readOnly": true}}`: true,
		`{"function": {"name": "f"}}`:                                               false,
		`{"command": ["x"]}`:                                                        false,
		`{"function": {}, "command": ["x"]}`:                                        false,
		`{"function": {"name": "f"}, "command": []}`:                                false,
		`{"function": {"name": "f"}, "command": "x"}`:                               false,
		`{"function": {"name": "f"}, "command": ["x"], "timeout": -1}`:              false,
		`{"function": {"name": "f"}, "command": ["x"], "hints": {"readOnly": "y"}}`: false,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(value); (err == nil) != ok {
			t.Errorf("the schema of %s: %v", text, err)
		}
		doc, err := configs.Parse("x.json", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var m manifest
		warnings, err := doc.Decode(&m)
		if err == nil {
			err = m.check()
		}
		if (err == nil) != ok || len(warnings) > 0 {
			t.Errorf("reading %s: %v, %v", text, err, warnings)
		}
	}
}
