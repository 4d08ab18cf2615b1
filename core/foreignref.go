package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// endless reports a schema that comes back to itself without having gone into the
// value: to check anything against it would never end, and the library then ends
// the program. References that are no plain pointer into the schema are reported
// too, since nobody here follows them.
func endless(schema *jsonschema.Schema) error {
	// As the library has read it, which takes names in any case for keywords.
	text, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	var root map[string]any
	if json.Unmarshal(text, &root) != nil {
		return nil // true or false
	}
	w := refWalk{root: root, seen: map[uintptr]bool{}}
	eachSchema(root, func(s map[string]any) {
		if _, dynamic := s["$dynamicRef"]; dynamic {
			w.fail(errors.New("$dynamicRef is not followed"))
		}
		if _, base := s["$id"].(string); base && reflect.ValueOf(s).Pointer() != reflect.ValueOf(root).Pointer() {
			w.fail(errors.New("a schema with an $id in another one is not followed"))
		}
		w.visit(s)
	})
	return w.err
}

type refWalk struct {
	root map[string]any
	seen map[uintptr]bool // by the identity of a schema: true while it is on the way
	err  error
}

func (w *refWalk) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// visit goes to the schemas that are about the same value as s.
func (w *refWalk) visit(v any) {
	s, ok := v.(map[string]any)
	if !ok || w.err != nil {
		return
	}
	id := reflect.ValueOf(s).Pointer()
	if on, seen := w.seen[id]; seen {
		if on {
			w.fail(errors.New("the schema refers to itself without end"))
		}
		return
	}
	w.seen[id] = true
	if ref, ok := s["$ref"].(string); ok {
		w.visit(w.target(ref))
	}
	for _, word := range []string{"not", "if", "then", "else"} {
		w.visit(s[word])
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[word].([]any)
		for _, inner := range list {
			w.visit(inner)
		}
	}
	for _, word := range []string{"dependentSchemas", "dependencies"} {
		byName, _ := s[word].(map[string]any)
		for _, inner := range byName {
			w.visit(inner)
		}
	}
	w.seen[id] = false
}

// target is what a reference leads to; nil for nothing.
func (w *refWalk) target(ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		w.fail(fmt.Errorf("the reference %q is not followed", Clip(ref, 80)))
		return nil
	}
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	var at any = w.root
	for i, name := range strings.Split(pointer, "/") {
		if i == 0 {
			continue
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch in := at.(type) {
		case map[string]any:
			at = in[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(in) {
				return nil
			}
			at = in[n]
		default:
			return nil
		}
	}
	return at
}
