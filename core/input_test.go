package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core"
	"zenmcp/core/coretest"
	"zenmcp/core/rawjson"
)

func TestParseInput(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:     `{"type":"object","properties":{}}`,
		`null`: `{"type":"object","properties":{}}`,
		`{}`:   `{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"b":{"type":["string","null"]},"a":{"type":"array"}},"required":["b"]}`: `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"array","items":{"description":"any value"}}},"required":["b"]}`,
		`{"properties":{"a":{"type":"array","items":{"type":["null","array"]}}},"additionalProperties":false}`:  `{"type":"object","properties":{"a":{"type":"array","items":{"type":"array","items":{"description":"any value"}}}},"additionalProperties":false}`,
		`[]`:                                   "error: must be a JSON schema",
		`{"type":1}`:                           "error: must be a JSON schema",
		`{"type":"string"}`:                    `error: must have the type "object"`,
		`{"anyOf":[{}]}`:                       "error: must not have oneOf",
		`{"$ref":"#/a"}`:                       "error: must not have oneOf",
		`{"required":["a"]}`:                   `error: requires "a"`,
		`{"properties":{"a":{"pattern":"("}}}`: "error: ",
	} {
		s, _, err := core.ParseInput(json.RawMessage(in))
		if err != nil {
			if text := "error: " + err.Error(); !strings.HasPrefix(want, "error: ") || !strings.Contains(text, want) {
				t.Errorf("%s: %s, want %s", in, text, want)
			}
			continue
		}
		tool := core.Tool{Name: "t", Description: "d", Input: s, Run: func(context.Context, *core.Call) (*core.Result, error) { return nil, nil }}
		if got, err := tool.InputJSON(); err != nil || string(got) != want {
			t.Errorf("%s became %s (%v), want %s", in, got, err, want)
		}
		if err := coretest.Lint(tool); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// TestInputJSON: what is encoded here is what the library would make of it.
func TestInputJSON(t *testing.T) {
	t.Parallel()
	one, half, length, two := 1.0, 0.5, 1, 2
	no := &jsonschema.Schema{Not: &jsonschema.Schema{}}
	known := &jsonschema.Schema{
		Type: "integer", Title: "T", Description: "with \"quotes\", <b> & ü\u2028", Default: json.RawMessage(` [1, {"a" : 2}] `), Enum: []any{1, "x", nil, 1e21},
		Minimum: &half, Maximum: &one, ExclusiveMinimum: &half, MinLength: &length, Required: []string{"b", "a"}, AdditionalProperties: no,
		Items: &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{}},
	}
	for name, s := range map[string]*jsonschema.Schema{
		"every keyword":      {Properties: map[string]*jsonschema.Schema{"a": known}},
		"order":              {Properties: map[string]*jsonschema.Schema{"a": {}, "b": {Type: "string"}, "c": nil, "<d>": known}, PropertyOrder: []string{"b", "gone", "a"}},
		"anything":           {Properties: map[string]*jsonschema.Schema{"a": {Items: &jsonschema.Schema{}}}},
		"nothing":            {Properties: map[string]*jsonschema.Schema{"a": no}},
		"the library's own":  {Properties: map[string]*jsonschema.Schema{"a": {Type: "string", MinLength: &two, Format: "uri"}}},
		"an order of theirs": {Properties: map[string]*jsonschema.Schema{"b": {AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "null"}}}, "a": {}}, PropertyOrder: []string{"b", "a"}},
	} {
		got, err := core.Tool{Input: s}.InputJSON()
		want, wrong := rawjson.Marshal(s)
		if err != nil || wrong != nil {
			t.Errorf("%s: %v, %v", name, err, wrong)
			continue
		}
		// The library escapes for HTML below the top, whatever it is told.
		for from, to := range map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"} {
			want = bytes.ReplaceAll(want, []byte(from), []byte(to))
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\n%s, want\n%s", name, got, want)
		}
	}
}

// TestInputJSONOfEveryKeyword is that none gets lost: one that is not encoded here is
// left to the library, also in a version that has more of them.
func TestInputJSONOfEveryKeyword(t *testing.T) {
	t.Parallel()
	var some any = "x"
	sub, one, half := &jsonschema.Schema{Type: "string"}, 1, 0.5
	samples := map[reflect.Type]any{}
	for _, sample := range []any{
		"x", true, &one, &half, &some, sub, []string{"x"}, []any{"x"}, []*jsonschema.Schema{sub}, json.RawMessage(`"x"`),
		map[string]any{"x": 1}, map[string]bool{"x": true}, map[string][]string{"x": {"y"}}, map[string]*jsonschema.Schema{"x": sub},
	} {
		samples[reflect.TypeOf(sample)] = sample
	}
	for i := range reflect.TypeFor[jsonschema.Schema]().NumField() {
		field := reflect.TypeFor[jsonschema.Schema]().Field(i)
		if !field.IsExported() || field.Name == "PropertyOrder" { // which is no keyword
			continue
		}
		sample, ok := samples[field.Type]
		if !ok {
			t.Fatalf("%s: there is no sample of %s", field.Name, field.Type)
		}
		s := &jsonschema.Schema{}
		reflect.ValueOf(s).Elem().Field(i).Set(reflect.ValueOf(sample))
		property := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"p": s}}
		want, wrong := rawjson.Marshal(property)
		got, err := core.Tool{Input: property}.InputJSON()
		if err != nil || wrong != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %s, %v; want %s, %v", field.Name, got, err, want, wrong)
		}
	}
}
