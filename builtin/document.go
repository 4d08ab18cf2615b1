package builtin

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

// A document is a file's content as text that can be edited and written back
// without touching a byte outside the edit.
type document struct {
	// text is the content: the file's own bytes, or UTF-16 as UTF-8. A byte
	// order mark is part of it.
	text []byte
	// utf16 is set if the file begins with a UTF-16 byte order mark.
	utf16 encoding.Encoding
	// foreign says that the file is in an unknown encoding, of which no more is
	// sure than that ASCII is ASCII: Latin-1, GB18030, Shift JIS, binary data.
	foreign bool
}

// newDocument finds out how data is text. UTF-16 is known by its byte order
// mark only.
func newDocument(data []byte) (document, error) {
	if enc := utf16Of(data); enc != nil {
		text, err := enc.NewDecoder().Bytes(data)
		if err != nil {
			return document{}, err
		}
		d := document{text: text, utf16: enc}
		if back, err := d.bytes(); err != nil || !bytes.Equal(back, data) {
			return document{}, errors.New("the file begins as UTF-16, but not all of it is valid UTF-16, so it cannot be edited without damage")
		}
		return d, nil
	}
	return document{text: data, foreign: foreign(data)}, nil
}

// bytes is the content as the file stores it.
func (d document) bytes() ([]byte, error) {
	if d.utf16 == nil {
		return d.text, nil
	}
	return d.utf16.NewEncoder().Bytes(d.text)
}

// utf16Of tells the encoding of data that begins with a UTF-16 byte order mark;
// nil if it does not. The mark stays a character of the text, as it does in
// UTF-8.
func utf16Of(data []byte) encoding.Encoding {
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE, 0, 0}): // UTF-32
		return nil
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return nil
}

// foreign reports whether data is not UTF-8. Some broken bytes among more
// characters that are UTF-8 are damage, not another encoding.
func foreign(data []byte) bool {
	if utf8.Valid(data) {
		return false
	}
	broken, good := 0, 0
	for len(data) > 0 {
		switch r, size := utf8.DecodeRune(data); {
		case r == utf8.RuneError && size == 1:
			broken++
			data = data[1:]
		case size > 1:
			good++
			data = data[size:]
		default:
			data = data[size:]
		}
	}
	return broken > good
}

// halfCharacter reports whether a match at start of text in an unknown encoding
// may begin in the middle of a character. In GB18030, Shift JIS and Big5 the
// second byte of a character can be an ASCII letter or digit.
func halfCharacter(text []byte, start int) bool {
	if c := text[start]; c < '0' || c > '9' && c < '@' || c > '~' {
		return false
	}
	lead := 0
	for start > lead && text[start-lead-1] >= 0x81 && text[start-lead-1] != 0xFF {
		lead++
	}
	return lead%2 == 1
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
