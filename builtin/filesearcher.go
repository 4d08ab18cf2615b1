package builtin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"zenmcp/core"
)

const (
	// searchBlock is the size in bytes of files that are read at once; of bigger
	// ones, this much is searched at a time.
	searchBlock = 1 << 20
	// maxLine is the longest line in bytes, beyond that a file is too big.
	maxLine = 16 << 20
)

// A fileSearcher searches one file after the other with buffers that it keeps.
// It serves one goroutine.
type fileSearcher struct {
	finder        *lineFinder
	goesOn        func() bool // is called from time to time, and says whether to go on; nil if nobody waits for it
	limit         int         // lines of one file
	maxLineLength int         // code points
	buf           []byte

	hits   []hit
	passed int // lines of the file before the last hit, or before the block
}

// newFileSearcher makes one for files of up to maxSize bytes, 0 for no limit.
func newFileSearcher(e *lineExpression, limit, maxLineLength int, maxSize int64) *fileSearcher {
	if maxSize == 0 || maxSize > searchBlock {
		maxSize = searchBlock
	}
	return &fileSearcher{finder: e.finder(), limit: limit, maxLineLength: maxLineLength, buf: make([]byte, 0, maxSize+1)}
}

// entry searches a regular file in a folder.
func (s *fileSearcher) entry(in *folder, name string, maxSize int64) ([]hit, error) {
	data, err := in.ReadFile(name, s.buf, min(maxSize, searchBlock))
	switch {
	case errors.Is(err, core.ErrTooBig) && maxSize > searchBlock:
		return s.big(in, name, maxSize)
	case errors.Is(err, core.ErrTooBig):
		return nil, skipTooBig
	case err != nil:
		return nil, err
	}
	if err := s.begin(data); err != nil {
		return nil, err
	}
	_, err = s.search(withoutBOM(data))
	return s.hits, err
}

// big is entry for a file of more than a block.
func (s *fileSearcher) big(in *folder, name string, maxSize int64) ([]hit, error) {
	file, size, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return s.opened(file, size, maxSize)
}

// path searches what a path leads to; maxSize 0 is no limit.
func (s *fileSearcher) path(ctx context.Context, p core.Path, maxSize int64) ([]hit, error) {
	file, info, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return s.opened(p.Reader(ctx, file), info.Size(), maxSize)
}

// opened searches a file that is open.
func (s *fileSearcher) opened(file io.Reader, size, maxSize int64) ([]hit, error) {
	if maxSize > 0 && size > maxSize {
		return nil, skipTooBig
	}
	s.hits = nil
	err := s.stream(file)
	return s.hits, err
}

// stream searches in blocks that end with a line.
func (s *fileSearcher) stream(r io.Reader) error {
	buf := s.buf
	for first := true; ; first = false {
		n, err := io.ReadFull(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		atEnd := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !atEnd {
			s.buf = make([]byte, 0, cap(s.buf)) // a read that was given up may still fill the old one
			return err
		}
		if first {
			if err := s.begin(buf); err != nil {
				return err
			}
			buf = withoutBOM(buf)
		}
		lines := buf
		if !atEnd {
			lines = buf[:bytes.LastIndexByte(buf, '\n')+1]
		}
		counted, err := s.search(lines)
		if err != nil || atEnd || len(s.hits) == s.limit {
			return err
		}
		s.passed += bytes.Count(lines[counted:], []byte{'\n'})
		if s.goesOn != nil && !s.goesOn() {
			return nil
		}
		if len(lines) > 0 {
			buf = append(buf[:0], buf[len(lines):]...)
		} else if cap(buf) < maxLine {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		} else {
			return skipTooBig
		}
	}
}

// begin prepares for a file that begins with head.
func (s *fileSearcher) begin(head []byte) error {
	s.hits, s.passed = nil, 0
	if bytes.IndexByte(head[:min(len(head), binaryHead)], 0) >= 0 {
		return skipBinary
	}
	s.finder.begin()
	return nil
}

func withoutBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// search adds the hits in whole lines, up to the limit. It has counted the lines
// in the first bytes.
func (s *fileSearcher) search(lines []byte) (counted int, err error) {
	for from := 0; len(s.hits) < s.limit; {
		line, ok, err := s.finder.next(lines, from)
		if err != nil || !ok {
			return counted, err
		}
		s.passed += bytes.Count(lines[counted:line.start], []byte{'\n'})
		s.hits = append(s.hits, s.hit(line))
		counted, from = line.start, line.end+1
	}
	return counted, nil
}

// hit is how the answer shows a line.
func (s *fileSearcher) hit(line foundLine) hit {
	h := hit{Line: s.passed + 1}
	content, cut := excerpt(line.text, line.from, line.to, s.maxLineLength)
	h.Content = content
	if cut {
		h.Column = utf8.RuneCount(line.text[:line.from]) + 1
	}
	if s.finder.text == nil {
		match, _ := excerpt(line.text[line.from:line.to], 0, 0, s.maxLineLength)
		h.Match = &match
	}
	return h
}

// excerpt is text if it has at most limit characters. Else it is so many of them
// with an ellipsis where it was cut: the first, if the match from byte from to
// byte to is among them, or those around the match.
func excerpt(text []byte, from, to, limit int) (content string, cut bool) {
	if len(text) <= limit {
		return string(text), false
	}
	size := utf8.RuneCount(text)
	if size <= limit {
		return string(text), false
	}
	before, middle := utf8.RuneCount(text[:from]), utf8.RuneCount(text[from:to])
	skip := 0
	if before+middle > limit {
		skip = min(before-max(limit-middle, 0)/2, size-limit)
	}
	runes := []rune(string(text))
	content = string(runes[skip : skip+limit])
	if skip > 0 && limit > 0 {
		content = "…" + content
	}
	if skip+limit < size || limit == 0 {
		content += "…"
	}
	return content, true
}
