package core

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// everything has an argument of every kind.
type everything struct {
	Path    string            `json:"path"`
	Count   int64             `json:"count,omitempty"`
	Ratio   float64           `json:"ratio,omitempty"`
	Deep    bool              `json:"deep,omitempty"`
	Names   []string          `json:"names,omitempty"`
	Ranges  []int             `json:"ranges,omitempty"`
	Edits   []pair            `json:"edits,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	Mode    string            `json:"mode,omitempty"`
	Pair    *pair             `json:"pair,omitempty"`
}

type pair struct {
	OldText string `json:"oldText"`
	NewText string `json:"newText"`
	All     bool   `json:"isReplaceAll,omitempty"`
}

// everythingSchema also has limits, choices and defaults.
func everythingSchema(defaults bool) *jsonschema.Schema {
	s := SchemaFor[everything]()
	p := s.Properties
	p["path"].MinLength = jsonschema.Ptr(1)
	p["count"].Minimum, p["count"].Maximum = jsonschema.Ptr(0.0), jsonschema.Ptr(1e16)
	p["ratio"].ExclusiveMinimum = jsonschema.Ptr(0.0)
	p["mode"].Enum = []any{"fast", "slow", "hd"}
	if defaults {
		p["mode"].Default = json.RawMessage(`"slow"`)
		p["deep"].Default = json.RawMessage(`true`)
		p["edits"].Items.Properties["isReplaceAll"].Default = json.RawMessage(`false`)
	}
	return s
}

func newArguments(t testing.TB, s *jsonschema.Schema, strict bool) *Arguments {
	t.Helper()
	a, err := NewArguments(s, strict)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestRepair sends arguments as models do (decision 3, case C68).
func TestRepair(t *testing.T) {
	t.Parallel()
	args := newArguments(t, everythingSchema(false), true)
	for _, c := range []struct{ in, want string }{
		{`{"path":"a"}`, `{"path":"a"}`},
		{"  {\n\"path\" : \"a\" }  ", "  {\n\"path\" : \"a\" }  "}, // what is right keeps its bytes
		{`{"count":9007199254740993,"path":"\u0061"}`, `{"count":9007199254740993,"path":"\u0061"}`},
		{`"{\"path\":\"a\"}"`, `{"path":"a"}`}, // text for the whole object
		{`{"path":"a","edits":"[{\"oldText\":\"x\",\"newText\":\"y\"}]"}`, `{"path":"a","edits":[{"oldText":"x","newText":"y"}]}`},
		{`{"path":"a","edits":["{\"oldText\":\"x\",\"newText\":\"y\"}"]}`, `{"path":"a","edits":[{"oldText":"x","newText":"y"}]}`},
		{`{"path":"a","pair":"{\"oldText\":\"x\",\"newText\":\"y\"}"}`, `{"path":"a","pair":{"oldText":"x","newText":"y"}}`},
		{`{"path":"a","count":"5000"}`, `{"path":"a","count":5000}`},
		{`{"path":"a","count":" 5000 "}`, `{"path":"a","count":5000}`},
		{`{"path":"a","count":5000.0}`, `{"path":"a","count":5000}`},
		{`{"path":"a","count":"5e3"}`, `{"path":"a","count":5000}`},
		{`{"path":"a","count":0.0}`, `{"path":"a","count":0}`},
		{`{"path":"a","ratio":"0.5"}`, `{"path":"a","ratio":0.5}`},
		{`{"path":"a","ratio":1e1}`, `{"path":"a","ratio":1e1}`},
		{`{"path":"a","deep":"true"}`, `{"path":"a","deep":true}`},
		{`{"path":"a","names":"*.log"}`, `{"path":"a","names":["*.log"]}`},
		{`{"path":"a","names":"[\"x\",\"y\"]"}`, `{"path":"a","names":["x","y"]}`},
		{`{"path":"a","ranges":"[1,2]"}`, `{"path":"a","ranges":[1,2]}`},
		{`{"path":"a","ranges":["1",2.0]}`, `{"path":"a","ranges":[1,2]}`},
		{`{"path":"a","options":"{\"k\":\"v\"}"}`, `{"path":"a","options":{"k":"v"}}`},
		{`{"path":"a","count":null,"names":null,"pair":null}`, `{"path":"a"}`},                       // null for what is optional
		{`{"mode":"fast","path":"[1]","deep":"false"}`, `{"mode":"fast","path":"[1]","deep":false}`}, // a text stays one, and the order
	} {
		got, notes, err := args.Check(json.RawMessage(c.in))
		if err != nil || string(got) != c.want || notes != nil {
			t.Errorf("%s\n got %s %q %v\nwant %s", c.in, got, notes, err, c.want)
		}
	}
	none := newArguments(t, SchemaFor[struct{}](), false)
	for _, in := range []string{"", "null", " null ", `""`, `" "`, `"null"`, "{}", `"{}"`} {
		if got, _, err := none.Check(json.RawMessage(in)); err != nil || strings.TrimSpace(string(got)) != "{}" {
			t.Errorf("%q for no arguments gave %s, %v", in, got, err)
		}
	}
	if got, _, err := none.Check(nil); err != nil || string(got) != "{}" {
		t.Errorf("no arguments at all gave %s, %v", got, err)
	}
}

func TestArgumentErrors(t *testing.T) {
	t.Parallel()
	args := newArguments(t, everythingSchema(false), true)
	for _, c := range []struct{ in, want string }{
		{`[]`, `the arguments must be one JSON object, not an array`},
		{`5`, `the arguments must be one JSON object, not a number (5)`},
		{`"text"`, `the arguments must be one JSON object, not a string ("text")`},
		{`"\"{}\""`, `the arguments must be one JSON object, not a string ("\"{}\"")`},
		{`"nothing"`, `the arguments must be one JSON object, not a string ("nothing")`},
		{`nothing`, `the arguments are not valid JSON: send one object`},
		{`"{\"path\":"`, `the arguments must be one JSON object, not a string ("{\"path\":")`},
		{`{"path":`, `the arguments are not valid JSON: send one object`},
		{`{}`, `path: is required`},
		{`{"path":null}`, `path: must be a string, not null`},
		{`{"path":""}`, `path: must not be empty`},
		{`{"path":5}`, `path: must be a string, not a number (5)`},
		{`{"path":["a"]}`, `path: must be a string, not an array`},
		{`{"path":"a","count":"many"}`, `count: must be an integer, not a string ("many")`},
		{`{"path":"a","count":1.5}`, `count: must be an integer, not a number (1.5)`},
		{`{"path":"a","count":1e999}`, `count: must be an integer, not a number (1e999)`},
		{`{"path":"a","count":-1}`, `count: must be at least 0, not -1`},
		{`{"path":"a","count":1e17}`, `count: must be at most 1e+16, not 1e17`},
		{`{"path":"a","ratio":0}`, `ratio: must be more than 0, not 0`},
		{`{"path":"a","ratio":1e999}`, `ratio: 1e999 is not a number that can be used`},
		{`{"path":"a","deep":"yes"}`, `deep: must be a boolean, not a string ("yes")`},
		{`{"path":"a","deep":1}`, `deep: must be a boolean, not a number (1)`},
		{`{"path":"a","names":[1]}`, `names.0: must be a string, not a number (1)`},
		{`{"path":"a","ranges":"1"}`, `ranges: must be an array, not a string ("1")`},
		{`{"path":"a","edits":[{"oldText":"x","newText":"y"},{"oldText":"x"}]}`, `edits.1.newText: is required`},
		{`{"path":"a","edits":[{"oldText":"x","newText":"y","old_text":"z"}]}`, `edits.0: unknown argument "old_text"; it takes ["isReplaceAll" "newText" "oldText"]`},
		{`{"path":"a","pair":"{\"oldText\":\"x\"}"}`, `pair.newText: is required`},
		{`{"path":"a","mode":"Fast "}`, `mode: unknown value "Fast "; did you mean "fast"?`},
		{`{"path":"a","mode":"x"}`, `mode: unknown value "x"; choose one of ["fast" "slow" "hd"]`},
		{`{"file_path":"a"}`, `unknown argument "file_path"; did you mean "path"?`},
		{`{"PATH":"a"}`, `unknown argument "PATH"; did you mean "path"?`},
		{`{"path":"a","explanation":"because"}`, `unknown argument "explanation"; it takes ["count" "deep" "edits" "mode" "names" "options" "pair" "path" "ranges" "ratio"]`},
	} {
		got, _, err := args.Check(json.RawMessage(c.in))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v (%s)\nwant %s", c.in, err, got, c.want)
		}
	}
}

// TestUnknownArguments of a tool that only reads are noted, unless something else
// must have been meant.
func TestUnknownArguments(t *testing.T) {
	t.Parallel()
	type search struct {
		Path    string   `json:"path,omitempty"`
		Pattern string   `json:"pattern"`
		Text    string   `json:"text,omitempty"`
		Regex   string   `json:"regex,omitempty"`
		Exclude []string `json:"exclude,omitempty"`
	}
	args := newArguments(t, SchemaFor[search](), false)
	const takes = `it takes ["exclude" "path" "pattern" "regex" "text"]`
	for _, c := range []struct{ in, want, note, err string }{
		{`{"pattern":"*","explanation":"why","text":"x"}`, `{"pattern":"*","text":"x"}`, `note: the unknown argument "explanation" was ignored; ` + takes, ""},
		{`{"pattern":"*","query":"x"}`, "", "", `unknown argument "query"; did you mean "text"?`},
		{`{"pattern":"*","text":"x","query":"y"}`, `{"pattern":"*","text":"x"}`, `note: the unknown argument "query" was ignored; ` + takes, ""},
		{`{"pattern":"*","directory":"d"}`, "", "", `unknown argument "directory"; did you mean "path"?`},
		{`{"explanation":"why"}`, "", "", `pattern: is required; note: the unknown argument "explanation" was ignored; ` + takes},
	} {
		got, notes, err := args.Check(json.RawMessage(c.in))
		if string(got) != c.want || strings.Join(notes, "|") != c.note || c.err != "" && (err == nil || err.Error() != c.err) || c.err == "" && err != nil {
			t.Errorf("%s\n got %s %q %v\nwant %s %q %s", c.in, got, notes, err, c.want, c.note, c.err)
		}
	}
	none := newArguments(t, SchemaFor[struct{}](), false)
	if _, notes, err := none.Check(json.RawMessage(`{"x":1}`)); err != nil || !slices.Equal(notes, []string{`note: the unknown argument "x" was ignored; it takes none`}) {
		t.Errorf("got %q, %v", notes, err)
	}
	open := newArguments(t, &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"a": {Type: "string"}}}, true)
	if got, notes, err := open.Check(json.RawMessage(`{"a":"x","b":{"c":[1.0]}}`)); err != nil || notes != nil || string(got) != `{"a":"x","b":{"c":[1.0]}}` {
		t.Errorf("a schema that is open for more gave %s, %q, %v", got, notes, err)
	}
}

func TestNearestArgument(t *testing.T) {
	t.Parallel()
	edit := []string{"path", "oldText", "newText", "isReplaceAll"}
	for in, want := range map[string]string{
		"old_string": "oldText", "new_str": "newText", "replace_all": "isReplaceAll", "file": "path", "filePath": "path", "text": "", "why": "",
		"oldtext": "oldText", "": "", strings.Repeat("old_", 1<<18): "oldText",
	} {
		if got := nearestArgument(in, edit); got != want {
			t.Errorf("nearestArgument(%.40q) is %q, want %q", in, got, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	args := newArguments(t, everythingSchema(true), true)
	for _, c := range []struct{ in, want string }{
		{`{"path":"a"}`, `{"path":"a","deep":true,"mode":"slow"}`},
		{`{"mode":"hd","path":"a","deep":null}`, `{"mode":"hd","path":"a","deep":true}`},
		{`{"path":"a","deep":false,"mode":"fast","edits":[{"oldText":"x","newText":"y"}]}`,
			`{"path":"a","deep":false,"mode":"fast","edits":[{"oldText":"x","newText":"y","isReplaceAll":false}]}`},
	} {
		if got, _, err := args.Check(json.RawMessage(c.in)); err != nil || string(got) != c.want {
			t.Errorf("%s\n got %s %v\nwant %s", c.in, got, err, c.want)
		}
	}
}

// TestForeignSchemas are those of other people's tools, which hold anything.
func TestForeignSchemas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, in, want, err string }{
		{`{"type":"object"}`, `{"a":1.0}`, `{"a":1.0}`, ""},
		{`{}`, `{"a":1}`, `{"a":1}`, ""},
		{`{"properties":{"a":true,"b":null}}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`, ""},
		{`{"properties":{"a":{"enum":[1,[2],{"x":3},null,"s"]}}}`, `{"a":[2]}`, `{"a":[2]}`, ""},
		{`{"properties":{"a":{"enum":[1,[2],{"x":3},null,"s"]}}}`, `{"a":1.0}`, `{"a":1.0}`, ""},
		{`{"properties":{"a":{"enum":[1,[2]]}}}`, `{"a":[3]}`, "", `a: unknown value "[3]"; did you mean "[2]"?`},
		{`{"properties":{"a":{"enum":[1,[2]]}}}`, `{"a":{}}`, "", `a: unknown value "{}"; choose one of ["1" "[2]"]`},
		{`{"properties":{"a":{"type":["string","null"]}}}`, `{"a":null}`, `{"a":null}`, ""},
		{`{"properties":{"a":{"type":["string","null"]}}}`, `{"a":5}`, "", `validating`},
		{`{"properties":{"a":{"pattern":"^x"}}}`, `{"a":"y"}`, "", "pattern"},
		{`{"properties":{"a":{"type":"string","maxLength":3}}}`, `{"a":"long"}`, "", "maxLength"},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"c":1}`, "", "anyOf"},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"b":1}`, `{"b":1}`, ""},
		{`{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":"x"}`, "", "type"},
		{`{"additionalProperties":{"type":"integer"}}`, `{"a":"x"}`, "", "type"},
		{`{"properties":{"a":{"type":"integer"}},"additionalProperties":{"not":{"type":"string"}}}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`, ""},
		{`{"required":["a"]}`, `{}`, "", "a: is required"},
	} {
		var s jsonschema.Schema
		if err := json.Unmarshal([]byte(c.schema), &s); err != nil {
			t.Fatal(err)
		}
		got, _, err := newArguments(t, &s, true).Check(json.RawMessage(c.in))
		if c.err == "" && (err != nil || string(got) != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s for %s\n got %s, %v\nwant %s %s", c.in, c.schema, got, err, c.want, c.err)
		}
	}
	if _, err := NewArguments(&jsonschema.Schema{Ref: "#/$defs/none"}, true); err == nil {
		t.Error("a schema that refers to nothing was taken")
	}
}

// TestErrorsAreShort sends a megabyte of text, or very many digits, in every place
// where it is wrong.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 1<<20)
	digits := strings.Repeat("9", 1<<16) // which take longer to read
	strict := func(tool *Tool) { tool.Input = everythingSchema(true) }
	foreign := func(tool *Tool) {
		tool.Input = &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{
			"path": {MaxLength: jsonschema.Ptr(3)}, "count": {Type: "number"}, "mode": {Enum: []any{1}},
		}}
	}
	for _, define := range []func(*Tool){strict, foreign} {
		tool := Tool{Name: "t"}
		define(&tool)
		d := Define(tool, func(context.Context, *Call, everything) (*Result, error) { return TextResult("ok"), nil })
		for _, in := range []string{
			`"` + text + `"`, `{"path":` + text, `{"path":5,"` + text + `":1}`, `{"` + text + `":1,"path":"a"}`,
			`{"path":"a","count":"` + text + `"}`, `{"path":"a","count":` + digits + `}`, `{"path":"a","count":-` + digits + `}`,
			`{"path":"a","count":-0.` + digits + `}`, `{"path":"a","ratio":` + digits + `}`, `{"path":"a","ratio":-1.` + digits + `}`,
			`{"path":"a","mode":"` + text + `"}`, `{"path":"a","mode":` + digits + `}`, `{"path":"a","deep":"` + text + `"}`,
			`{"path":"a","names":{"` + text + `":1}}`, `{"path":"a","ranges":["` + text + `"]}`, `{"path":"` + text + `","count":true}`,
			`{"path":"a","edits":[{"` + text + `":1}]}`, `{"path":"a","options":{"a":[` + digits + `]}}`, `{"path":"a","options":["` + text + `"]}`,
		} {
			_, err := d.Run(t.Context(), &Call{Arguments: json.RawMessage(in)})
			if err == nil && tool.Input.AdditionalProperties != nil { // the other takes more
				t.Errorf("%.40s… was taken", in)
			} else if n := len(fmt.Sprint(err)); n > 600 {
				t.Errorf("%.40s… gave an error of %d bytes: %.80s…", in, n, err)
			}
		}
	}
}

func TestDefine(t *testing.T) {
	t.Parallel()
	type in struct {
		N    int      `json:"n"`
		Size uint8    `json:"size,omitempty"`
		List []string `json:"list,omitempty" jsonschema:"some names"`
	}
	bang := errors.New("bang")
	d := Define(Tool{Name: "t", Hints: Hints{ReadOnly: true}}, func(_ context.Context, call *Call, in in) (*Result, error) {
		switch in.N {
		case 0:
			return nil, nil
		case 1:
			return nil, bang
		}
		return JSONResult(in)
	})
	s := newScope(t, &Env{})
	tool := d.Bind(s)
	for _, c := range []struct{ in, want, err string }{
		{`{"n":2}`, `{"n":2}`, ""},
		{`{"n":"3","list":"x","size":255}`, `{"n":3,"size":255,"list":["x"]}`, ""},
		{`{"n":2,"why":"x"}`, "{\"n\":2}\n" + `note: the unknown argument "why" was ignored; it takes ["list" "n" "size"]`, ""},
		{`{"n":0}`, "", ""},
		{`{"n":1}`, "", "bang"},
		{`{"n":1,"why":"x"}`, "", `bang; note: the unknown argument "why" was ignored; it takes ["list" "n" "size"]`},
		{`{"n":1,"size":256}`, "", `size: must be at most 255, not 256`},
		{`{"n":100000000000000000000}`, "", `n: 100000000000000000000 does not fit into int`},
	} {
		got, err := tool.Run(t.Context(), &Call{Arguments: json.RawMessage(c.in)})
		if c.err != "" && (err == nil || err.Error() != c.err) || c.err == "" && (err != nil || got.Text() != c.want) {
			t.Errorf("%s\n got %v %v\nwant %s %s", c.in, got, err, c.want, c.err)
		}
	}
	if text, err := json.Marshal(d.Input); err != nil || strings.Contains(string(text), "null") {
		t.Errorf("the schema is %s, %v", text, err)
	}
	bound := Definition{Tool: Tool{Run: func(_ context.Context, call *Call) (*Result, error) {
		if call.Scope != s {
			t.Error("a bound tool has another scope")
		}
		return nil, bang
	}}}.Bind(s)
	call := &Call{}
	if _, err := bound.Run(t.Context(), call); !errors.Is(err, bang) || call.Scope != nil {
		t.Errorf("a bound tool gave %v and changed its caller's call: %v", err, call.Scope)
	}
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), `tool bad`) {
			t.Errorf("a schema that cannot be made gave %v", p)
		}
	}()
	Define(Tool{Name: "bad", Input: &jsonschema.Schema{Ref: "#/none"}}, func(context.Context, *Call, in) (*Result, error) { return nil, nil })
}

// FuzzArguments checks whatever models may send: what Check gives fits the schema,
// and what fitted before is as it was.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"path":"a"}`, `null`, `""`, `"{\"path\":\"a\"}"`, `{"path":"a","count":"5000","names":"x","edits":"[]"}`, `{"path":"a","count":5e3}`,
		`{"path":"a","pair":{"oldText":"x","newText":"y"},"options":{"a":"b"},"deep":"true","mode":"hd","ratio":".5","ranges":["1"]}`,
		`{"path":"\ud800","path":null,"count":null}`, `{"path":"a","edits":[{"oldText":"\"","newText":"\\"}]}`, `{"path":"a"`, `[`, `{"path":"a","mode":["hd"]}`,
	} {
		f.Add([]byte(seed))
	}
	plain, withDefaults := everythingSchema(false), everythingSchema(true)
	resolved, err := plain.Resolve(nil)
	if err != nil {
		f.Fatal(err)
	}
	args, filling := newArguments(f, plain, true), newArguments(f, withDefaults, false)
	fits := func(raw []byte) (any, bool) {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			return nil, false
		}
		return v, resolved.Validate(v) == nil
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before, good := fits(raw)
		got, _, err := args.Check(bytes.Clone(raw))
		if good && err != nil && !strings.Contains(err.Error(), "null") && !duplicates(raw) {
			t.Fatalf("%s is right, and was refused: %v", raw, err)
		}
		if err == nil {
			after, ok := fits(got)
			if !ok {
				t.Fatalf("%s became %s, which does not fit", raw, got)
			}
			if good && !bytes.Equal(got, raw) && (!bytes.ContainsAny(raw, ".eE") || !reflect.DeepEqual(before, after)) {
				t.Fatalf("%s is right, and became %s", raw, got)
			}
			if again, _, err := args.Check(got); err != nil || !bytes.Equal(again, got) {
				t.Fatalf("%s became %s, then %s, %v", raw, got, again, err)
			}
		}
		if got, _, err := filling.Check(raw); err == nil {
			if v, ok := fits(got); !ok || v.(map[string]any)["mode"] == nil {
				t.Fatalf("%s became %s, which does not fit", raw, got)
			}
		}
	})
}

// duplicates reports whether an object has a name twice. The schema library sees
// the last of them alone; Check sees all.
func duplicates(raw []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	var walk func() bool
	walk = func() bool {
		token, err := dec.Token()
		if err != nil {
			return false
		}
		seen := map[any]bool{}
		for d, open := token.(json.Delim); open && dec.More(); {
			if d == '{' {
				name, err := dec.Token()
				if err != nil || seen[name] {
					return true
				}
				seen[name] = true
			}
			if walk() {
				return true
			}
		}
		if _, open := token.(json.Delim); open {
			dec.Token()
		}
		return false
	}
	return walk()
}

func BenchmarkArguments(b *testing.B) {
	type batch struct {
		Path  string `json:"path"`
		Count int    `json:"count,omitempty"`
		Edits []pair `json:"edits,omitempty"`
	}
	args := newArguments(b, SchemaFor[batch](), true)
	for name, in := range map[string]string{
		"small": `{"path":"a.txt","count":5}`,
		"200KB": `{"path":"a.txt","edits":[{"oldText":"x","newText":"` + strings.Repeat("some text\\n", 20_000) + `"}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			raw := json.RawMessage(in)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := args.Check(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
