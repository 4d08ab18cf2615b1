package core

import (
	"encoding/json"
	"errors"
	"fmt"
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
