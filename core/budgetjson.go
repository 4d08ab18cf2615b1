package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"zenmcp/core/rawjson"
)

// shortenJSON cuts JSON so that it stays JSON: a list becomes an object with the
// first entries under "results"; of an object the longest list or text is cut.
// "truncated" and, for lists, a "note" that names the file are added. It gives up
// where that is not enough.
func (s *Scope) shortenJSON(tool string, output Output, raw []byte, limit int) (string, bool) {
	members := []rawjson.Member{{Name: "results", Value: raw}}
	if rawjson.KindOf(raw) == rawjson.Object {
		var err error
		if members, err = rawjson.Members(raw); err != nil {
			return "", false
		}
	}
	big := longest(members)
	if big < 0 {
		return "", false
	}
	value := members[big].Value
	others := utf8.RuneCount(raw) - utf8.RuneCount(value)
	if others > limit/2 {
		return "", false
	}
	if rawjson.KindOf(value) == rawjson.String {
		return s.shortenText(tool, output, members, big, limit)
	}
	return s.shortenList(tool, raw, members, big, limit)
}

// longest is the member with the longest list or text, or -1.
func longest(members []rawjson.Member) int {
	best := -1
	for i, m := range members {
		switch rawjson.KindOf(m.Value) {
		case rawjson.Array, rawjson.String:
			if best < 0 || len(m.Value) > len(members[best].Value) {
				best = i
			}
		}
	}
	return best
}

// setMember adds a member or gives it another value.
func setMember(members []rawjson.Member, name string, value json.RawMessage) []rawjson.Member {
	members = slices.Clone(members)
	if i := member(members, name); i >= 0 {
		members[i].Value = value
		return members
	}
	return append(members, rawjson.Member{Name: name, Value: value})
}

func quote(text string) json.RawMessage { return rawjson.AppendString(nil, text) }

// shortenText cuts the text of one member. The file holds that text as it is.
func (s *Scope) shortenText(tool string, output Output, members []rawjson.Member, big, limit int) (string, bool) {
	var text string
	if err := json.Unmarshal(members[big].Value, &text); err != nil {
		return "", false
	}
	members = setMember(members, "truncated", json.RawMessage("true"))
	members[big].Value = quote("")
	room := limit - utf8.RuneCount(rawjson.JoinMembers(members))
	all := ExtentOf(text)
	all.File, all.Lost = s.KeepOutput(tool+".txt", []byte(text))
	members[big].Value = quote(Excerpt(text, text, all, room, output, JSONCost))
	return string(rawjson.JoinMembers(members)), true
}

// shortenList keeps the first entries of one member. In the file every entry has
// a line of its own.
func (s *Scope) shortenList(tool string, raw []byte, members []rawjson.Member, big, limit int) (string, bool) {
	entries, err := rawjson.Elements(members[big].Value)
	if err != nil {
		return "", false
	}
	whole, firstLine := layOut(members, big)
	if len(raw) == len(members[big].Value) { // all that there is
		whole, firstLine = append(entryLines(raw), '\n'), 1
		members = setMember(members, "total", fmt.Append(nil, len(entries)))
	}
	file, lost := s.KeepOutput(tool+".json", whole)
	said := noteIn(members)
	note := func(shown int) json.RawMessage {
		text := fmt.Sprintf("%s%d of %d %s are shown; ", said, shown, len(entries), members[big].Name)
		if lost != nil {
			return quote(text + fmt.Sprintf("the rest was not kept (%v), so ask for less", lost))
		}
		next := firstLine + shown
		return quote(text + fmt.Sprintf("all are in %q, one a line: read on with readFile, range [%d,0,%d,-1]", file, next, next+max(shown, 10)-1))
	}
	members = setMember(members, "truncated", json.RawMessage("true"))
	members = setMember(members, "note", note(len(entries)))
	members[big].Value = json.RawMessage("[]")
	room := limit - utf8.RuneCount(rawjson.JoinMembers(members))
	shown := 0
	for _, e := range entries {
		if room -= utf8.RuneCount(e) + 1; room < 0 {
			break
		}
		shown++
	}
	members[big].Value = rawjson.JoinElements(entries[:shown])
	members = setMember(members, "note", note(shown))
	return string(rawjson.JoinMembers(members)), true
}

// noteIn is what an object says under "note" already, to be continued.
func noteIn(members []rawjson.Member) string {
	for _, m := range members {
		var text string
		if m.Name == "note" && json.Unmarshal(m.Value, &text) == nil && text != "" {
			return text + "; "
		}
	}
	return ""
}

// layOut writes an object with every entry of one list on a line of its own, and
// says on which line, counted from 0, the first one is.
func layOut(members []rawjson.Member, big int) (text []byte, firstLine int) {
	text = []byte("{\n")
	for i, m := range members {
		text = append(append(text, quote(m.Name)...), ':')
		if i == big {
			text = append(text, entryLines(m.Value)...)
		} else {
			text = append(text, m.Value...)
		}
		if i < len(members)-1 {
			text = append(text, ',')
		}
		text = append(text, '\n')
	}
	return append(text, "}\n"...), big + 2
}

// entryLines writes a list with every entry on a line of its own.
func entryLines(list json.RawMessage) []byte {
	entries, err := rawjson.Elements(list)
	if err != nil {
		return list
	}
	text := []byte("[\n")
	for i, e := range entries {
		text = append(text, e...)
		if i < len(entries)-1 {
			text = append(text, ',')
		}
		text = append(text, '\n')
	}
	return append(text, ']')
}
