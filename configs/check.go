package configs

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// A checker compares a document with the Go type that it is to be decoded into.
// encoding/json stops at the first error and does not tell where those of
// UnmarshalJSON methods are; this goes through both trees side by side, and
// collects.
type checker struct {
	errs     []error
	warnings []*Problem
}

// maxProblems is how many errors and how many warnings of one document are
// told. Whoever has more does not read them.
const maxProblems = 50

func (c *checker) fail(d *Document, err error) {
	if len(c.errs) < maxProblems {
		c.errs = append(c.errs, d.Problem(err))
	}
}

// warn warns about the name of a member.
func (c *checker) warn(m Member, err error) {
	if len(c.warnings) < maxProblems {
		c.warnings = append(c.warnings, m.Value.problem(m.offset, m.Value.path(), err))
	}
}

func (c *checker) check(d *Document, t reflect.Type) {
	if d.Kind() == rawjson.Null {
		return
	}
	if decodesItself(t) {
		c.try(d, t)
		if t == reflect.TypeFor[core.Permissions]() {
			c.permissions(d)
		}
		return
	}
	kind := d.Kind()
	switch t.Kind() {
	case reflect.Pointer:
		c.check(d, t.Elem())
	case reflect.Struct:
		if c.must(d, kind == rawjson.Object, "an object") {
			c.fields(d, t)
		}
	case reflect.Map:
		if c.must(d, kind == rawjson.Object, "an object") {
			for _, m := range d.Members() {
				c.check(m.Value, t.Elem())
			}
		}
	case reflect.Slice, reflect.Array:
		if c.must(d, kind == rawjson.Array, "a list") {
			for _, e := range d.Elements() {
				c.check(e, t.Elem())
			}
		}
	default:
		c.try(d, t)
	}
}

// must notes an error unless the value is what it has to be.
func (c *checker) must(d *Document, ok bool, what string) bool {
	if !ok {
		c.fail(d, fmt.Errorf("must be %s, not %s", what, describe(d)))
	}
	return ok
}

// try decodes one value that has no parts of its own to look at.
func (c *checker) try(d *Document, t reflect.Type) {
	err := json.Unmarshal(d.JSON(), reflect.New(t).Interface())
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
	case errors.As(err, &wrong) && !decodesItself(t):
		c.must(d, false, expected(t))
	default:
		c.fail(d, err)
	}
}

func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func expected(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// describe names a value in an error. Text is not repeated: it may be a key.
func describe(d *Document) string {
	switch d.Kind() {
	case rawjson.Object:
		return "an object"
	case rawjson.Array:
		return "a list"
	case rawjson.String:
		return "text"
	}
	if text := string(d.JSON()); len(text) < 30 {
		return text
	}
	return "such a long number"
}

// fields checks an object that becomes a struct.
func (c *checker) fields(d *Document, t reflect.Type) {
	types := map[string]reflect.Type{}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		types[name] = f.Type
		names = append(names, name)
	}
	c.unknown(d, names)
	for _, m := range d.Members() {
		for _, name := range names {
			if strings.EqualFold(m.Name, name) { // as encoding/json does
				c.check(m.Value, types[name])
			}
		}
	}
}

// permissions looks closer where a slip would permit too much or too little:
// misspelt keys are warned of, as everywhere, but a key that is given twice is an
// error, since nobody can know which one was meant (decision 30).
func (c *checker) permissions(d *Document) {
	kinds := make([]string, 0, len(core.Kinds()))
	for _, k := range core.Kinds() {
		kinds = append(kinds, string(k))
	}
	c.unknown(d, kinds)
	c.once(d)
	for _, m := range d.Members() {
		c.unknown(m.Value, []string{"allow", "deny"})
	}
}

// once insists that an object has no other member of the value's name.
func (c *checker) once(d *Document) {
	if d.in == nil {
		return
	}
	others := d.in.allMembers()
	named := func(m Member) bool { return strings.EqualFold(m.Name, d.name) }
	if i := slices.IndexFunc(others, named); i >= 0 && slices.ContainsFunc(others[i+1:], named) {
		c.fail(d, errors.New("is there twice; keep one of them"))
	}
}

// unknown warns of keys that look like a mistyped known one. Other unknown keys
// are left alone: newer programs and the user's own notes have them.
func (c *checker) unknown(d *Document, known []string) {
	members := d.Members()
	there := make(map[string]bool, len(members))
	for _, m := range members {
		there[m.Name] = true
	}
	for _, m := range members {
		if slices.Contains(known, m.Name) {
			continue
		}
		near := core.Nearest(m.Name, known)
		if near != "" && (!there[near] || strings.EqualFold(near, m.Name)) {
			c.warn(m, UnknownKey.Of(fmt.Errorf("is no known key; did you mean %q?", near)))
		}
	}
}

// duplicates warns of names that an object has twice, at every depth.
func (c *checker) duplicates(d *Document) {
	all := d.allMembers()
	seen := make(map[string]bool, len(all))
	for _, m := range all {
		if seen[m.Name] {
			c.warn(m, Twice.Of(errors.New("is there twice; the last one counts")))
		}
		seen[m.Name] = true
		c.duplicates(m.Value)
	}
	for _, e := range d.Elements() {
		c.duplicates(e)
	}
}
