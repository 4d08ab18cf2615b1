package coretest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"zenmcp/core"
)

// Lint reports what clients are known to fail on in the definition of a tool,
// and what a model needs and does not find (design §4).
func Lint(tool core.Tool) error {
	var errs []error
	complain := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("tool %q: "+format, append([]any{tool.Name}, args...)...))
	}
	if err := core.CheckName(tool.Name); err != nil {
		complain("%w", err)
	}
	if strings.TrimSpace(tool.Description) == "" {
		complain("has no description")
	}
	if tool.Run == nil {
		complain("has nothing to run")
	}
	if tool.Hints.ReadOnly && tool.Hints.Destructive {
		complain("says that it changes nothing, and that it destroys")
	}
	text, err := json.Marshal(tool.Input)
	var schema map[string]any
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err != nil || schema["type"] != "object" {
		complain("its input schema must be an object's, not %s", core.Clip(string(text), 80))
		return errors.Join(errs...)
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf", "$ref"} {
		if _, ok := schema[word]; ok {
			complain("its input schema has %s at the top", word)
		}
	}
	lintSchema("input", schema, complain)
	return errors.Join(errs...)
}

// lintSchema checks a schema and those within it. path says where it is.
func lintSchema(path string, schema map[string]any, complain func(string, ...any)) {
	if types, ok := schema["type"].([]any); ok && slices.Contains(types, any("null")) {
		complain("%s has a type with null among others", path)
	}
	if _, ok := schema["items"]; schema["type"] == "array" && !ok {
		complain("%s is an array without items", path)
	}
	for _, word := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[word].(map[string]any); ok {
			lintSchema(path+"."+word, inner, complain)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if inner, ok := properties[name].(map[string]any); ok {
			lintSchema(path+"."+name, inner, complain)
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := properties[name.(string)]; !ok {
			complain("%s requires %q, which it does not have", path, name)
		}
	}
}
