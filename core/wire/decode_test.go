package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// seeds are frames of every shape, good and bad.
func seeds() []string { return slices.Concat(objects(), oddities()) }

// objects are JSON objects that are messages or fail to be.
func objects() []string {
	return []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,2.5e3,-0,true,null]}}}`,
		`{"params":{"x":"\"}"},"method":"m","id":"a-1","jsonrpc":"2.0"}`,
		` { "jsonrpc" : "2.0" , "id" : 7 , "method" : "ping" } ` + "\r",
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":[1]}}`,
		`{"jsonrpc":"2.0","id":1,"error":null,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"error":"x"}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`,
		`{"jsonrpc":"2.0","id":1}`,
		`{"jsonrpc":"2.0","id":null,"method":"m"}`,
		`{"jsonrpc":"2.0","id":true,"method":"m"}`,
		`{"jsonrpc":"2.0","id":[1],"method":"m"}`,
		`{"jsonrpc":"2.0","id":{"a":1},"method":"m"}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"m"}`,
		`{"jsonrpc":"2.0","id":1e2,"method":"m"}`,
		`{"jsonrpc":"2.0","id":-0,"method":"m"}`,
		`{"jsonrpc":"2.0","id":-17,"method":"m"}`,
		`{"jsonrpc":"2.0","id":999999999999999,"method":"m"}`,
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"m"}`,
		`{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m"}`,
		`{"jsonrpc":"2.0","id":"é\n\u00e9\ud83d\ude00\ud800","method":"m"}`,
		"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"m\xff\"}",
		`{"jsonrpc":"2.0","id":"","method":""}`,
		`{"jsonrpc":"2.0","id":1,"method":null}`,
		`{"jsonrpc":"2.0","id":1,"method":5}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":5}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"m","method":"n"}`,
		`{"jsonrpc":"2.0","id":1,"id":null,"method":"m"}`,
		`{"\u0069d":1,"jsonrpc":"2.0","m\u0065thod":"m"}`,
		`{"ID":1,"JsonRpc":"2.0","jsonrpc":"2.0","Method":"m","id\u0000":2}`,
		`{"jsonrpc":"1.0","id":1,"method":"m"}`,
		`{"jsonrpc":2.0,"id":1,"method":"m"}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","result":{},"extra":[{}]}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","error":{"code":1,"message":"x"}}`,
	}
}

// oddities are what else may stand on a line.
func oddities() []string {
	return []string{
		`{"foo":1}`, `{}`, `[]`, `[{}]`, `null`, `true`, `5`, `"x"`, `-`, `01`, `1.`, `.5`, `1e`, `1e+`, `+1`, `-0.0E-0`,
		`{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `[1,]`, `[,1]`, `{"a":1 "b":2}`, `{"a" 1}`, `{1:2}`, `{a:1}`, `['a']`,
		`{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":"`, `{"a":"\`, `{"a":"\u12`, `{"a":1`, `[`, `[1`, `}`, `]`, `{]`, `[}`,
		`{"a":"\x"}`, `{"a":"\u12G4"}`, "{\"a\":\"\x01\"}", "{\"a\":\"0123456789\tx\"}", `tru`, `nul`, `falsy`, `nulls`,
		`{"jsonrpc":"2.0","id":1,"method":"m"}{"jsonrpc":"2.0","id":2,"method":"m"}`,
		`{"jsonrpc":"2.0","id":1,"method":"m"} x`,
		"\ufeff{}", "", " ", "\x00", `{"a":1}` + "\x00",
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
		strings.Repeat("[", 1001) + strings.Repeat("]", 1001),
		`{"jsonrpc":"2.0","id":1,"method":"m","params":` + strings.Repeat(`{"a":`, 999) + "1" + strings.Repeat("}", 999) + "}",
		`{"jsonrpc":"2.0","id":1,"method":"m","params":` + strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000) + "}",
		`{"jsonrpc":"2.0","id":1,"method":"m","params":"` + strings.Repeat(`[{\"\\`, 2000) + `"}`,
	}
}

// depth is how deep b nests, reading as little of JSON as that needs.
func depth(b []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// checkDecode compares Decode with the SDK and with encoding/json.
func checkDecode(t *testing.T, line []byte) {
	t.Helper()
	got, err := Decode(line)
	want, wantErr := jsonrpc.DecodeMessage(line)
	if whole := json.Valid(line) && depth(line) <= maxDepth; !whole {
		var werr *jsonrpc.Error
		if !errors.As(err, &werr) || werr.Code != jsonrpc.CodeParseError {
			t.Fatalf("%q is no JSON value, got %#v, %v", line, got, err)
		}
		return
	}
	if err != nil && strings.Contains(err.Error(), "exactly") { // stricter than the SDK: TestAnswerID
		return
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%q: error %v, the SDK's %v", line, err, wantErr)
	}
	if err != nil {
		var werr *jsonrpc.Error
		if !errors.As(err, &werr) || werr.Code != jsonrpc.CodeInvalidRequest {
			t.Fatalf("%q: error %v, want code %d", line, err, jsonrpc.CodeInvalidRequest)
		}
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q:\ngot  %#v\nwant %#v", line, got, want)
	}
}

func TestDecodeLikeTheSDK(t *testing.T) {
	t.Parallel()
	for _, line := range seeds() {
		checkDecode(t, []byte(line))
		for cut := range min(len(line), 200) { // every prefix, for the ends of things
			checkDecode(t, []byte(line[:cut]))
		}
	}
}

func TestDecodeShortcutIsTaken(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":"b"}}`,
		`{"params":[],"method":"x/y","id":"s","jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
	} {
		var m members
		if end := m.scan(&scanner{b: []byte(line)}, 0); end != len(line) || m.message() == nil {
			t.Errorf("%s is read by the SDK", line)
		}
	}
}

func TestSpecialFindsTheFirst(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for at := range 8 {
			word := uint64(0)
			for i := range 8 {
				b := uint64('a')
				if i >= at {
					b = uint64(c)
				}
				word |= b << (8 * i)
			}
			m := special(word)
			stops := c < ' ' || c == '"' || c == '\\'
			if !stops && m != 0 || stops && (m == 0 || m&-m != 0x80<<(8*at)) {
				t.Fatalf("byte %#x at %d: mask %#x", c, at, m)
			}
		}
	}
}

func TestAnswerID(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ line, want string }{
		{`{"foo":1}`, ""},
		{`{"id":1}`, "1"},
		{`{"id":"a\"b","method":5}`, `"a\"b"`},
		{`{"id":-1.5,"jsonrpc":"1.0","method":"m"}`, "-1.5"},
		{`{"jsonrpc":"2.0","id":1.5,"method":"m"}`, "1.5"},
		{`{"jsonrpc":"2.0","id":9007199254740993,"method":"m"}`, "9007199254740993"},
		{`{"jsonrpc":"2.0","id":-1e300,"method":"m"}`, "-1e300"},
		{`{"id":true,"method":"m"}`, ""},
		{`{"id":null,"method":"m"}`, ""},
		{`{"id":[1],"method":"m"}`, ""},
		{`{"id":1,"result":{}}`, ""},
		{`{"id":1,"error":"x"}`, ""},
		{`{"id":1,"method":5,"result":{}}`, "1"},
	} {
		msg, bad := decode([]byte(test.line))
		if bad == nil {
			t.Errorf("%s: got %#v, want an error", test.line, msg)
		} else if string(bad.id) != test.want {
			t.Errorf("%s: id %q, want %q", test.line, bad.id, test.want)
		}
	}
}

func TestIDsOfEverySpellingOfAnInteger(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]int64{"1e2": 100, "-0": 0, "2.0": 2, "9007199254740991": 1<<53 - 1, "-9007199254740991": 1 - 1<<53} {
		msg, err := Decode([]byte(`{"jsonrpc":"2.0","id":` + raw + `,"method":"m"}`))
		if request, ok := msg.(*jsonrpc.Request); !ok || request.ID.Raw() != want {
			t.Errorf("id %s: got %#v, %v", raw, msg, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, line := range seeds() {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) { checkDecode(t, line) })
}

// frameOf returns a tools/call of about n bytes that carries source code.
func frameOf(n int) []byte {
	const head, tail = `{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"echo","arguments":{"text":"`, `"}}}`
	const code = `\tif err := f.Close(); err != nil {\n\t\treturn fmt.Errorf(\"closing %q: %w\", name, err)\n\t}\n`
	body := strings.Repeat(code, n/len(code)+1)[:max(0, n-len(head)-len(tail))]
	return []byte(head + strings.TrimRight(body, `\`) + tail)
}

func BenchmarkDecode(b *testing.B) {
	for _, size := range []int{100, 1000, 200_000} {
		line := frameOf(size)
		run := func(name string, decode func([]byte) error) {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.SetBytes(int64(len(line)))
				b.ReportAllocs()
				for b.Loop() {
					if err := decode(line); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("ours", func(line []byte) error { _, err := Decode(line); return err })
		run("sdk", func(line []byte) error { _, err := jsonrpc.DecodeMessage(line); return err })
		run("valid", func(line []byte) error {
			if !json.Valid(line) {
				return errors.New("invalid")
			}
			return nil
		})
	}
}
