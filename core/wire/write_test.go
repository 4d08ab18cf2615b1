package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func testID(t *testing.T, v any) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.MakeID(v)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAppendMessageLikeTheSDK(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"a":"<b>&\u2028","n":12345678901234567890}`)
	for _, id := range []any{nil, 0.0, -3.0, 42.0, 1e15, "", "a-1", `q"\`, "é", "<&>", "\x7f", "\u2028", "\n"} {
		id := testID(t, id)
		for _, msg := range []jsonrpc.Message{
			&jsonrpc.Request{ID: id, Method: "tools/call", Params: raw},
			&jsonrpc.Request{ID: id, Method: "tools/call"},
			&jsonrpc.Request{ID: id, Method: "é\"<"},
			&jsonrpc.Request{ID: id},
			&jsonrpc.Response{ID: id, Result: raw},
			&jsonrpc.Response{ID: id},
			&jsonrpc.Response{ID: id, Result: json.RawMessage("{\n}")},
			&jsonrpc.Response{ID: id, Result: json.RawMessage("{\r}")},
			&jsonrpc.Response{ID: id, Error: errors.New("plain")},
			&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: 1, Message: "<m>", Data: raw}},
		} {
			want, err := jsonrpc.EncodeMessage(msg)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Append([]byte("x"), msg)
			if err != nil || string(got) != "x"+string(want) {
				t.Errorf("%#v:\ngot  %s, %v\nwant x%s", msg, got, err, want)
			}
		}
	}
}

func TestAppendMessageThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	got, err := Append(nil, &jsonrpc.Response{
		ID:    testID(t, 3.0),
		Error: &jsonrpc.Error{Data: json.RawMessage("{")},
	})
	if err != nil || !strings.HasPrefix(string(got), `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,`) {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := Append(nil, &jsonrpc.Request{Method: "m", Params: json.RawMessage("\n")}); err == nil {
		t.Error("a bad request was encoded")
	}
}

func BenchmarkAppend(b *testing.B) {
	id, _ := jsonrpc.MakeID(42.0)
	resp := &jsonrpc.Response{ID: id, Result: json.RawMessage(frameOf(200_000))}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf, _ = Append(buf[:0], resp)
		}
	})
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = jsonrpc.EncodeMessage(resp)
		}
	})
}
