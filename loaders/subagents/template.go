package subagents

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// placeholder is {{name}}, with at most one white space on each side (contract
// §6).
var placeholder = core.Regexp(`\{\{\s?(\w+)\s?\}\}`)

// fill puts arguments into messages, which stay as they are. A text takes the
// place of its name as it is and any other value as JSON; a declared argument
// that is not given leaves nothing, and a name that is not declared stays
// (decision 27).
func fill(messages []core.Message, input *jsonschema.Schema, arguments json.RawMessage) ([]core.Message, error) {
	members, err := rawjson.Members(arguments)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for name := range input.Properties {
		values[name] = ""
	}
	for _, m := range members {
		text := string(m.Value)
		if rawjson.KindOf(m.Value) == rawjson.String {
			if err := json.Unmarshal(m.Value, &text); err != nil {
				return nil, err
			}
		}
		values[m.Name] = text
	}
	out := make([]core.Message, len(messages))
	for i, m := range messages {
		out[i] = m
		out[i].Content = fillContent(m.Content, values)
	}
	return out, nil
}

// fillContent fills a message's content, which is a text or a list of parts; a
// message without one is empty.
func fillContent(content json.RawMessage, values map[string]string) json.RawMessage {
	switch rawjson.KindOf(content) {
	case rawjson.String:
		return fillText(content, values)
	case rawjson.Array:
		parts, err := rawjson.Elements(content)
		if err != nil {
			return content
		}
		for i, p := range parts {
			parts[i] = fillPart(p, values)
		}
		return rawjson.JoinElements(parts)
	case rawjson.Null, rawjson.Invalid:
		return json.RawMessage(`""`)
	}
	return content
}

// fillPart fills the text of a part; the other parts keep their bytes.
func fillPart(part json.RawMessage, values map[string]string) json.RawMessage {
	members, err := rawjson.Members(part)
	if err != nil {
		return part
	}
	for i, m := range members {
		if m.Name == "text" && rawjson.KindOf(m.Value) == rawjson.String {
			members[i].Value = fillText(m.Value, values)
		}
	}
	return rawjson.JoinMembers(members)
}

func fillText(quoted json.RawMessage, values map[string]string) json.RawMessage {
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return quoted
	}
	filled := placeholder().ReplaceAllStringFunc(text, func(found string) string {
		if value, ok := values[placeholder().FindStringSubmatch(found)[1]]; ok {
			return value
		}
		return found
	})
	return rawjson.AppendString(nil, filled)
}
