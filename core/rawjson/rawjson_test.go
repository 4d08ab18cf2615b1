package rawjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Kind{
		"{}": Object, " [1]": Array, "\t\"x\"": String, "-1": Number, "0": Number, "9e9": Number, "true": Boolean, "false": Boolean, "\n\rnull": Null,
		"": Invalid, "  ": Invalid, "+1": Invalid, "x": Invalid, "}": Invalid,
	} {
		if got := KindOf([]byte(in)); got != want {
			t.Errorf("KindOf(%q) is %q, want %q", in, got, want)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want []Member
		join string
	}{
		{`{}`, nil, `{}`},
		{" { } ", nil, `{}`},
		{`{"a":1}`, []Member{{"a", raw(`1`)}}, `{"a":1}`},
		{"{ \"b\" : [ 1 , 2 ] ,\n\"a\":{\"x\":\"}\"} }", []Member{{"b", raw(`[ 1 , 2 ]`)}, {"a", raw(`{"x":"}"}`)}}, `{"b":[ 1 , 2 ],"a":{"x":"}"}}`},
		{`{"a":1,"a":2}`, []Member{{"a", raw(`1`)}, {"a", raw(`2`)}}, `{"a":1,"a":2}`}, // twice is kept
		{`{"":"","\u0041\"":"\\"}`, []Member{{"", raw(`""`)}, {`A"`, raw(`"\\"`)}}, `{"":"","A\"":"\\"}`},
		{`{"n":12345678901234567890.0e1}`, []Member{{"n", raw(`12345678901234567890.0e1`)}}, `{"n":12345678901234567890.0e1}`},
		{`{"s":"a\\\"b\\\\","t":true}`, []Member{{"s", raw(`"a\\\"b\\\\"`)}, {"t", raw(`true`)}}, `{"s":"a\\\"b\\\\","t":true}`},
		{`{"日本":null}`, []Member{{"日本", raw(`null`)}}, `{"日本":null}`},
	} {
		got, err := Members([]byte(c.in))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Members(%s) gave %v, %v", c.in, got, err)
		}
		if join := JoinMembers(got); string(join) != c.join {
			t.Errorf("JoinMembers of %s is %s", c.in, join)
		}
	}
}

func TestElements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want []json.RawMessage
		join string
	}{
		{`[]`, nil, `[]`},
		{" [\n] ", nil, `[]`},
		{`[1, "a,]" ,[2,[3]],{"x":[]},null]`, []json.RawMessage{raw(`1`), raw(`"a,]"`), raw(`[2,[3]]`), raw(`{"x":[]}`), raw(`null`)}, `[1,"a,]",[2,[3]],{"x":[]},null]`},
	} {
		got, err := Elements([]byte(c.in))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Elements(%s) gave %s, %v", c.in, got, err)
		}
		if join := JoinElements(got); string(join) != c.join {
			t.Errorf("JoinElements of %s is %s", c.in, join)
		}
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// TestAliases checks that a value may be appended to without harm to the next.
func TestAliases(t *testing.T) {
	t.Parallel()
	text := []byte(`[1,2]`)
	elements, err := Elements(text)
	if err != nil {
		t.Fatal(err)
	}
	if &elements[0][0] != &text[1] {
		t.Error("an element is a copy")
	}
	_ = append(elements[0], "xx"...)
	if string(text) != `[1,2]` {
		t.Errorf("appending to an element changed the text to %s", text)
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", " ", "{", "[", "}", "]", "{]", "[}", "[1", "[1,", "[1,]", "[,1]", "[,]", "[1 2]", "[1]]", "[1]x", `["a]`, `["a\"]`, "[[1]", "[:]", "[1:2]",
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{"a" 1}`, `{a:1}`, `{1:1}`, `{"a":1`, `{"a":1}}`, `{"a`, `{"a":"b}`, `{"a":1}{}`, `{"\x":1}`,
		`{[1]:2}`, `{"a"::1}`, "{\"a\n\":1}", "null", `"x"`, "1",
	} {
		if json.Valid([]byte(in)) && in != "null" && in != `"x"` && in != "1" {
			t.Fatalf("%q is valid", in)
		}
		if got, err := Members([]byte(in)); err != ErrMalformed {
			t.Errorf("Members(%q) gave %v, %v", in, got, err)
		}
		if got, err := Elements([]byte(in)); err != ErrMalformed {
			t.Errorf("Elements(%q) gave %s, %v", in, got, err)
		}
	}
}

func TestAppendString(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                   `""`,
		"abc":                                `"abc"`,
		"<a href=\"x\">&</a>":                `"<a href=\"x\">&</a>"`,
		"a\\b\nc\rd\te\x00\x1f":              `"a\\b\nc\rd\te\u0000\u001f"`,
		"\x7f":                               "\"\x7f\"",
		"line\u2028par\u2029":                `"line\u2028par\u2029"`,
		"日本語 한국어 ü€😀":                        `"日本語 한국어 ü€😀"`,
		"bad \xff\xc3 \xe6\x97 \xed\xa0\x80": `"bad ` + "\ufffd\ufffd \ufffd\ufffd \ufffd\ufffd\ufffd\"",
		"\xe6\x97":                           "\"\ufffd\ufffd\"",
		"1234567\"":                          `"1234567\""`,
		"12345678\n12345678\\":               `"12345678\n12345678\\"`,
	} {
		if got := string(AppendString(nil, in)); got != want {
			t.Errorf("AppendString(%q)\n got %s\nwant %s", in, got, want)
		}
		if got := string(AppendString([]byte("x"), []byte(in))); got != "x"+want {
			t.Errorf("AppendString(x, bytes of %q) is %s", in, got)
		}
	}
	// Every byte at every place of a word.
	for c := range 256 {
		for at := range 17 {
			b := bytes.Repeat([]byte{'a'}, 17)
			b[at] = byte(c)
			checkString(t, string(b))
		}
	}
}

// checkString compares AppendString with encoding/json.
func checkString(t *testing.T, s string) {
	t.Helper()
	got := AppendString(nil, s)
	var back string
	if err := json.Unmarshal(got, &back); err != nil || back != strings.ToValidUTF8(eachBad(s), "") {
		t.Fatalf("AppendString(%q) is %s, which reads as %q, %v", s, got, back, err)
	}
	if bytes.ContainsAny(got, "\n\u2028\u2029") || !utf8.Valid(got) {
		t.Fatalf("AppendString(%q) is %q, with a line end or what is not UTF-8", s, got)
	}
	if other := AppendString(nil, []byte(s)); !bytes.Equal(other, got) {
		t.Fatalf("AppendString of the bytes of %q is %s, of the text %s", s, other, got)
	}
}

// eachBad replaces every byte that is not part of UTF-8, where
// strings.ToValidUTF8 replaces runs of them.
func eachBad(s string) string { return string([]rune(s)) }

func TestMarshal(t *testing.T) {
	t.Parallel()
	got, err := Marshal(map[string]any{"a": "<&>", "b": json.RawMessage(`{ "x" : 1 }`)})
	if want := `{"a":"<&>","b":{"x":1}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, err := Marshal(func() {}); err == nil {
		t.Error("a function became JSON")
	}
}

// FuzzSplit compares Members and Elements with encoding/json on all that it takes.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":[{}," ]"]}`, `[1,2,"x",{"y":null}]`, `{"\u00e9\"":"\\"}`, `[[[]]]`, `{}`, `[ ]`, `{"a":}`, `[1,]`, `"x"`, `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		members, errM := Members(text)
		elements, errE := Elements(text)
		if errM == nil && errE == nil {
			t.Fatalf("%q is an object and an array", text)
		}
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch valid := json.Valid(text); {
		case valid && KindOf(text) == Object:
			if errM != nil || json.Unmarshal(text, &object) != nil {
				t.Fatalf("Members(%q) gave %v", text, errM)
			}
			last := map[string]json.RawMessage{}
			for _, m := range members {
				last[m.Name] = m.Value
			}
			if len(last) != len(object) {
				t.Fatalf("Members(%q) gave %v, want %v", text, members, object)
			}
			for name, value := range object {
				if !bytes.Equal(last[name], value) {
					t.Fatalf("Members(%q) gave %s for %q, want %s", text, last[name], name, value)
				}
			}
			if !json.Valid(JoinMembers(members)) {
				t.Fatalf("JoinMembers of %q is %s", text, JoinMembers(members))
			}
		case valid && KindOf(text) == Array:
			if errE != nil || json.Unmarshal(text, &array) != nil || len(array) != len(elements) {
				t.Fatalf("Elements(%q) gave %s, %v", text, elements, errE)
			}
			for i, e := range array {
				if !bytes.Equal(e, elements[i]) {
					t.Fatalf("Elements(%q) gave %s at %d, want %s", text, elements[i], i, e)
				}
			}
			if !json.Valid(JoinElements(elements)) {
				t.Fatalf("JoinElements of %q is %s", text, JoinElements(elements))
			}
		case valid && (errM == nil || errE == nil):
			t.Fatalf("%q is neither object nor array, and was split", text)
		}
	})
}

func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"plain text of some length", "\"\\\n\x00", "日本語\u2028", "\xff\xe6\x97\xa5\xe6"} {
		f.Add(seed)
	}
	f.Fuzz(checkString)
}

func BenchmarkAppendString(b *testing.B) {
	line := "\tfor i := 0; i < len(s); { // a line of code, as files have it\n"
	for name, text := range map[string]string{
		"code":    strings.Repeat(line, 200_000/len(line)),
		"plain":   strings.Repeat("x", 200_000),
		"chinese": strings.Repeat("这是一行中文文本，用来测量速度。\n", 4000),
		"json":    strings.Repeat(`{"name":"some value","id":12345,"list":["a","b"]},`, 4000),
	} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 2*len(text))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				buf = AppendString(buf[:0], text)
			}
		})
		b.Run(name+"/encoding-json", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := json.Marshal(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMembers(b *testing.B) {
	text := []byte(`{"path":"a.txt","edits":[{"oldText":"x","newText":"` + strings.Repeat("some text\\n", 20_000) + `"}],"deep":true}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Members(text); err != nil {
			b.Fatal(err)
		}
	}
}
