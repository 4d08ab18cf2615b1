package builtin

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/encoding/unicode"

	"zenmcp/core"
)

// maxReadBytes is the size up to which a file is read whole, and how much a
// range gives at once (contract §2, decision 12).
const maxReadBytes = 307_200

// binaryHead is how much of a file is looked at to tell text from binary data.
const binaryHead = 8 << 10

type readFileInput struct {
	Path  string `json:"path"`
	Range []int  `json:"range,omitempty" jsonschema:"[startLine, startCol, endLine, endCol]: from 0, end inclusive, negative from the end (-1 last)"`
}

// readFile gives the text of a file. Bytes that are not UTF-8 become U+FFFD; a
// file that begins with a UTF-16 byte order mark is decoded. A byte order mark
// stays in the text, and so do CRs.
//
// A range works on files of any size, without loading them. Lines are split at
// LF and columns are code points (decision 4), with the CR of a CRLF as one.
// Missing numbers are 0, 0, -1, -1. What is beyond an end is cut off; a start
// line beyond the last gives only a note of how many lines there are.
func readFile() core.Definition {
	return core.Define(core.Tool{
		Name:        "readFile",
		Title:       "Read file",
		Description: "Read a text file. Over 300 KB it needs a range.",
		Hints:       core.Hints{ReadOnly: true, Idempotent: true},
		Pace:        core.PaceBrief,
		Output:      core.OutputLong,
	}, func(ctx context.Context, call *core.Call, in readFileInput) (*core.Result, error) {
		path, err := call.Scope.Path(in.Path)
		if err != nil {
			return nil, err
		}
		real, err := path.Real(ctx)
		if err != nil {
			return nil, err
		}
		if len(in.Range) > 0 {
			return readRange(ctx, call.Scope, real, newExtent(in.Range))
		}
		data, info, err := real.ReadHead(ctx, maxReadBytes+1)
		if err != nil {
			return nil, err
		}
		if err := refuseBinary(real.Given, data, info); err != nil {
			return nil, err
		}
		if len(data) > maxReadBytes {
			return nil, fmt.Errorf("%q has %d bytes, and at most %d are read at once; read a part, such as range: [0, 0, 199, -1] for the first 200 lines",
				real.Given, max(info.Size(), int64(len(data))), maxReadBytes)
		}
		text, lossy, err := decode(data)
		if err != nil {
			return nil, err
		}
		seenBy(call.Scope).note(real, info, data, lossy)
		res := core.TextResult(text)
		res.From = &core.Place{File: in.Path}
		return res, nil
	})
}

// decode is the text of a whole file; lossy says that it is not all that the
// file holds.
func decode(data []byte) (text string, lossy bool, err error) {
	decoder := unicode.UTF8.NewDecoder()
	if enc := utf16Of(data); enc != nil {
		decoder = enc.NewDecoder()
	} else if utf8.Valid(data) {
		// Not a copy, since nobody changes data from here on.
		return unsafe.String(unsafe.SliceData(data), len(data)), false, nil
	}
	// One U+FFFD for each broken sequence, as browsers and Node decode.
	out, err := decoder.Bytes(data)
	return string(out), bytes.ContainsRune(out, utf8.RuneError), err
}

// refuseBinary is an error if what begins with data is not text.
func refuseBinary(given string, data []byte, info fs.FileInfo) error {
	head := data[:min(len(data), binaryHead)]
	if bytes.IndexByte(head, 0) < 0 || utf16Of(head) != nil {
		return nil
	}
	media := http.DetectContentType(head)
	if strings.HasPrefix(media, "image/") {
		return fmt.Errorf("%q is a picture (%s, %d bytes), not text; use viewImage", given, media, info.Size())
	}
	return fmt.Errorf("%q is binary data (%s, %d bytes), not text", given, media, info.Size())
}
