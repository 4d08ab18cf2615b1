package wire

import (
	"strings"
	"testing"
)

// initialize negotiates a version.
func (f *far) initialize(version string) {
	f.t.Helper()
	f.send(`{"jsonrpc":"2.0","id":"init","method":"initialize"}`)
	f.answer(f.read(), `{"protocolVersion":"`+version+`"}`)
	f.want(`{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"` + version + `"}}`)
}

func TestBatch(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2024-11-05", "2025-03-26"} {
		f := open(t, Transport{})
		f.initialize(version)

		f.send("[" + ping("1") + `,{"jsonrpc":"2.0","method":"n"}, ` + ping(`"b"`) + "]")
		one, note, two := f.read(), f.read(), f.read()
		if note.Method != "n" {
			t.Errorf("got %#v", note)
		}
		f.conn.Write(t.Context(), response(two, "{}"))
		f.send(ping("3")) // what is outside the batch does not wait for it
		f.answer(f.read(), "{}")
		f.want(pong("3"))
		f.answer(one, "{}")
		f.want("[" + pong(`"b"`) + "," + pong("1") + "]")

		f.send("[]")
		f.wantError("null", -32600, "empty")
		f.send(`[{"jsonrpc":"2.0","method":"n"}]`) // no answer
		f.read()
		f.send(ping("4"))
		f.answer(f.read(), "{}")
		f.want(pong("4"))
	}
}

func TestBatchWithBadMembers(t *testing.T) {
	t.Parallel()
	f := open(t, Transport{})
	f.initialize("2025-03-26")

	f.send(ping("1"))
	outside := f.read()
	f.send("[" + strings.Join([]string{ping("1"), "5", ping("2"), ping("2"), "[]"}, ",") + "]")
	f.answer(f.read(), "{}")
	line, err := f.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int{`"id":1,"error":{"code":-32600`: 1, `"id":2,"error":{"code":-32600`: 1, `"id":null,"error":{"code":-32600`: 2, pong("2"): 1} {
		if got := strings.Count(line, id); got != want {
			t.Errorf("%d times %s, want %d, in %s", got, id, want, line)
		}
	}
	f.answer(outside, "{}")
	f.want(pong("1"))

	f.send("[5]") // nothing to wait for
	line, err = f.out.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, `[{"jsonrpc":"2.0","id":null,"error":{"code":-32600`) {
		t.Errorf("got %s, %v", line, err)
	}
}

func TestBatchNotSupported(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		f := open(t, Transport{})
		f.initialize(version)
		f.send("[" + ping("1") + "]")
		f.wantError("null", -32600, "batches are not supported")
	}
}

// What a client may send behind an initialize does not depend on how fast that is
// answered.
func TestBatchBehindInitialize(t *testing.T) {
	t.Parallel()
	for version, allowed := range map[string]bool{"2025-03-26": true, "2025-06-18": false} {
		f := open(t, Transport{})
		f.send(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, "["+ping("2")+"]")
		f.answer(f.read(), `{"protocolVersion":"`+version+`"}`)
		f.want(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"` + version + `"}}`)
		if allowed {
			f.answer(f.read(), "{}")
			f.want("[" + pong("2") + "]")
		} else {
			f.wantError("null", -32600, "batches are not supported")
		}
	}
}
