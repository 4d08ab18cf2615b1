package core

import (
	"encoding/json"
	"fmt"
	"strings"

	"zenmcp/core/rawjson"
)

// A Result is what a call gives: blocks in order. The MCP edge and the agent
// loop each render them in their own way.
type Result struct {
	Blocks  []Block
	IsError bool
	Meta    map[string]any // _meta of the result

	// From, if not nil, says that the first block is text of a file that the
	// caller can read itself: should it be over the budget, the caller is sent
	// there and no copy is kept.
	From *Place

	// Whole, if not nil, is another MCP server's complete result object, which
	// is passed on byte for byte; everything above is unset then.
	Whole json.RawMessage
}

// A Place is where a text begins in a file: the line and the column, in code
// points, are counted from 0.
type Place struct {
	File         string // as the caller names it
	Line, Column int
}

// A Block is one piece of a result's content: [Text], [Image], [ImageURL],
// [FileRef], [ResourceLink] or [Raw].
type Block interface{ block() }

// Text is a block of text.
type Text string

// An Image is a picture's bytes.
type Image struct {
	MIMEType string
	Data     []byte
}

// An ImageURL is a picture that whoever reads the result fetches itself.
type ImageURL struct {
	URL      string
	MIMEType string
}

// A FileRef is a file that was uploaded to the Files API of a model's endpoint.
type FileRef struct {
	ID   string
	Name string
}

// A ResourceLink points to a resource, as the MCP specification describes it.
type ResourceLink struct {
	URI         string
	Name        string
	Description string
	MIMEType    string
}

// Raw is one content block of another MCP server, untouched.
type Raw json.RawMessage

func (Text) block()         {}
func (Image) block()        {}
func (ImageURL) block()     {}
func (FileRef) block()      {}
func (ResourceLink) block() {}
func (Raw) block()          {}

// TextResult is a result of one text.
func TextResult(text string) *Result { return &Result{Blocks: []Block{Text(text)}} }

// JSONResult is a result of one text that is v as compact JSON.
func JSONResult(v any) (*Result, error) {
	text, err := rawjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	return TextResult(string(text)), nil
}

// ListResult is JSONResult of a list of texts, in less than half of the time,
// which counts for the paths of a tree.
func ListResult(list []string) *Result {
	size := 2
	for _, s := range list {
		size += len(s) + len(`"",`)
	}
	text := append(make([]byte, 0, size), '[')
	for i, s := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = rawjson.AppendString(text, s)
	}
	return TextResult(string(append(text, ']')))
}

// FailJSON is JSONResult with the error flag: a failure whose contract is an
// object (decision 2).
func FailJSON(v any) (*Result, error) {
	r, err := JSONResult(v)
	if err != nil {
		return nil, err
	}
	r.IsError = true
	return r, nil
}

// ErrorResult is what a caller sees of a tool's error.
func ErrorResult(err error) *Result {
	r := TextResult(err.Error())
	r.IsError = true
	return r
}

// Text joins the text blocks of the result with line feeds.
func (r *Result) Text() string {
	var parts []string
	for _, b := range r.Blocks {
		if t, ok := b.(Text); ok {
			parts = append(parts, string(t))
		}
	}
	return strings.Join(parts, "\n")
}

// Clip shortens text to at most limit code points, with an ellipsis where it
// was cut.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	n, cut := 0, 0
	for i := range text {
		if n++; n == limit {
			cut = i
		} else if n > limit {
			return text[:cut] + "…"
		}
	}
	return text
}

// Plural is "1 file" or "3 files".
func Plural(n int, thing string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
