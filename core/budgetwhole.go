package core

import (
	"encoding/json"
	"reflect"
	"slices"
	"unicode/utf8"

	"zenmcp/core/rawjson"
)

// FitWhole holds another MCP server's result to the budget, which for
// [Result.Whole] nobody else does. A result within it is returned as it is, byte
// for byte. In one that is over it the texts are cut as those of our own tools
// are, with files for the wholes, and structuredContent becomes a text like the
// others, or goes when it only repeats one. The rest stays as it was sent.
func (s *Scope) FitWhole(tool string, whole json.RawMessage) (json.RawMessage, error) {
	limit := s.Config().OutputBudget()
	if len(whole) <= limit {
		return whole, nil
	}
	members, err := rawjson.Members(whole)
	if err != nil {
		return nil, err
	}
	content := member(members, "content")
	var blocks []json.RawMessage
	if content >= 0 {
		if blocks, err = rawjson.Elements(members[content].Value); err != nil {
			return nil, err
		}
	}
	structured := member(members, "structuredContent")
	texts := make([]string, len(blocks))
	total := 0
	for i, b := range blocks {
		texts[i], _ = foreignText(b)
		total += utf8.RuneCountInString(texts[i])
	}
	if structured >= 0 {
		total += utf8.RuneCount(members[structured].Value)
	}
	if total <= limit {
		return whole, nil
	}
	if structured >= 0 {
		value := members[structured].Value
		if !slices.ContainsFunc(texts, func(t string) bool { return repeats(t, value) }) {
			texts = append(texts, string(value))
			blocks = append(blocks, textBlock(""))
		}
		members = slices.Delete(slices.Clone(members), structured, structured+1)
	}
	cut := func(_ int, text string, limit int) string { return s.shorten(tool, OutputLong, text, limit) }
	var kept []json.RawMessage
	for i, t := range shortenAll(texts, limit, cut) {
		switch old, path := foreignText(blocks[i]); {
		case t == old:
			kept = append(kept, blocks[i])
		case t != "":
			kept = append(kept, withValue(blocks[i], path, quote(t)))
		}
	}
	return rawjson.JoinMembers(setMember(members, "content", rawjson.JoinElements(kept))), nil
}

func member(members []rawjson.Member, name string) int {
	return slices.IndexFunc(members, func(m rawjson.Member) bool { return m.Name == name })
}

func textBlock(text string) json.RawMessage {
	return rawjson.JoinMembers([]rawjson.Member{{Name: "type", Value: quote("text")}, {Name: "text", Value: quote(text)}})
}

// foreignText is the text of a content block, its own or that of the resource in
// it. The path leads to it.
func foreignText(block json.RawMessage) (text string, path []string) {
	var b struct {
		Type     string
		Text     string
		Resource struct{ Text string }
	}
	switch err := json.Unmarshal(block, &b); {
	case err != nil:
		return "", nil
	case b.Type == "text":
		return b.Text, []string{"text"}
	case b.Type == "resource" && b.Resource.Text != "":
		return b.Resource.Text, []string{"resource", "text"}
	}
	return "", nil
}

// withValue is the object with another value where the path leads; its other
// members keep their bytes.
func withValue(object json.RawMessage, path []string, value json.RawMessage) json.RawMessage {
	if len(path) == 0 {
		return value
	}
	members, err := rawjson.Members(object)
	if err != nil {
		return object
	}
	if i := member(members, path[0]); i >= 0 {
		value = withValue(members[i].Value, path[1:], value)
	}
	return rawjson.JoinMembers(setMember(members, path[0], value))
}

// repeats reports whether text is value as JSON, however it is spaced.
func repeats(text string, value json.RawMessage) bool {
	var a, b any
	return json.Unmarshal([]byte(text), &a) == nil && json.Unmarshal(value, &b) == nil && reflect.DeepEqual(a, b)
}
