package builtin

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"zenmcp/core"
	"zenmcp/core/proc"
)

// maxKept is how many bytes of one stream are written to a file. What comes
// after them is counted and dropped: no command is ended for talking.
const maxKept int64 = 1 << 30

// A capture takes what a command writes to one stream. It holds the beginning
// and the end; once that is not the whole any more, everything goes to a private
// file as it comes. So a command may print more than there is memory.
type capture struct {
	scope *core.Scope
	name  string // of the file
	hold  int    // how many bytes of the beginning are held, and at least of the end
	limit int64  // how many go to the file
	ended chan struct{}

	mu    sync.Mutex
	size  int64
	head  []byte
	tail  []byte      // empty while head is the whole
	all   core.Extent // counted once head is not the whole
	file  *os.File    // nil while head is the whole, or if there can be none
	taken bool
}

// newCapture reads a stream until its end, and then closes it. A budget is in
// code points, which have up to four bytes.
func newCapture(scope *core.Scope, name string, budget int, stream *os.File) *capture {
	c := &capture{scope: scope, name: name, hold: max(4096, 4*budget), limit: maxKept, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		defer stream.Close()
		buf := make([]byte, 4096)
		for {
			n, err := stream.Read(buf)
			if n > 0 {
				c.write(buf[:n])
			}
			if err != nil {
				return
			}
			if n == len(buf) && n < 1<<16 {
				buf = make([]byte, 2*n)
			}
		}
	}()
	return c
}

func (c *capture) write(data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += int64(len(data))
	if c.taken {
		return
	}
	if c.tail == nil {
		n := min(len(data), c.hold-len(c.head))
		c.head = append(c.head, data[:n]...)
		if n == len(data) {
			return
		}
		c.tail = bytes.Clone(c.head)
		c.file, c.all.Lost = c.scope.OutputFile(c.name)
		c.spill(c.head)
		data = data[n:]
	}
	c.spill(data)
	if len(c.tail)+len(data) > 2*c.hold {
		c.tail = append(c.tail[:0], c.tail[max(0, len(c.tail)-c.hold):]...)
	}
	c.tail = append(c.tail, data...)
}

// spill counts data and appends it to the file.
func (c *capture) spill(data []byte) {
	c.all.Lines += bytes.Count(data, []byte{'\n'})
	for _, b := range data {
		if b&0xC0 != 0x80 { // not the continuation of a code point
			c.all.Chars++
		}
	}
	if c.file == nil {
		return
	}
	if c.size > c.limit {
		c.all.Lost = fmt.Errorf("it is more than %d bytes, of which %q has the first", c.limit, c.file.Name())
	} else {
		_, c.all.Lost = c.file.Write(data)
	}
	if c.all.Lost != nil {
		c.closeFile()
	}
}

func (c *capture) closeFile() {
	if c.file != nil {
		c.file.Close()
		c.file = nil
	}
}

// take ends the capture and returns what is to be shown of the stream. Whatever
// comes later is dropped, but read, so that what still writes is not disturbed.
func (c *capture) take() output {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = true
	if c.tail == nil {
		text := proc.Decode(c.head)
		return output{c.scope, c.name, text, text, core.Extent{}}
	}
	if c.tail[len(c.tail)-1] != '\n' {
		c.all.Lines++
	}
	if c.file != nil {
		c.all.File = c.file.Name()
		c.closeFile()
	}
	return output{c.scope, c.name, proc.Decode(wholeRunes(c.head)), proc.Decode(wholeRunes(c.tail)), c.all}
}

// wholeRunes is text without the halves of code points at its ends.
func wholeRunes(text []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && len(text) > 0 && !utf8.RuneStart(text[0]); i++ {
		text = text[1:]
	}
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				text = text[:i]
			}
			break
		}
	}
	return text
}

// settle waits for the end of the stream once the shell has ended. False means
// that something else holds it: nothing more comes, or it goes on talking.
func (c *capture) settle() bool {
	const step, patience, limit = 10 * time.Millisecond, 5, 50
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	last, still := c.written(), 0
	for range limit {
		select {
		case <-c.ended:
			return true
		case <-ticker.C:
		}
		if size := c.written(); size != last {
			last, still = size, 0
		} else if still++; still == patience {
			return false
		}
	}
	return false
}

// written is how many bytes there were so far.
func (c *capture) written() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

// lastLine is the last line with something in it, as a terminal would show it.
func (c *capture) lastLine() string {
	c.mu.Lock()
	recent := c.tail
	if recent == nil {
		recent = c.head
	}
	recent = bytes.Clone(recent[max(0, len(recent)-1000):])
	c.mu.Unlock()
	line := bytes.TrimRight(wholeRunes(recent), "\r\n\t ")
	line = line[bytes.LastIndexAny(line, "\r\n")+1:]
	return core.Clip(proc.Decode(line), 200)
}

// An output is what a command wrote to one stream: the whole, or its ends.
type output struct {
	scope      *core.Scope
	name       string
	head, tail string
	all        core.Extent // zero when head is the whole
}

// weight is what the output takes of the budget as part of a JSON answer.
func (o output) weight() int {
	if o.all.Chars > 0 {
		return o.all.Chars
	}
	return core.Weigh(o.head, core.JSONCost)
}

// within is the output as text that takes no more than limit.
func (o output) within(limit int) string {
	if o.weight() <= limit {
		return o.head
	}
	if o.all.Chars == 0 {
		o.all = core.ExtentOf(o.head)
		o.all.File, o.all.Lost = o.scope.KeepOutput(o.name, []byte(o.head))
	}
	return core.Excerpt(o.head, o.tail, o.all, limit, core.OutputLog, core.JSONCost)
}
