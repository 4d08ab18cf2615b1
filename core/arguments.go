package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core/rawjson"
)

// Arguments checks the arguments of one tool against its schema, and repairs
// them as models really send them (decision 3): nothing, null or an empty text
// for the whole object is {}; JSON text where the schema wants an object, list,
// number or boolean is parsed; a single text where it wants a list of texts
// becomes a list of one. What needs no repair keeps its bytes.
type Arguments struct {
	schema *jsonschema.Schema
	strict bool // refuse unknown names instead of noting them
	// rest checks what this package has no words for; nil if the schema holds
	// nothing of the kind.
	rest *jsonschema.Resolved
}

// NewArguments prepares the check. With strict, unknown arguments are refused,
// which is right for tools that change something: a misspelt argument must not
// do the wrong thing. Otherwise they are dropped with a note.
func NewArguments(schema *jsonschema.Schema, strict bool) (*Arguments, error) {
	a := &Arguments{schema: schema, strict: strict}
	if wordless(schema) {
		resolved, err := schema.Resolve(nil)
		if err != nil {
			return nil, err
		}
		a.rest = resolved
	}
	return a, nil
}

// Check returns the arguments as a JSON object that fits the schema, with
// defaults filled in, and notes for the caller about what was ignored.
func (a *Arguments) Check(raw json.RawMessage) (json.RawMessage, []string, error) {
	raw, err := wholeObject(raw)
	if err != nil {
		return nil, nil, err
	}
	c := checker{strict: a.strict}
	fixed, err := c.value(a.schema, raw)
	if err != nil {
		return nil, nil, err
	}
	if a.rest != nil {
		var v any
		if err := json.Unmarshal(fixed, &v); err != nil {
			return nil, nil, err
		}
		if err := a.rest.Validate(v); err != nil {
			// The library repeats the value in its message, which may be megabytes.
			return nil, nil, errors.New(Clip(err.Error(), 300))
		}
	}
	return fixed, c.notes, nil
}

// wholeObject makes an object of what models send in its place.
func wholeObject(raw json.RawMessage) (json.RawMessage, error) {
	switch kind := rawjson.KindOf(raw); kind {
	case rawjson.Object:
		if !json.Valid(raw) {
			return nil, errors.New("the arguments are not valid JSON: send one object")
		}
		return raw, nil
	case rawjson.Null:
		return json.RawMessage("{}"), nil
	case rawjson.String:
		var text string
		if json.Unmarshal(raw, &text) == nil && rawjson.KindOf([]byte(text)) != rawjson.String {
			return wholeObject(json.RawMessage(text))
		}
	case rawjson.Invalid:
		if strings.TrimSpace(string(raw)) == "" {
			return json.RawMessage("{}"), nil
		}
	}
	return nil, errors.New("the arguments must be one JSON object")
}

type checker struct {
	strict bool
	notes  []string
}

// value checks one value, repaired if need be, and what it holds.
func (c *checker) value(s *jsonschema.Schema, raw json.RawMessage) (json.RawMessage, error) {
	raw, err := repair(s, raw)
	if err != nil {
		return nil, err
	}
	if len(s.Enum) > 0 {
		if err := checkEnum(s.Enum, raw); err != nil {
			return nil, err
		}
	}
	switch rawjson.KindOf(raw) {
	case rawjson.Object:
		return c.object(s, raw)
	case rawjson.Array:
		return c.array(s, raw)
	case rawjson.Number:
		return raw, checkRange(s, raw)
	case rawjson.String:
		if s.MinLength != nil && *s.MinLength == 1 && string(raw) == `""` {
			return nil, errors.New("must not be empty")
		}
	}
	return raw, nil
}

// repair returns raw as the schema's type if it is, or can only mean, that.
func repair(s *jsonschema.Schema, raw json.RawMessage) (json.RawMessage, error) {
	want := s.Type
	got := rawjson.KindOf(raw)
	if want == "" || fits(want, got, raw) {
		return raw, nil
	}
	if got == rawjson.String {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
		inner := json.RawMessage(strings.TrimSpace(text))
		if json.Valid(inner) && fits(want, rawjson.KindOf(inner), inner) {
			return inner, nil
		}
		if want == "array" && s.Items != nil && s.Items.Type == "string" {
			return rawjson.JoinElements([]json.RawMessage{raw}), nil
		}
	}
	return nil, fmt.Errorf("must be %s, not %s", article(want), describe(got, raw))
}

func fits(want string, got rawjson.Kind, raw json.RawMessage) bool {
	if want == "integer" {
		f, err := strconv.ParseFloat(string(raw), 64)
		return got == rawjson.Number && err == nil && f == math.Trunc(f)
	}
	return want == string(got)
}

func article(kind string) string {
	switch kind {
	case "object", "array", "integer":
		return "an " + kind
	case "int", "int64":
		return "a whole number"
	}
	return "a " + kind
}

func describe(kind rawjson.Kind, raw json.RawMessage) string {
	switch kind {
	case rawjson.Null:
		return "null"
	case rawjson.Number, rawjson.Boolean, rawjson.String:
		return article(string(kind)) + " (" + Clip(string(raw), 40) + ")"
	}
	return article(string(kind))
}

func checkEnum(enum []any, raw json.RawMessage) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	names := make([]string, 0, len(enum))
	for _, e := range enum {
		if e == v {
			return nil
		}
		if s, ok := e.(string); ok {
			names = append(names, s)
		}
	}
	given, _ := v.(string)
	if near := Nearest(given, names); near != "" {
		return fmt.Errorf("unknown value %q; did you mean %q?", Clip(given, 80), near)
	}
	if len(names) > 20 {
		return fmt.Errorf("unknown value %s; there are %d to choose from, see the tool's schema", Clip(string(raw), 80), len(names))
	}
	return fmt.Errorf("unknown value %s; choose one of %q", Clip(string(raw), 80), names)
}

func checkRange(s *jsonschema.Schema, raw json.RawMessage) error {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return fmt.Errorf("%s is not a number that can be used", Clip(string(raw), 40))
	}
	switch {
	case s.Minimum != nil && f < *s.Minimum:
		return fmt.Errorf("must be at least %v, not %s", *s.Minimum, raw)
	case s.Maximum != nil && f > *s.Maximum:
		return fmt.Errorf("must be at most %v, not %s", *s.Maximum, raw)
	case s.ExclusiveMinimum != nil && f <= *s.ExclusiveMinimum:
		return fmt.Errorf("must be more than %v, not %s", *s.ExclusiveMinimum, raw)
	}
	return nil
}

func (c *checker) array(s *jsonschema.Schema, raw json.RawMessage) (json.RawMessage, error) {
	if s.Items == nil {
		return raw, nil
	}
	elements, err := rawjson.Elements(raw)
	if err != nil {
		return nil, err
	}
	changed := false
	for i, e := range elements {
		fixed, err := c.value(s.Items, e)
		if err != nil {
			return nil, InField(strconv.Itoa(i), err)
		}
		changed = changed || !same(fixed, e)
		elements[i] = fixed
	}
	if !changed {
		return raw, nil
	}
	return rawjson.JoinElements(elements), nil
}

func (c *checker) object(s *jsonschema.Schema, raw json.RawMessage) (json.RawMessage, error) {
	if len(s.Properties) == 0 && len(s.Required) == 0 && !closed(s) {
		return raw, nil
	}
	members, err := rawjson.Members(raw)
	if err != nil {
		return nil, err
	}
	changed := false
	kept := members[:0]
	given := make(map[string]bool, len(members))
	for _, m := range members {
		property, known := s.Properties[m.Name]
		if !known {
			keep, err := c.unknown(s, m.Name)
			if err != nil {
				return nil, err
			}
			if keep {
				kept = append(kept, m)
			}
			changed = changed || !keep
			continue
		}
		if string(m.Value) == "null" && property.Type != "" && property.Type != "null" && !slices.Contains(s.Required, m.Name) {
			changed = true // null for an optional argument means that it is not given
			continue
		}
		fixed, err := c.value(property, m.Value)
		if err != nil {
			return nil, InField(m.Name, err)
		}
		changed = changed || !same(fixed, m.Value)
		given[m.Name] = true
		kept = append(kept, rawjson.Member{Name: m.Name, Value: fixed})
	}
	for _, name := range s.Required {
		if !given[name] {
			return nil, InField(name, errors.New("is required"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if p := s.Properties[name]; p.Default != nil && !given[name] {
			kept = append(kept, rawjson.Member{Name: name, Value: p.Default})
			changed = true
		}
	}
	if !changed {
		return raw, nil
	}
	return rawjson.JoinMembers(kept), nil
}

// same reports whether two values are the same bytes at the same place, which is
// how a value that needed no repair comes back.
func same(a, b json.RawMessage) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// closed reports whether the schema forbids properties that it does not name.
func closed(s *jsonschema.Schema) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
}

// unknown decides about an argument that the schema does not name.
func (c *checker) unknown(s *jsonschema.Schema, name string) (keep bool, err error) {
	if !closed(s) {
		return true, nil
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	if near := Nearest(name, names); c.strict || near != "" {
		text := fmt.Sprintf("unknown argument %q", Clip(name, 80))
		if near != "" {
			return false, fmt.Errorf("%s; did you mean %q?", text, near)
		}
		return false, fmt.Errorf("%s; it takes %q", text, names)
	}
	c.notes = append(c.notes, fmt.Sprintf("note: the unknown argument %q was ignored; it takes %q", Clip(name, 80), names))
	return false, nil
}

// wordless reports whether the schema uses keywords that checker does not know.
func wordless(s *jsonschema.Schema) bool {
	if s == nil {
		return false
	}
	known := &jsonschema.Schema{
		Type: s.Type, Title: s.Title, Description: s.Description, Default: s.Default, Enum: s.Enum,
		Minimum: s.Minimum, Maximum: s.Maximum, ExclusiveMinimum: s.ExclusiveMinimum,
		Properties: s.Properties, PropertyOrder: s.PropertyOrder, Required: s.Required, Items: s.Items,
	}
	if closed(s) {
		known.AdditionalProperties = s.AdditionalProperties
	}
	if s.MinLength != nil && *s.MinLength == 1 {
		known.MinLength = s.MinLength
	}
	a, errA := json.Marshal(s)
	b, errB := json.Marshal(known)
	if errA != nil || errB != nil || string(a) != string(b) {
		return true
	}
	for _, p := range s.Properties {
		if wordless(p) {
			return true
		}
	}
	return wordless(s.Items)
}
