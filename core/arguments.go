package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
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
// defaults filled in, and notes for the caller about what was ignored. An error
// carries the notes in its own text; it never repeats a long value.
func (a *Arguments) Check(raw json.RawMessage) (json.RawMessage, []string, error) {
	raw, err := wholeObject(raw)
	if err != nil {
		return nil, nil, err
	}
	c := checker{strict: a.strict}
	fixed, err := c.value(a.schema, raw)
	if err == nil && a.rest != nil {
		var v any
		if err = json.Unmarshal(fixed, &v); err == nil {
			err = a.rest.Validate(v)
		}
		if err != nil { // both repeat the value, which may be megabytes
			err = errors.New(Clip(err.Error(), 300))
		}
	}
	if err != nil {
		return nil, nil, withNotes(err, c.notes)
	}
	return fixed, c.notes, nil
}

// withNotes adds notes to an error, whose cause they may name.
func withNotes(err error, notes []string) error {
	if err == nil || len(notes) == 0 {
		return err
	}
	return fmt.Errorf("%w; %s", err, strings.Join(notes, "; "))
}

// wholeObject makes an object of what models send in its place.
func wholeObject(raw json.RawMessage) (json.RawMessage, error) {
	if object, ok := asObject(raw); ok {
		return object, nil
	}
	if !json.Valid(raw) {
		return nil, errors.New("the arguments are not valid JSON: send one object")
	}
	if rawjson.KindOf(raw) == rawjson.String {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
		if object, ok := asObject(json.RawMessage(text)); ok {
			return object, nil
		}
	}
	return nil, fmt.Errorf("the arguments must be one JSON object, not %s", describe(raw))
}

func asObject(raw json.RawMessage) (json.RawMessage, bool) {
	switch rawjson.KindOf(raw) {
	case rawjson.Object:
		return raw, json.Valid(raw)
	case rawjson.Null, rawjson.Invalid:
		text := bytes.TrimSpace(raw)
		return json.RawMessage("{}"), len(text) == 0 || string(text) == "null"
	}
	return nil, false
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
	if fixed, ok := fit(s.Type, raw); ok {
		return fixed, nil
	}
	if rawjson.KindOf(raw) == rawjson.String {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
		inner := json.RawMessage(strings.TrimSpace(text))
		if fixed, ok := fit(s.Type, inner); ok && json.Valid(inner) {
			return fixed, nil
		}
		if s.Type == "array" && s.Items != nil && s.Items.Type == "string" {
			return rawjson.JoinElements([]json.RawMessage{raw}), nil
		}
	}
	return nil, fmt.Errorf("must be %s, not %s", article(s.Type), describe(raw))
}

// fit reports whether raw is of the type, and gives a whole number in digits
// alone: to JSON Schema 5000.0 is an integer, to Go it is not.
func fit(want string, raw json.RawMessage) (json.RawMessage, bool) {
	got := rawjson.KindOf(raw)
	if want != "integer" {
		return raw, want == "" || want == string(got)
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if got != rawjson.Number || err != nil || f != math.Trunc(f) {
		return nil, false
	}
	if bytes.ContainsAny(raw, ".eE") && math.Abs(f) < 1<<53 {
		return strconv.AppendInt(nil, int64(f), 10), true
	}
	return raw, true
}

func article(kind string) string {
	switch kind {
	case "object", "array", "integer":
		return "an " + kind
	}
	return "a " + kind
}

func describe(raw json.RawMessage) string {
	switch kind := rawjson.KindOf(raw); kind {
	case rawjson.Null:
		return "null"
	case rawjson.Number, rawjson.Boolean, rawjson.String:
		return article(string(kind)) + " (" + Clip(string(raw), 40) + ")"
	case rawjson.Invalid:
		return Clip(string(raw), 40)
	default:
		return article(string(kind))
	}
}

func checkEnum(enum []any, raw json.RawMessage) error {
	var v any
	valid := json.Unmarshal(raw, &v) == nil
	choices := make([]string, len(enum))
	for i, e := range enum {
		if valid && jsonschema.Equal(e, v) {
			return nil
		}
		choices[i] = fmt.Sprint(e)
	}
	given, ok := v.(string)
	if !ok {
		given = string(raw)
	}
	text := fmt.Sprintf("unknown value %q", Clip(given, 80))
	if near := Nearest(given, choices); near != "" {
		return fmt.Errorf("%s; did you mean %q?", text, near)
	}
	if len(choices) > 20 {
		return fmt.Errorf("%s; there are %d to choose from, see the tool's schema", text, len(choices))
	}
	return fmt.Errorf("%s; choose one of %q", text, choices)
}

func checkRange(s *jsonschema.Schema, raw json.RawMessage) error {
	given := Clip(string(raw), 40)
	f, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case err != nil:
		return fmt.Errorf("%s is not a number that can be used", given)
	case s.Minimum != nil && f < *s.Minimum:
		return fmt.Errorf("must be at least %v, not %s", *s.Minimum, given)
	case s.Maximum != nil && f > *s.Maximum:
		return fmt.Errorf("must be at most %v, not %s", *s.Maximum, given)
	case s.ExclusiveMinimum != nil && f <= *s.ExclusiveMinimum:
		return fmt.Errorf("must be more than %v, not %s", *s.ExclusiveMinimum, given)
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
	given := make(map[string]bool, len(members))
	for _, m := range members {
		given[m.Name] = given[m.Name] || !omitted(s, m)
	}
	changed := false
	kept := make([]rawjson.Member, 0, len(members))
	for _, m := range members {
		property := s.Properties[m.Name]
		keep, fixed := !omitted(s, m), m.Value
		if property != nil && keep {
			if fixed, err = c.value(property, m.Value); err != nil {
				return nil, InField(m.Name, err)
			}
		} else if _, known := s.Properties[m.Name]; !known {
			if keep, err = c.unknown(s, m.Name, given); err != nil {
				return nil, err
			}
		}
		changed = changed || !keep || !same(fixed, m.Value)
		if keep {
			kept = append(kept, rawjson.Member{Name: m.Name, Value: fixed})
		}
	}
	for _, name := range s.Required {
		if !given[name] {
			return nil, InField(name, errors.New("is required"))
		}
	}
	for _, name := range propertyNames(s) {
		if p := s.Properties[name]; p != nil && p.Default != nil && !given[name] {
			kept = append(kept, rawjson.Member{Name: name, Value: p.Default})
			changed = true
		}
	}
	if !changed {
		return raw, nil
	}
	return rawjson.JoinMembers(kept), nil
}

// omitted reports whether m is null for an optional argument, which means that
// the argument is not given.
func omitted(s *jsonschema.Schema, m rawjson.Member) bool {
	p := s.Properties[m.Name]
	return p != nil && string(m.Value) == "null" && p.Type != "" && p.Type != "null" && !slices.Contains(s.Required, m.Name)
}

func propertyNames(s *jsonschema.Schema) []string { return slices.Sorted(maps.Keys(s.Properties)) }

// same reports whether two values are the same bytes at the same place, which is
// how a value that needed no repair comes back.
func same(a, b json.RawMessage) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// closed reports whether the schema forbids properties that it does not name:
// its additionalProperties are false, which is the schema {"not": {}}.
func closed(s *jsonschema.Schema) bool {
	more := s.AdditionalProperties
	return more != nil && more.Not != nil && reflect.ValueOf(*more.Not).IsZero()
}

// wordless reports whether the schema uses keywords that checker does not know.
func wordless(s *jsonschema.Schema) bool {
	if s == nil {
		return false
	}
	rest := *s
	rest.Type, rest.Title, rest.Description, rest.Default, rest.Enum = "", "", "", nil, nil
	rest.Minimum, rest.Maximum, rest.ExclusiveMinimum = nil, nil, nil
	rest.Properties, rest.PropertyOrder, rest.Required, rest.Items = nil, nil, nil, nil
	if closed(s) {
		rest.AdditionalProperties = nil
	}
	if s.MinLength != nil && *s.MinLength == 1 {
		rest.MinLength = nil
	}
	if !reflect.ValueOf(rest).IsZero() {
		return true
	}
	for _, p := range s.Properties {
		if wordless(p) {
			return true
		}
	}
	return wordless(s.Items)
}
