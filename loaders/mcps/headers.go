package mcps

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// From 2026-07-28 on a request over HTTP repeats in headers what intermediaries
// want to know of it: method, name, and the arguments that the tool's schema
// marks with x-mcp-header.

// A paramHeader is an argument that is repeated in a header.
type paramHeader struct {
	path   []string // to the property, from the arguments down
	header string   // without the prefix
}

const paramPrefix = "Mcp-Param-"

// paramHeaders finds the marked properties of a schema. A tool with a mark that
// is not valid must not be called.
func paramHeaders(schema json.RawMessage) ([]paramHeader, error) {
	if len(schema) == 0 || !strings.Contains(string(schema), "x-mcp-header") {
		return nil, nil
	}
	var found []paramHeader
	err := findParams(schema, nil, &found)
	return found, err
}

func findParams(schema json.RawMessage, path []string, found *[]paramHeader) error {
	members, err := rawjson.Members(schema)
	if err != nil {
		return nil // true and false are schemas too
	}
	for _, m := range members {
		if m.Name != "properties" {
			continue
		}
		properties, err := rawjson.Members(m.Value)
		if err != nil {
			return errors.New("its schema has properties that are no object")
		}
		for _, p := range properties {
			below := append(path[:len(path):len(path)], p.Name)
			if err := checkParam(p.Value, below, found); err != nil {
				return fmt.Errorf("argument %q: %w", strings.Join(below, "."), err)
			}
			if err := findParams(p.Value, below, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkParam adds the property to found if it is marked.
func checkParam(schema json.RawMessage, path []string, found *[]paramHeader) error {
	members, err := rawjson.Members(schema)
	if err != nil {
		return nil
	}
	var mark json.RawMessage
	kind := ""
	for _, m := range members {
		switch m.Name {
		case "x-mcp-header":
			mark = m.Value
		case "type":
			_ = json.Unmarshal(m.Value, &kind) // "" if it is a list, which is refused below
		}
	}
	if mark == nil {
		return nil
	}
	var header string
	if json.Unmarshal(mark, &header) != nil || header == "" || strings.ContainsFunc(header, notInToken) {
		return fmt.Errorf("x-mcp-header %s is no name of a header", core.Clip(string(mark), 80))
	}
	if kind != "string" && kind != "integer" && kind != "boolean" {
		return errors.New("x-mcp-header is for text, whole numbers and truth values only")
	}
	for _, f := range *found {
		if strings.EqualFold(f.header, header) {
			return fmt.Errorf("x-mcp-header %q is given twice", header)
		}
	}
	*found = append(*found, paramHeader{path, header})
	return nil
}

// notInToken reports characters that names of headers do not have (RFC 9110).
func notInToken(c rune) bool {
	letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}

// paramHeaders are the headers of a call of the tool with these arguments.
func (t *tool) paramHeaders(arguments json.RawMessage) http.Header {
	if len(t.params) == 0 {
		return nil
	}
	h := http.Header{}
	for _, p := range t.params {
		if value, ok := plainText(lookup(arguments, p.path)); ok {
			h.Set(paramPrefix+p.header, headerValue(value))
		}
	}
	return h
}

// lookup is the value that a path leads to, or nil.
func lookup(raw json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		members, err := rawjson.Members(raw)
		if err != nil {
			return nil
		}
		raw = nil
		for _, m := range members {
			if m.Name == name {
				raw = m.Value
			}
		}
	}
	return raw
}

// plainText is a text, a truth value or a whole number that every reader of JSON
// holds exactly, as text.
func plainText(raw json.RawMessage) (string, bool) {
	switch rawjson.KindOf(raw) {
	case rawjson.String:
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	case rawjson.Boolean:
		return string(raw), true
	case rawjson.Number:
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || f != float64(int64(f)) || f > 1<<53-1 || f < -(1<<53-1) {
			return "", false
		}
		return strconv.FormatInt(int64(f), 10), true
	}
	return "", false
}

// headerValue encodes what a header cannot hold as it is: anything but visible
// ASCII and inner blanks, and what looks encoded already.
func headerValue(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, "=?base64?")
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] == '\t' || s[i] >= ' ' && s[i] < 0x7f
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}
