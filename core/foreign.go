package core

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core/rawjson"
)

// DefineForeign makes a tool whose parameters are somebody else's JSON Schema: of
// any draft, with whatever people write. What is published of it is what clients
// take: an object's schema, without alternatives at the top, without null among
// types, with items in every array. Arguments are repaired and checked as
// [Define] does, against all of the schema, and run gets them as JSON.
//
// A schema that cannot be checked, because of a reference to nothing or a pattern
// of another language, is published all the same; unchecked says why, and run
// gets any object. The error is for what is no object's schema.
func DefineForeign(tool Tool, parameters json.RawMessage, run func(context.Context, *Call, json.RawMessage) (*Result, error)) (d Definition, unchecked, err error) {
	written, err := foreignObject(parameters)
	if err != nil {
		return Definition{}, nil, err
	}
	modernize(written)
	args, unchecked := foreignArguments(written, !tool.Hints.ReadOnly)
	for _, word := range []string{"$schema", "oneOf", "anyOf", "allOf", "$ref", "not", "if", "then", "else"} {
		delete(written, word)
	}
	written["type"] = "object"
	simplify(written)
	if tool.Input, err = foreignInput(written); err != nil {
		return Definition{}, nil, err
	}
	tool.Run = args.around(run)
	return Definition{Tool: tool}, unchecked, nil
}

func foreignObject(parameters json.RawMessage) (map[string]any, error) {
	if len(parameters) == 0 || rawjson.KindOf(parameters) == rawjson.Null {
		return map[string]any{}, nil
	}
	var schema map[string]any
	dec := json.NewDecoder(bytes.NewReader(parameters))
	dec.UseNumber()
	if err := dec.Decode(&schema); err != nil {
		return nil, errors.New(`must be a JSON schema, {"type": "object", "properties": {…}}`)
	}
	if kind, ok := schema["type"]; ok && kind != "object" {
		return nil, InField("type", fmt.Errorf("must be \"object\", since arguments have names, not %v", kind))
	}
	return schema, nil
}

// foreignArguments prepares the check of a schema. The library panics on some.
func foreignArguments(written map[string]any, strict bool) (args *Arguments, unchecked error) {
	anything := &Arguments{schema: &jsonschema.Schema{Type: "object"}}
	defer func() {
		if p := recover(); p != nil {
			args, unchecked = anything, errors.New(Clip(fmt.Sprint(p), 300))
		}
	}()
	schema, err := schemaOf(written)
	if err == nil {
		err = endless(schema)
	}
	if err == nil {
		args, err = NewArguments(schema, strict)
	}
	if err == nil {
		_, _, _ = args.Check(nil) // what panics does so now
	}
	if err != nil {
		return anything, errors.New(Clip(err.Error(), 300))
	}
	return args, nil
}

func schemaOf(v any) (*jsonschema.Schema, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, err
	}
	return &schema, nil
}

// foreignInput is the schema to publish. Of a property that the library cannot
// hold, its name, type and description are.
func foreignInput(written map[string]any) (*jsonschema.Schema, error) {
	if input, err := schemaOf(written); err == nil {
		return input, nil
	}
	properties, _ := written["properties"].(map[string]any)
	kept := map[string]any{}
	for name, property := range properties {
		kept[name] = map[string]any{"description": "any value"}
		if _, err := schemaOf(property); err == nil {
			kept[name] = property
		} else if p, ok := property.(map[string]any); ok {
			short := map[string]any{"description": p["description"], "type": p["type"]}
			maps.DeleteFunc(short, func(_ string, v any) bool { s, ok := v.(string); return !ok || s == "array" })
			kept[name] = short
		}
	}
	input := map[string]any{"type": "object", "properties": kept}
	if required, ok := written["required"].([]any); ok {
		input["required"] = slices.DeleteFunc(required, func(name any) bool { s, ok := name.(string); return !ok || kept[s] == nil })
	}
	if text, ok := written["description"].(string); ok {
		input["description"] = text
	}
	return schemaOf(input)
}

// eachSchema calls f for a schema and all schemas in it. What stands where values
// do (default, enum, const, examples) is none.
func eachSchema(v any, f func(map[string]any)) {
	schema, ok := v.(map[string]any)
	if !ok {
		return
	}
	f(schema)
	for word, inner := range schema {
		switch inner := inner.(type) {
		case map[string]any:
			switch word {
			case "properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies":
				for _, s := range inner {
					eachSchema(s, f)
				}
			case "default", "const":
			default:
				eachSchema(inner, f)
			}
		case []any:
			if word != "enum" && word != "examples" && word != "default" && word != "const" {
				for _, s := range inner {
					eachSchema(s, f)
				}
			}
		}
	}
}

// modernize rewrites what draft 4 has in another form. Of the drafts the library
// knows two by name, and reads all others like the newest.
func modernize(schema map[string]any) {
	if draft, ok := schema["$schema"].(string); !ok || !strings.Contains(draft, "draft-07") {
		delete(schema, "$schema")
	}
	eachSchema(schema, func(s map[string]any) {
		for exclusive, limit := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
			on, ok := s[exclusive].(bool)
			if !ok {
				continue
			}
			delete(s, exclusive)
			if value, ok := s[limit]; ok && on {
				s[exclusive] = value
				delete(s, limit)
			}
		}
		if _, ok := s["required"].(bool); ok {
			delete(s, "required") // draft 3 has it in the property
		}
	})
}

// simplify takes away what clients fail on.
func simplify(schema map[string]any) {
	eachSchema(schema, func(s map[string]any) {
		if types, ok := s["type"].([]any); ok {
			types = slices.DeleteFunc(slices.Clone(types), func(t any) bool { return t == "null" })
			if s["type"] = types; len(types) == 1 {
				s["type"] = types[0]
			} else if len(types) == 0 {
				delete(s, "type")
			}
		}
		if _, ok := s["items"]; !ok && s["type"] == "array" {
			s["items"] = map[string]any{"description": "any value"}
		}
	})
}
