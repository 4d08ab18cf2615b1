package core_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"zenmcp/core"
	"zenmcp/core/coretest"
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
