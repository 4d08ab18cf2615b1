package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core/rawjson"
)

// ParseInput reads the input schema that somebody wrote for a tool. What clients
// and services fail on is put right where nothing is lost by it: no schema is an
// object without properties, null among several types goes, and an array takes
// any items if it names none. The rest is an error. The check of arguments that comes
// with it is strict: see [NewArguments].
func ParseInput(raw json.RawMessage) (*jsonschema.Schema, *Arguments, error) {
	s := &jsonschema.Schema{Type: "object"}
	if kind := rawjson.KindOf(raw); kind != rawjson.Null && kind != rawjson.Invalid {
		s = &jsonschema.Schema{}
		if kind != rawjson.Object || json.Unmarshal(raw, s) != nil {
			return nil, nil, errors.New(`must be a JSON schema, such as {"type": "object", "properties": {…}}`)
		}
	}
	s.PropertyOrder = propertyOrder(raw)
	if s.Type == "" && s.Types == nil {
		s.Type = "object"
	}
	mendSchema(s)
	switch {
	case s.Type != "object":
		return nil, nil, errors.New(`must have the type "object": the arguments of a tool are one`)
	case s.OneOf != nil || s.AnyOf != nil || s.AllOf != nil || s.Ref != "":
		return nil, nil, errors.New("must not have oneOf, anyOf, allOf or $ref at the top: services refuse all tools then")
	}
	for _, name := range s.Required {
		if s.Properties[name] == nil {
			return nil, nil, fmt.Errorf("requires %q, which is not among its properties", name)
		}
	}
	args, err := NewArguments(s, true)
	return s, args, err
}

// encodeSchema encodes a schema that is not [wordless], as the library would. That
// encodes each level anew, by a type with sixty members: the schemas of the built-in
// tools were a tenth of a start.
func encodeSchema(s *jsonschema.Schema) (json.RawMessage, error) {
	if s == nil || reflect.ValueOf(*s).IsZero() {
		return rawjson.Marshal(s)
	}
	var members []rawjson.Member
	var errs []error
	put := func(name string, present bool, value any) {
		if !present {
			return
		}
		var raw json.RawMessage
		var err error
		switch v := value.(type) {
		case string:
			raw = rawjson.AppendString(raw, v)
		case *jsonschema.Schema:
			raw, err = encodeSchema(v)
		case map[string]*jsonschema.Schema:
			raw, err = encodeProperties(v, s.PropertyOrder)
		default:
			raw, err = rawjson.Marshal(v)
		}
		members, errs = append(members, rawjson.Member{Name: name, Value: raw}), append(errs, err)
	}
	put("type", s.Type != "", s.Type)
	put("properties", s.Properties != nil, s.Properties)
	put("items", s.Items != nil, s.Items)
	put("title", s.Title != "", s.Title)
	put("description", s.Description != "", s.Description)
	put("default", len(s.Default) > 0, s.Default)
	put("enum", len(s.Enum) > 0, s.Enum)
	put("minimum", s.Minimum != nil, s.Minimum)
	put("maximum", s.Maximum != nil, s.Maximum)
	put("exclusiveMinimum", s.ExclusiveMinimum != nil, s.ExclusiveMinimum)
	put("minLength", s.MinLength != nil, s.MinLength)
	put("required", len(s.Required) > 0, s.Required)
	put("additionalProperties", s.AdditionalProperties != nil, false)
	return rawjson.JoinMembers(members), errors.Join(errs...)
}

// encodeProperties encodes properties, those in order first.
func encodeProperties(properties map[string]*jsonschema.Schema, order []string) (json.RawMessage, error) {
	members := make([]rawjson.Member, 0, len(properties))
	put := func(name string) error {
		value, err := encodeSchema(properties[name])
		members = append(members, rawjson.Member{Name: name, Value: value})
		return err
	}
	var errs []error
	for _, name := range order {
		if _, ok := properties[name]; ok {
			errs = append(errs, put(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(order, name) {
			errs = append(errs, put(name))
		}
	}
	return rawjson.JoinMembers(members), errors.Join(errs...)
}

// propertyOrder lists the properties as they were written: the library does not
// keep their order, and models fill arguments in the order that they see.
func propertyOrder(schema json.RawMessage) []string {
	members, err := rawjson.Members(schema)
	if err != nil {
		return nil
	}
	i := member(members, "properties")
	if i < 0 {
		return nil
	}
	properties, err := rawjson.Members(members[i].Value)
	if err != nil {
		return nil
	}
	var order []string
	for _, p := range properties {
		if !slices.Contains(order, p.Name) {
			order = append(order, p.Name)
		}
	}
	return order
}

// mendSchema changes what can be put right in a schema and those within it.
func mendSchema(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if i := slices.Index(s.Types, "null"); i >= 0 {
		s.Types = slices.Delete(s.Types, i, i+1)
	}
	if len(s.Types) == 1 {
		s.Type, s.Types = s.Types[0], nil
	}
	if s.Type == "array" && s.Items == nil {
		s.Items = &jsonschema.Schema{Description: "any value"} // without it the library writes true
	}
	mendSchema(s.Items)
	if s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
		mendSchema(s.AdditionalProperties)
	}
	for _, p := range s.Properties {
		mendSchema(p)
	}
}
