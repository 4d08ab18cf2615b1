package core

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"zenmcp/core/rawjson"
)

// maxShownImage is the largest picture that is sent to a model, in bytes of
// base64. Services refuse larger ones, and then the whole conversation.
const maxShownImage = 5 << 20

// ImageType is the media type of a picture by its bytes, whatever its name says:
// image/png, image/jpeg, image/gif or image/webp, the four that models take; ""
// for everything else.
func ImageType(data []byte) string {
	media := http.DetectContentType(data)
	if slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media) {
		return media
	}
	return ""
}

// A shown result is what a chat model gets of it: texts for the message of the
// tool, and content parts, which are pictures and files, for the message after
// that.
type shown struct {
	tool    string
	vision  bool // the model sees pictures
	isError bool
	texts   []string
	parts   []json.RawMessage
}

// show renders a result for the run's model.
func (r *run) show(tool string, res *Result) *shown {
	s := &shown{tool: tool, vision: r.model.Info().Vision, isError: res.IsError}
	if res.Whole != nil {
		s.whole(r.scope, res.Whole)
	}
	for _, b := range res.Blocks {
		s.block(b)
	}
	if len(s.parts) > 0 {
		label := fmt.Sprintf("From the tool %s:", tool)
		s.parts = slices.Insert(s.parts, 0, contentPart("text", label))
	}
	return s
}

// text is the content of the tool's message. A failure that is no object, which
// would say so itself, is marked: a chat model sees no other flag (B41).
func (s *shown) text() string {
	text := strings.Join(s.texts, "\n")
	if s.isError && rawjson.KindOf([]byte(text)) != rawjson.Object {
		text = "error: " + text
	}
	return text
}

func (s *shown) note(format string, args ...any) {
	s.texts = append(s.texts, fmt.Sprintf("["+format+"]", args...))
}

func (s *shown) block(b Block) {
	switch b := b.(type) {
	case Text:
		s.texts = append(s.texts, string(b))
	case Image:
		s.image(b.Data, base64.StdEncoding.EncodeToString(b.Data))
	case ImageURL:
		if s.sees(b.URL) {
			s.parts = append(s.parts, contentPart("image_url", map[string]string{"url": b.URL}))
		}
	case FileRef:
		if s.sees(b.Name) {
			s.parts = append(s.parts, contentPart("file", map[string]string{"file_id": b.ID}))
		}
	case ResourceLink:
		s.link(b)
	case Raw:
		s.foreign(json.RawMessage(b))
	}
}

func (s *shown) link(l ResourceLink) {
	s.texts = append(s.texts, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", l.Name, l.URI, l.MIMEType, l.Description)))
}

// sees notes that there is a picture, when the model sees none.
func (s *shown) sees(what string) bool {
	if !s.vision {
		s.note("a picture, %s, which this model cannot see", what)
	}
	return s.vision
}

func (s *shown) image(head []byte, encoded string) {
	media := ImageType(head)
	switch {
	case media == "":
		s.note("a picture of a kind that models do not take was left out")
	case len(encoded) > maxShownImage:
		s.note("a picture of %d MB was left out; make it smaller", len(encoded)>>20)
	case s.sees(media):
		s.parts = append(s.parts, contentPart("image_url", map[string]string{"url": "data:" + media + ";base64," + encoded}))
	}
}

// whole renders another MCP server's result, within the budget.
func (s *shown) whole(scope *Scope, whole json.RawMessage) {
	if fitted, err := scope.FitWhole(s.tool, whole); err == nil {
		whole = fitted
	}
	var res struct {
		Content    []json.RawMessage
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool
	}
	if err := json.Unmarshal(whole, &res); err != nil {
		s.texts = append(s.texts, string(whole))
		return
	}
	s.isError = res.IsError
	for _, b := range res.Content {
		s.foreign(b)
	}
	if len(s.texts) == 0 && res.Structured != nil {
		s.texts = append(s.texts, string(res.Structured))
	}
}

// foreign renders one content block of another MCP server.
func (s *shown) foreign(raw json.RawMessage) {
	if text, path := foreignText(raw); path != nil {
		s.texts = append(s.texts, text)
		return
	}
	var b struct{ Type, Data, MIMEType, URI, Name, Description string }
	if err := json.Unmarshal(raw, &b); err != nil {
		s.texts = append(s.texts, string(raw))
		return
	}
	switch b.Type {
	case "image":
		head, _ := base64.StdEncoding.DecodeString(b.Data[:min(len(b.Data), 1024)])
		s.image(head, b.Data)
	case "resource_link":
		s.link(ResourceLink{URI: b.URI, Name: b.Name, Description: b.Description, MIMEType: b.MIMEType})
	default:
		s.note("content of the type %q (%s), which a chat model cannot take, was left out", Clip(b.Type, 40), Clip(b.MIMEType, 80))
	}
}

// contentPart is a content part of the chat completions API.
func contentPart(kind string, value any) json.RawMessage {
	encoded, err := rawjson.Marshal(map[string]any{"type": kind, kind: value})
	if err != nil {
		panic("core: " + err.Error()) // texts and maps of texts only
	}
	return encoded
}
