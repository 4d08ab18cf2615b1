package coretest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"zenmcp/core"
)

func TestTestSchema(t *testing.T) {
	t.Parallel()
	type inner struct {
		N *int `json:"n,omitempty"`
	}
	type outer struct {
		Text  string            `json:"text"`
		List  []inner           `json:"list"`
		Map   map[string]string `json:"map"`
		Any   json.RawMessage   `json:"any"`
		Perms core.Permissions  `json:"perms"`
	}
	const good = `{"type": "object", "properties": {
		"$schema": {"type": "string"},
		"text": {"type": "string", "description": "d"},
		"list": {"type": "array", "description": "d", "items": {"$ref": "#/definitions/inner"}},
		"map": {"type": "object", "description": "d", "additionalProperties": {"type": "string"}},
		"any": {"description": "d"},
		"perms": {"description": "d", "properties": {"tools": {"$ref": "#/definitions/policy"}, "skills": {"$ref": "#/definitions/policy"},
			"mcps": {"$ref": "#/definitions/policy"}, "subagents": {"$ref": "#/definitions/policy"}}}
	}, "definitions": {
		"inner": {"type": "object", "properties": {"n": {"type": "integer", "description": "d"}}},
		"policy": {"properties": {"allow": {}, "deny": {}}}
	}}`
	if err := TestSchema([]byte(good), reflect.TypeFor[outer]()); err != nil {
		t.Error(err)
	}
	for _, test := range []struct{ from, to, want string }{
		{`"text": {"type": "string"`, `"text": {"type": "number"`, ".text: type number in the schema, string in Go"},
		{`"text": {`, `"txt": {`, ".text: is a field of coretest.outer, but not in the schema"},
		{`"text": {`, `"more": {}, "text": {`, ".more: is in the schema, but no field of coretest.outer"},
		{`{"type": "integer", "description": "d"}`, `{"type": "integer"}`, ".list[].n: has no description"},
		{`"additionalProperties": {"type": "string"}`, `"additionalProperties": {}`, ".map{}: type <nil> in the schema, string in Go"},
		{`"deny": {}`, `"denied": {}`, `.perms.tools: a policy has ["allow" "denied"]`},
		{`"mcps": {`, `"servers": {`, `.perms: dimensions ["servers" "skills" "subagents" "tools"]`},
	} {
		text := strings.Replace(good, test.from, test.to, 1)
		if err := TestSchema([]byte(text), reflect.TypeFor[outer]()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s → %s: %v\nwant %s", test.from, test.to, err, test.want)
		}
	}
}
