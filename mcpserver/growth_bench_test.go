package mcpserver

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"zenmcp/core"
	"zenmcp/core/wire"
)

// A benchSession is a client of frames alone at the other end of two pipes, so that
// what is measured is the server.
type benchSession struct {
	b   *testing.B
	in  *os.File
	out *bufio.Reader
}

func newBenchSession(b *testing.B, of tools) *benchSession {
	b.Helper()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		return r, w
	}
	in, toServer := pipe()
	fromServer, out := pipe()
	s := benchServer(b, of)
	served := make(chan error, 1)
	go func() { served <- s.ServeStdio(context.Background(), &wire.Transport{In: in, Out: out}) }()
	b.Cleanup(func() { toServer.Close(); <-served })
	c := &benchSession{b, toServer, bufio.NewReaderSize(fromServer, 1<<20)}
	c.send(initialize)
	c.receive()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *benchSession) send(line string) {
	if _, err := c.in.WriteString(line + "\n"); err != nil {
		c.b.Error(err)
	}
}

// receive reads an answer and gives its size.
func (c *benchSession) receive() int {
	for size := 0; ; {
		part, err := c.out.ReadSlice('\n')
		if size == 0 && !strings.Contains(string(part[:min(len(part), 60)]), `"result"`) {
			c.b.Fatalf("%.200s", part)
		}
		size += len(part)
		if err == nil {
			return size
		} else if err != bufio.ErrBufferFull {
			c.b.Fatal(err)
		}
	}
}

// BenchmarkTools is tools/list with more and more tools.
func BenchmarkTools(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			many := make(tools, n)
			for i := range many {
				many[i] = define(fmt.Sprintf("tool%d", i), func(context.Context, *core.Call, string) (*core.Result, error) { return nil, nil })
			}
			c := newBenchSession(b, many)
			for b.Loop() {
				c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
				c.receive()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/tool")
		})
	}
}

// BenchmarkCallers is a small call with more and more of them on their way at
// once, brief ones and ones that get a goroutine each.
func BenchmarkCallers(b *testing.B) {
	brief := echo()
	brief.Pace = core.PaceBrief
	for name, tool := range map[string]core.Definition{"brief": brief, "long": echo()} {
		for _, n := range []int{1, 8, 64, 512} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				c := newBenchSession(b, tools{tool})
				free := make(chan struct{}, n)
				go func() {
					for i := range b.N {
						free <- struct{}{}
						c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello, mcp world"}}}`, i))
					}
				}()
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					c.receive()
					<-free
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			})
		}
	}
}

// BenchmarkSize is a call whose argument comes back as its result, with more and
// more of it.
func BenchmarkSize(b *testing.B) {
	for _, mb := range []int{1, 10, 50} {
		b.Run(fmt.Sprintf("%dMB", mb), func(b *testing.B) {
			c := newBenchSession(b, tools{echo()})
			text := strings.Repeat(`x = compute(a, b)  // \"quoted\" line\n`, mb<<20/38)
			message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + text + `"}}}`
			b.SetBytes(int64(len(message)))
			b.ReportAllocs()
			for b.Loop() {
				go c.send(message)
				if n := c.receive(); n < len(text) {
					b.Fatal(n)
				}
			}
		})
	}
}
