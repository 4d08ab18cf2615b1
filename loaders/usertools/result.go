package usertools

import (
	"bytes"
	"encoding/json"
	"strings"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// resultOf makes a result of what a tool answered: an object of MCP with content
// is passed on as it is, everything else is text. One line end is not part of it.
func resultOf(scope *core.Scope, tool, text string) (*core.Result, error) {
	if whole, ok := asResult([]byte(text)); ok {
		fit, err := scope.FitWhole(tool, whole)
		if err != nil {
			return nil, err
		}
		return &core.Result{Whole: fit}, nil
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	return core.TextResult(text), nil
}

// asResult recognises a result of MCP. Clients refuse one in which anything has
// the wrong type, so it has to be right in all.
func asResult(text []byte) (json.RawMessage, bool) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' || !json.Valid(text) {
		return nil, false
	}
	members, err := rawjson.Members(text)
	if err != nil {
		return nil, false
	}
	want := map[string]rawjson.Kind{
		"content": rawjson.Array, "isError": rawjson.Boolean, "structuredContent": rawjson.Object, "_meta": rawjson.Object,
	}
	content := false
	for _, m := range members {
		if kind, known := want[m.Name]; known && rawjson.KindOf(m.Value) != kind {
			return nil, false
		}
		if m.Name != "content" {
			continue
		}
		content = true
		blocks, err := rawjson.Elements(m.Value)
		if err != nil {
			return nil, false
		}
		for _, b := range blocks {
			if !isBlock(b) {
				return nil, false
			}
		}
	}
	return text, content
}

// isBlock checks the members that a content block of its type must have.
func isBlock(block json.RawMessage) bool {
	var b map[string]json.RawMessage
	if json.Unmarshal(block, &b) != nil {
		return false
	}
	var kind string
	if json.Unmarshal(b["type"], &kind) != nil {
		return false
	}
	needs := map[string][]string{
		"text": {"text"}, "image": {"data", "mimeType"}, "audio": {"data", "mimeType"}, "resource_link": {"uri", "name"},
	}
	for _, name := range needs[kind] {
		if rawjson.KindOf(b[name]) != rawjson.String {
			return false
		}
	}
	_, known := needs[kind]
	return known || kind == "resource" && rawjson.KindOf(b["resource"]) == rawjson.Object
}
