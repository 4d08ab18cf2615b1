package core

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestDefineForeign has the schemas that people write, and those that libraries
// fail on.
func TestDefineForeign(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema string
		published    string
		unchecked    string
		good, bad    string // arguments
	}{
		{"none", ``, `{"type":"object"}`, "", `{"a":1}`, `[1]`},
		{"null", `null`, `{"type":"object"}`, "", ``, `5`},
		{"without a type", `{"properties":{"a":{"type":"integer"}},"required":["a"]}`,
			`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, "", `{"a":"1"}`, `{}`},
		{"alternatives", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, "", `{"b":"x"}`, `{}`},
		{"a type with null", `{"properties":{"a":{"type":["string","null"]},"n":{"type":["null"]}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"n":true}}`, "", `{"a":null}`, `{"a":5}`},
		{"an array of anything", `{"properties":{"a":{"type":"array"}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{"description":"any value"}}}}`, "", `{"a":[1,"x"]}`, `{"a":{}}`},
		{"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","properties":{"a":{"type":"number","minimum":1,"exclusiveMinimum":true,"required":true}}}`,
			`{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":1}},"id":"x"}`, "", `{"a":2}`, `{"a":1}`},
		{"definitions", `{"definitions":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/n"}}}`,
			`{"type":"object","definitions":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/n"}}}`, "", `{"a":1}`, `{"a":"x"}`},
		{"a reference to itself", `{"properties":{"a":{"$ref":"#"}}}`, `{"type":"object","properties":{"a":{"$ref":"#"}}}`, "", `{"a":{"a":{}}}`, `5`},
		{"a reference without end", `{"properties":{"b":{"type":"string"}},"$ref":"#"}`, `{"type":"object","properties":{"b":{"type":"string"}}}`, "without end", `{"b":5}`, `5`},
		{"a long way to itself", `{"$defs":{"x":{"allOf":[{"$ref":"#/$defs/y~1z"}]},"y/z":{"anyOf":[{"not":{"$ref":"#/$defs/x"}}]}},"properties":{"a":{"$ref":"#/$defs/x"}}}`,
			`{"type":"object","$defs":{"x":{"allOf":[{"$ref":"#/$defs/y~1z"}]},"y/z":{"anyOf":[{"not":{"$ref":"#/$defs/x"}}]}},"properties":{"a":{"$ref":"#/$defs/x"}}}`, "without end", `{"a":5}`, `5`},
		{"a reference elsewhere", `{"properties":{"a":{"$ref":"https://example.com/s.json"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"https://example.com/s.json"}}}`, "not followed", `{"a":5}`, `5`},
		{"a reference to nothing", `{"properties":{"a":{"$ref":"#/$defs/none"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`, "none", `{"a":5}`, `5`},
		{"a pattern of another language", `{"properties":{"a":{"type":"string","pattern":"(?<!x)y"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","pattern":"(?\u003c!x)y"}}}`, "regexp", `{"a":"xy"}`, `"x"`},
		{"a property that is no schema", `{"description":"d","properties":{"a":5,"b":{"type":"string","minLength":"x","description":"b"},"c":{"type":"integer"}},"required":["a","z"]}`,
			`{"type":"object","description":"d","properties":{"a":{"description":"any value"},"b":{"type":"string","description":"b"},"c":{"type":"integer"}},"required":["a"]}`, "cannot unmarshal", `{"x":1}`, `true`},
		{"a default that is a schema's look-alike", `{"properties":{"a":{"type":"object","default":{"type":"array"}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","default":{"type":"array"}}}}`, "", `{}`, `{"a":1}`},
		{"a list", `[]`, "", "", "", ""},
		{"a text", `"x"`, "", "", "", ""},
		{"another type", `{"type":"string"}`, "", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, unchecked, err := DefineForeign(Tool{Name: "t"}, json.RawMessage(c.schema),
				func(_ context.Context, _ *Call, in json.RawMessage) (*Result, error) {
					return TextResult(string(in)), nil
				})
			if c.published == "" {
				if err == nil {
					t.Errorf("it was taken: %v", d.Input)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (unchecked == nil) != (c.unchecked == "") || unchecked != nil && !strings.Contains(unchecked.Error(), c.unchecked) {
				t.Errorf("unchecked: %v, want %q", unchecked, c.unchecked)
			}
			if text, err := json.Marshal(d.Input); err != nil || !sameJSON(t, string(text), c.published) {
				t.Errorf("published\n%s, %v; want\n%s", text, err, c.published)
			}
			if _, err := d.Run(t.Context(), &Call{Arguments: json.RawMessage(c.good)}); err != nil {
				t.Errorf("%s: %v", c.good, err)
			}
			if res, err := d.Run(t.Context(), &Call{Arguments: json.RawMessage(c.bad)}); err == nil {
				t.Errorf("%s was taken: %v", c.bad, res)
			}
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

// FuzzDefineForeign makes sure that no schema ends the program.
func FuzzDefineForeign(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{}}`)
	f.Add(`{"$ref":"#"}`, `{}`)
	f.Add(`{"$REF":"#"}`, `{}`)
	f.Add(`{"allOf":[{"$dynamicRef":"#x"}],"unevaluatedProperties":false,"dependencies":{"a":["b"]}}`, `{"a":1}`)
	f.Add(`{"properties":{"a":{"default":5,"type":"array","items":[{}],"enum":null}}}`, `{"a":[null]}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		d, _, err := DefineForeign(Tool{Name: "t"}, json.RawMessage(schema),
			func(context.Context, *Call, json.RawMessage) (*Result, error) { return nil, nil })
		if err != nil {
			return
		}
		if _, err := d.InputJSON(); err != nil {
			t.Fatalf("%s cannot be published: %v", schema, err)
		}
		_, _ = d.Run(t.Context(), &Call{Arguments: json.RawMessage(args)})
	})
}
