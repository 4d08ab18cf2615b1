package mcps

import (
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/configs"
)

// TestSchema: the schema of mcp.json knows the fields that are read, and takes and
// refuses what reading takes and refuses.
func TestSchema(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(configs.Schemas(), "mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	server := s.Definitions["server"]
	if got, want := slices.Sorted(maps.Keys(server.Properties)), slices.Sorted(slices.Values(known)); !slices.Equal(got, want) {
		t.Errorf("the schema has %q\nthe reader knows %q", got, want)
	}
	for name, p := range server.Properties {
		if p.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
	var named []string
	for _, value := range s.Definitions["transport"].Enum {
		named = append(named, value.(string))
	}
	if want := slices.Sorted(maps.Keys(transports)); !slices.Equal(slices.Sorted(slices.Values(named)), want) {
		t.Errorf("transports %q, want %q", named, want)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	for entry, ok := range map[string]bool{
		`{"command": "x"}`: true,
		`{"command": "x", "args": ["a", 1, true], "env": {"A": "b", "N": 1}, "cwd": ".", "type": "stdio", "description": "d"}`:          true,
		`{"url": "https://x/mcp", "headers": {"A": "b"}, "type": "http", "protocol": "modern", "shared": true, "oauth": true}`:          true,
		`{"url": "http://x", "transport": "sse", "oauth": {"clientId": "c", "clientSecret": "s", "scopes": ["a"], "callbackPort": 80}}`: true,
		`{"command": "x", "timeout": 1, "maxTotalTimeout": 2.5, "connectTimeout": 3, "idleTimeout": 0}`:                                 true,
		`{"disabled": true}`:                           true,
		`{"command": "x", "mine": 1}`:                  true,
		`{}`:                                           false,
		`[]`:                                           false,
		`{"command": 1}`:                               false,
		`{"command": "x", "args": "a"}`:                false,
		`{"command": "x", "args": [null]}`:             false,
		`{"command": "x", "env": {"A": []}}`:           false,
		`{"command": "x", "type": "pipe"}`:             false,
		`{"command": "x", "timeout": 0}`:               false,
		`{"command": "x", "timeout": "1s"}`:            false,
		`{"command": "x", "shared": "y"}`:              false,
		`{"url": "ftp://x"}`:                           false,
		`{"url": "https://x", "protocol": "new"}`:      false,
		`{"url": "https://x", "oauth": "y"}`:           false,
		`{"url": "https://x", "oauth": {"scopes": 1}}`: false,
	} {
		var value any
		if err := json.Unmarshal([]byte(`{"$schema": "./schema/mcp.json", "mcpServers": {"s": `+entry+`}}`), &value); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(value); (err == nil) != ok {
			t.Errorf("the schema of %s: %v", entry, err)
		}
		read := parseEntry("s", json.RawMessage(entry), func(string) (string, bool) { return "", false })
		if (read.err == nil && read.warnings == nil) != ok {
			t.Errorf("reading %s: %v, %v", entry, read.err, read.warnings)
		}
	}
}
