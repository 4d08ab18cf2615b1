package wire

import (
	"bytes"
	"errors"
	"io"
)

const (
	// startSize is what a pipe holds on Linux, so that one read can empty it.
	startSize = 64 << 10

	// keepSize is how big the buffer may stay between lines. Lines up to it are
	// copied out of the buffer; a longer one gets the buffer as its own, which
	// spares the copy and does not hold on to the memory.
	keepSize = 1 << 20

	// excerptSize is how much of a line that is too long is kept for the report.
	excerptSize = 256
)

// errTooLong means that a line was longer than the limit, and was passed over.
var errTooLong = errors.New("line too long")

// A lineReader cuts a stream into lines. It differs from bufio.Reader in that a
// long line grows one buffer instead of being pieced together, that every line
// is the caller's own, and that a line over the limit does not end the stream.
type lineReader struct {
	r     io.Reader
	limit int    // longest line in bytes, without its end
	buf   []byte // buf[start:] is read and not yet given out
	start int
	begun bool  // the first line was given out
	err   error // from r, to be reported once buf is used up
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: r, limit: limit, buf: make([]byte, 0, startSize)}
}

// next returns the next line without its line feed, the first one also without a
// byte order mark; the caller may keep it. The last line may come with the error that ended the stream, io.EOF at its end.
// errTooLong comes with the first bytes of the line, valid until the next call,
// and does not end the stream.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.cut()
	if !l.begun {
		l.begun = true
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line, err
}

// buffered reports whether more than was given out is there already.
func (l *lineReader) buffered() bool { return l.start < len(l.buf) }

// cut is next for any line.
func (l *lineReader) cut() ([]byte, error) {
	scanned := l.start
	for {
		if i := bytes.IndexByte(l.buf[scanned:], '\n'); i >= 0 {
			return l.take(scanned + i)
		}
		if len(l.buf)-l.start > l.limit {
			return l.skip()
		}
		if l.err != nil {
			line := l.buf[l.start:]
			l.buf, l.start = nil, 0
			return line, l.err
		}
		scanned = len(l.buf) - l.start // where that is once fill has moved it
		l.fill()
	}
}

// take gives out the line that ends at index end.
func (l *lineReader) take(end int) ([]byte, error) {
	line := l.buf[l.start:end:end]
	rest := l.buf[end+1:]
	if len(line) > l.limit {
		l.start = end + 1
		return line[:min(len(line), excerptSize)], errTooLong
	}
	if len(line) <= keepSize {
		l.start = end + 1
		return bytes.Clone(line), nil
	}
	l.buf = append(make([]byte, 0, max(startSize, len(rest))), rest...)
	l.start = 0
	return line, nil
}

// skip passes over the rest of a line that is too long.
func (l *lineReader) skip() ([]byte, error) {
	head := l.buf[l.start:]
	head = bytes.Clone(head[:min(len(head), excerptSize)])
	if cap(l.buf) > keepSize {
		l.buf = make([]byte, 0, startSize)
	}
	for {
		l.buf, l.start = l.buf[:0], 0
		if l.err != nil {
			return head, errTooLong // the error comes with the next call
		}
		l.fill()
		if i := bytes.IndexByte(l.buf, '\n'); i >= 0 {
			l.start = i + 1
			return head, errTooLong
		}
	}
}

// fill reads once, after making room. It moves what is not yet given out to the
// front of the buffer, so l.start is 0 afterwards.
func (l *lineReader) fill() {
	if l.start > 0 {
		l.buf = l.buf[:copy(l.buf, l.buf[l.start:])]
		l.start = 0
	}
	if len(l.buf) == cap(l.buf) {
		grown := make([]byte, len(l.buf), 2*cap(l.buf))
		copy(grown, l.buf)
		l.buf = grown
	}
	n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf, l.err = l.buf[:len(l.buf)+n], err
}
