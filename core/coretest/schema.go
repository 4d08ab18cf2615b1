package coretest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"zenmcp/core"
)

// A node is a part of a JSON Schema.
type node map[string]any

// TestSchema reports where a JSON Schema, of draft 7, does not say what
// encoding/json reads into values of a type: each field is a property of the right
// type, each property is a field, and each has a description. "$schema" may stand
// at the top besides.
func TestSchema(schema []byte, of reflect.Type) error {
	var c schemaCheck
	if err := json.Unmarshal(schema, &c.top); err != nil {
		return err
	}
	delete(c.top.sub("properties"), "$schema")
	c.value(c.top, of, "")
	return errors.Join(c.errs...)
}

func (n node) sub(name string) node {
	m, _ := n[name].(map[string]any)
	return m
}

type schemaCheck struct {
	top  node
	errs []error
}

func (c *schemaCheck) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// resolve follows a reference within the schema.
func (c *schemaCheck) resolve(n node) node {
	if name, ok := n["$ref"].(string); ok {
		return c.top.sub("definitions").sub(strings.TrimPrefix(name, "#/definitions/"))
	}
	return n
}

func (c *schemaCheck) value(n node, of reflect.Type, path string) {
	n = c.resolve(n)
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of {
	case reflect.TypeFor[json.RawMessage](): // anything
		return
	case reflect.TypeFor[core.Permissions]():
		c.permissions(n, path)
		return
	}
	want := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer",
		reflect.Slice: "array", reflect.Map: "object", reflect.Struct: "object",
	}
	if n["type"] != want[of.Kind()] {
		c.fail("%s: type %v in the schema, %s in Go", path, n["type"], of)
	}
	switch of.Kind() {
	case reflect.Slice:
		c.value(n.sub("items"), of.Elem(), path+"[]")
	case reflect.Map:
		if of.Elem() != reflect.TypeFor[json.RawMessage]() {
			c.value(n.sub("additionalProperties"), of.Elem(), path+"{}")
		}
	case reflect.Struct:
		c.fields(n, of, path)
	}
}

func (c *schemaCheck) fields(n node, of reflect.Type, path string) {
	properties := n.sub("properties")
	var fields []string
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, name)
		at := path + "." + name
		p := properties.sub(name)
		if p == nil {
			c.fail("%s: is a field of %s, but not in the schema", at, of)
			continue
		}
		c.value(p, f.Type, at)
		if p["description"] == nil && c.resolve(p)["description"] == nil {
			c.fail("%s: has no description", at)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(fields, name) {
			c.fail("%s.%s: is in the schema, but no field of %s", path, name, of)
		}
	}
}

// permissions looks at what decodes itself.
func (c *schemaCheck) permissions(n node, path string) {
	var kinds []string
	for _, k := range core.Kinds() {
		kinds = append(kinds, string(k))
		policy := c.resolve(n.sub("properties").sub(string(k)))
		if got := slices.Sorted(maps.Keys(policy.sub("properties"))); !slices.Equal(got, []string{"allow", "deny"}) {
			c.fail("%s.%s: a policy has %q", path, k, got)
		}
	}
	slices.Sort(kinds)
	if got := slices.Sorted(maps.Keys(n.sub("properties"))); !slices.Equal(got, kinds) {
		c.fail("%s: dimensions %q, want %q", path, got, kinds)
	}
}
