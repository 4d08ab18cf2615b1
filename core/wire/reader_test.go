package wire

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestSlowIntercept is that a message which keeps Intercept busy keeps neither the
// next ones nor the end of the input from being seen, whether it says so or not.
func TestSlowIntercept(t *testing.T) {
	t.Parallel()
	for _, says := range []bool{true, false} {
		t.Run(fmt.Sprintf("says so %v", says), func(t *testing.T) {
			t.Parallel()
			second := make(chan struct{})
			var seen atomic.Int32
			in, w := io.Pipe()
			c := (&Transport{In: in, Out: io.Discard, Intercept: func(c *Conn, req *jsonrpc.Request, readOn func(bool)) bool {
				if seen.Add(1) == 1 {
					if says {
						readOn(false)
						readOn(false) // once more is fine
					}
					<-second
				} else {
					close(second)
				}
				return true
			}}).Open()
			note := `{"jsonrpc":"2.0","method":"n"}` + "\n"
			io.WriteString(w, note+note)
			<-second
			w.Close()
			<-c.Drained()
			if _, err := c.Read(t.Context()); err != io.EOF || seen.Load() != 2 {
				t.Errorf("%d messages, then %v", seen.Load(), err)
			}
		})
	}
}

// TestRelief has readers relieved all the time, by themselves and by the clock:
// each message must still be seen once, whole.
func TestRelief(t *testing.T) {
	t.Parallel()
	const n = 3000
	var mu sync.Mutex
	seen := map[string]int{}
	var over sync.WaitGroup
	over.Add(n)
	in, w := io.Pipe()
	c := (&Transport{In: in, Out: io.Discard, Intercept: func(c *Conn, req *jsonrpc.Request, readOn func(bool)) bool {
		defer over.Done()
		switch len(req.Params) % 7 {
		case 0:
			readOn(false)
		case 1:
			for r := c.reader.Load(); r.turn.Load() != relieved && c.reader.Load() == r; { // until the clock comes
			}
		case 2:
			defer readOn(true) // too late to matter
		}
		mu.Lock()
		defer mu.Unlock()
		seen[string(req.Params)]++
		return true
	}}).Open()
	want := map[string]int{}
	var input strings.Builder
	for i := range n {
		params := fmt.Sprintf(`{"i":%d,"fill":%q}`, i, strings.Repeat("x", i%60))
		if len(params)%7 == 1 && i%20 != 0 { // not too often, since it takes a millisecond
			params = params[:len(params)-1] + ` }`
		}
		want[params]++
		input.WriteString(`{"jsonrpc":"2.0","method":"n","params":` + params + "}\n")
	}
	io.WriteString(w, input.String())
	w.Close()
	<-c.Drained()
	over.Wait() // one that was relieved may be the last
	for params, times := range want {
		if seen[params] != times {
			t.Errorf("saw %s %d times", params, seen[params])
		}
	}
	if len(seen) != n {
		t.Errorf("saw %d messages, want %d", len(seen), n)
	}
}

// TestSlowThen is that what a delivered message leads to keeps neither the next ones
// nor the end from being seen, and that each is delivered in its turn.
func TestSlowThen(t *testing.T) {
	t.Parallel()
	note := func(n int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"n%d"}`, n) }
	for _, form := range []string{"%s\n%s\n%s\n", "[%s,%s,%s]\n"} {
		input := fmt.Sprintf(form, note(1), note(2), note(3))
		var got []string
		third := make(chan struct{})
		var over sync.WaitGroup
		over.Add(2)
		c := (&Transport{In: strings.NewReader(input), Out: io.Discard, Peer: true, Deliver: func(msg jsonrpc.Message) func() {
			if got = append(got, msg.(*jsonrpc.Request).Method); len(got) == 3 {
				close(third)
				return nil
			}
			return func() {
				<-third
				over.Done()
			}
		}}).Open()
		<-c.Drained()
		over.Wait()
		if s := strings.Join(got, " "); s != "n1 n2 n3" {
			t.Errorf("%s came as %s", input, s)
		}
	}
}
