package builtin

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"zenmcp/core"
)

// toEnd stands for the last line or column, wherever that is.
const toEnd = math.MaxInt

// An extent is a range of readFile: from a line and column to a line and column,
// counted from 0, both included. Negative numbers count from the end.
type extent struct{ startLine, startCol, endLine, endCol int }

// newExtent takes what a caller gave of the four numbers.
func newExtent(given []int) extent {
	n := [4]int{0, 0, -1, -1}
	copy(n[:], given)
	return extent{n[0], n[1], n[2], n[3]}
}

// readRange reads an extent of a file, of which it holds no more than that.
func readRange(ctx context.Context, scope *core.Scope, real core.Path, e extent) (*core.Result, error) {
	f, info, err := real.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	source := real.Reader(ctx, f)
	head := make([]byte, binaryHead)
	n, err := io.ReadFull(source, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	if err := refuseBinary(real.Given, head[:n], info); err != nil {
		return nil, err
	}
	s := &lineStream{file: f, source: source, utf16: utf16Of(head[:n]),
		buffer: int(min(max(info.Size(), 512), streamBuffer))}
	if e, err = e.resolve(s); err != nil {
		return nil, err
	}
	text, note, err := e.read(s)
	if err != nil {
		return nil, err
	}
	seenBy(scope).notePart(real, info, bytes.ContainsRune(text, utf8.RuneError))
	if len(text) == 0 {
		return core.TextResult(note), nil
	}
	res := core.TextResult(string(text))
	res.From = &core.Place{File: real.Given, Line: e.startLine, Column: e.startCol}
	if note != "" && utf8.RuneCount(text) <= scope.Config().OutputBudget() { // else core says it
		res.Blocks = append(res.Blocks, core.Text(note))
	}
	return res, nil
}

// resolve counts every number from the beginning, for which the lines, or the
// columns of a line, may have to be counted first.
func (e extent) resolve(s *lineStream) (extent, error) {
	if e.endLine == -1 && e.endCol == -1 {
		e.endLine = toEnd
	}
	if e.startLine < 0 || e.endLine < 0 || e.endCol != -1 {
		until := e.endLine
		if e.startLine < 0 || e.endLine < 0 {
			until = toEnd
		}
		last, err := s.toLine(until)
		if err != nil {
			return e, err
		}
		e.startLine = fromEnd(e.startLine, last+1)
		e.endLine = min(fromEnd(e.endLine, last+1), last)
	}
	var err error
	if e.startCol < 0 {
		e.startCol, err = s.column(e.startLine, e.startCol)
	}
	switch {
	case err != nil:
	case e.endCol == -1:
		e.endCol = toEnd
	case e.endCol < 0:
		e.endCol, err = s.column(e.endLine, e.endCol)
	}
	return e, err
}

// fromEnd counts a negative n back from count, but not beyond the beginning.
func fromEnd(n, count int) int {
	if n < 0 {
		return max(0, count+n)
	}
	return n
}

// read gives the text of a resolved extent, and a note if that begins beyond the
// end or is too much for once.
func (e extent) read(s *lineStream) (text []byte, note string, err error) {
	at, err := s.toLine(e.startLine)
	if err != nil {
		return nil, "", err
	}
	if at < e.startLine {
		return nil, fmt.Sprintf("note: nothing to read: the file has %s, counted from 0", core.Plural(at+1, "line")), nil
	}
	first := e.startCol
	for line := e.startLine; line <= e.endLine; line++ {
		last := toEnd
		if line == e.endLine {
			last = e.endCol
		}
		for col := 0; col <= last; col++ {
			if len(text) >= maxReadBytes {
				return text, fmt.Sprintf("note: cut after %d bytes; go on with a range that begins with %d, %d", len(text), line, col), nil
			}
			r, _, err := s.text.ReadRune()
			if err == io.EOF {
				return text, "", nil
			}
			if err != nil {
				return nil, "", err
			}
			if r == '\n' {
				if line < e.endLine {
					text = append(text, '\n')
				}
				break
			}
			if col >= first {
				text = utf8.AppendRune(text, r)
			}
		}
		first = 0
	}
	return text, "", nil
}

// A lineStream reads a file by lines and columns, as often as need be.
type lineStream struct {
	file   *os.File
	source io.Reader         // of file
	utf16  encoding.Encoding // nil for UTF-8
	buffer int               // how much is read at once

	lines *bufio.Reader // for whole lines
	text  *bufio.Reader // for characters, from where lines is
}

// streamBuffer is the most that is read at once.
const streamBuffer = 256 << 10

// toLine goes to the beginning of line n and returns n, or the number of the
// last line if there are fewer.
func (s *lineStream) toLine(n int) (int, error) {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	s.lines = bufio.NewReaderSize(s.source, s.buffer)
	if s.utf16 != nil {
		s.lines = bufio.NewReaderSize(transform.NewReader(s.lines, s.utf16.NewDecoder()), s.buffer)
	}
	s.text = bufio.NewReader(transform.NewReader(s.lines, unicode.UTF8.NewDecoder()))
	for at := 0; at < n; {
		switch _, err := s.lines.ReadSlice('\n'); err {
		case nil:
			at++
		case bufio.ErrBufferFull: // the line goes on
		case io.EOF:
			return at, nil
		default:
			return 0, err
		}
	}
	return n, nil
}

// column is the place of a column that is counted from the end of its line.
func (s *lineStream) column(line, fromLast int) (int, error) {
	if at, err := s.toLine(line); err != nil || at < line {
		return 0, err
	}
	for n := 0; ; n++ {
		switch r, _, err := s.text.ReadRune(); {
		case err == io.EOF || err == nil && r == '\n':
			return fromEnd(fromLast, n), nil
		case err != nil:
			return 0, err
		}
	}
}
