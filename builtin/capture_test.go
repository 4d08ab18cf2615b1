package builtin

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"zenmcp/core"
)

// captured makes a capture of a pipe that holds only a few bytes of each end.
func captured(t *testing.T, scope *core.Scope) (*capture, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return newCapture(scope, "test.log", 1000, r), w
}

func TestCaptureHoldsBothEnds(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"ascii": "0123456789abcde\n", "wide": "é日😀x\n", "no lines": "日"} {
		for _, count := range []int{1, 100, 1300, 20000} {
			scope := newScope(t, core.Config{}, t.TempDir())
			c, w := captured(t, scope)
			text := "first " + strings.Repeat(line, count) + "last"
			for rest := []byte(text); len(rest) > 0; { // in pieces that break characters
				n := min(len(rest), 997)
				if _, err := w.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			w.Close()
			<-c.ended
			o := c.take()
			got := o.within(1000)
			if utf8.RuneCountInString(text) < 800 {
				if got != text {
					t.Errorf("%s %d: %.100q", name, count, got)
				}
				continue
			}
			want := core.ExtentOf(text)
			if !strings.HasPrefix(got, "first ") || !strings.HasSuffix(got, "last") || strings.Contains(got, "\ufffd") || core.Weigh(got, core.JSONCost) > 1000 {
				t.Errorf("%s %d: %q", name, count, got)
			}
			if o.all.Chars != 0 && (o.all.Chars != want.Chars || o.all.Lines != want.Lines) {
				t.Errorf("%s %d: counted %+v, want %+v", name, count, o.all, want)
			}
			file := got[strings.Index(got, "is in \"")+7:]
			data, err := os.ReadFile(file[:strings.IndexByte(file, '"')])
			if err != nil || string(data) != text {
				t.Errorf("%s %d: the file holds %d bytes of %d, %v", name, count, len(data), len(text), err)
			}
		}
	}
}

func TestCaptureOfTooMuch(t *testing.T) {
	t.Parallel()
	scope := newScope(t, core.Config{}, t.TempDir())
	c := &capture{scope: scope, name: "x", hold: 4096, limit: 10000}
	for range 20 {
		c.write(bytes.Repeat([]byte("x\n"), 500))
	}
	o := c.take()
	if got := o.within(1000); !strings.Contains(got, "not kept (it is more than 10000 bytes") || o.all.Chars != 20000 || o.all.Lines != 10000 {
		t.Errorf("%+v: %q", o.all, got)
	}
	c.write([]byte("late")) // is dropped
	if c.written() != 20004 || strings.Contains(c.lastLine(), "late") {
		t.Errorf("%d bytes, last line %q", c.written(), c.lastLine())
	}
}

func TestCaptureSettles(t *testing.T) {
	t.Parallel()
	scope := newScope(t, core.Config{}, t.TempDir())
	silent, _ := captured(t, scope)
	if silent.settle() {
		t.Error("a stream that somebody holds has not ended")
	}
	ending, end := captured(t, scope)
	time.AfterFunc(20*time.Millisecond, func() { end.Close() })
	if !ending.settle() {
		t.Error("a stream that ends in time has ended")
	}
	talking, w := captured(t, scope)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				io.WriteString(w, "x")
			}
		}
	}()
	defer close(stop)
	begin := time.Now()
	if talking.settle() || time.Since(begin) > 5*time.Second {
		t.Errorf("a stream that goes on was waited for, %v", time.Since(begin))
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ a, b, room, wantA, wantB int }{
		{10, 10, 100, 10, 90}, {500, 10, 100, 90, 10}, {10, 500, 100, 10, 90}, {500, 500, 101, 50, 51}, {5, 5, 0, 0, 0},
	} {
		if a, b := share(tt.a, tt.b, tt.room); a != tt.wantA || b != tt.wantB {
			t.Errorf("share(%d, %d, %d) = %d, %d", tt.a, tt.b, tt.room, a, b)
		}
	}
}
