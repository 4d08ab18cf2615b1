//go:build unix

package wire

import (
	"io"
	"maps"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestBriefWait is that a message which waits briefly keeps its reader unless there
// is something to read: in the buffer, or in the pipe.
func TestBriefWait(t *testing.T) {
	t.Parallel()
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	note := func(method string) string { return `{"jsonrpc":"2.0","method":"` + method + `"}` + "\n" }
	type message struct {
		method string
		left   bool // by its reader
	}
	seen := make(chan message, 5)
	c := (&Transport{In: in, Out: io.Discard, Intercept: func(c *Conn, req *jsonrpc.Request, readOn func(bool)) bool {
		r := c.reader.Load()
		if req.Method == "before one in the pipe" {
			io.WriteString(w, note("the last"))
		}
		readOn(true)
		seen <- message{req.Method, c.reader.Load() != r}
		return true
	}}).Open()
	c.relief.ticking.Store(true) // so that its clock, which may come in between, is not started
	got := map[string]bool{}
	for _, batch := range [][]string{{"alone"}, {"before one in the buffer", "behind it"}, {"before one in the pipe", ""}} {
		text := ""
		for _, method := range batch {
			if method != "" {
				text += note(method)
			}
		}
		io.WriteString(w, text)
		for range batch {
			m := <-seen
			got[m.method] = m.left
		}
	}
	w.Close()
	<-c.Drained()
	want := map[string]bool{"alone": false, "before one in the buffer": true, "behind it": false, "before one in the pipe": true, "the last": false}
	if !maps.Equal(got, want) {
		t.Errorf("left: %v, want %v", got, want)
	}
}
