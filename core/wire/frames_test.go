package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// fuzzMaxLine is small, so that lines over the limit are found.
const fuzzMaxLine = 3000

// wantAnswers says how many lines a line is worth in answers, for a session
// without batches. It knows nothing of how this package reads.
func wantAnswers(line string) int {
	if len(line) > fuzzMaxLine {
		return 1
	}
	line = strings.Trim(line, " \t\r")
	if line == "" {
		return 0
	}
	if !json.Valid([]byte(line)) {
		return 1
	}
	msg, err := jsonrpc.DecodeMessage([]byte(line))
	if err != nil {
		return 1
	}
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		return 1
	}
	return 0
}

// serveAll answers every call, from many goroutines, until the session ends.
func serveAll(c *Conn) {
	for {
		msg, err := c.Read(context.Background())
		if err != nil {
			return
		}
		if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
			go c.Write(context.Background(), response(req, `{"ok":true}`))
		}
	}
}

// checkFrames feeds a connection and looks at all it says.
func checkFrames(t *testing.T, data string) {
	const fresh = `"an ID that is in no input"`
	lines := strings.Split(data, "\n")
	want := 1 // for the fresh call
	for i, line := range lines {
		if bom := "\ufeff"; i == 0 && len(line) <= fuzzMaxLine {
			line = strings.TrimPrefix(line, bom)
		}
		want += wantAnswers(line)
	}
	outR, outW := io.Pipe()
	c := (&Transport{In: strings.NewReader(data + "\n" + ping(fresh)), Out: outW, MaxLine: fuzzMaxLine}).Open()
	go serveAll(c)
	out, err := io.ReadAll(outR)
	if err != nil {
		t.Fatal(err)
	}
	if c.Err() != io.EOF {
		t.Fatalf("%q ended the session: %v", data, c.Err())
	}
	got := bytes.SplitAfter(out, []byte("\n"))
	if got = got[:len(got)-1]; len(got) != want {
		t.Fatalf("%q has %d answers, want %d:\n%s", data, len(got), want, out)
	}
	for _, line := range got {
		if msg, err := jsonrpc.DecodeMessage(line); err != nil && !bytes.Contains(line, []byte(`"id":null,"error"`)) {
			t.Fatalf("%q: answer %s is read as %#v, %v", data, line, msg, err)
		}
	}
	if n := bytes.Count(out, []byte(`"id":`+fresh+`,"result":{"ok":true}}`)); n != 1 {
		t.Fatalf("%q: the call after it has %d answers:\n%s", data, n, out)
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, line := range seeds() {
		checkFrames(t, line)
	}
	checkFrames(t, strings.Join(seeds(), "\n"))
	checkFrames(t, "\ufeff"+strings.Repeat("x", fuzzMaxLine)+"\n"+strings.Repeat(" ", fuzzMaxLine+1))
}

func FuzzFrames(f *testing.F) {
	for _, line := range seeds() {
		f.Add([]byte(line + "\r\n" + line))
	}
	f.Add([]byte(strings.Join(seeds(), "\n")))
	f.Fuzz(func(t *testing.T, data []byte) { checkFrames(t, string(data)) })
}
