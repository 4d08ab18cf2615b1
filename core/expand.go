package core

import (
	"fmt"
	"strings"
)

// ExpandEnv replaces ${NAME} and ${NAME:-default} by environment variables, where
// one that is empty takes the default too, as in a shell. Everything else with a
// dollar sign stays as it is. The error is an [UnsetError] about the first variable
// that is not set and has no default; it stands for nothing in the text.
func ExpandEnv(s string, lookup func(string) (string, bool)) (expanded string, err error) {
	var out strings.Builder
	for {
		start := strings.Index(s, "${")
		if start < 0 {
			break
		}
		length := strings.IndexByte(s[start:], '}')
		if length < 0 {
			break
		}
		name, otherwise, hasDefault := strings.Cut(s[start+2:start+length], ":-")
		if !isVariable(name) {
			out.WriteString(s[:start+2])
			s = s[start+2:]
			continue
		}
		value, set := lookup(name)
		switch {
		case hasDefault && value == "":
			value = otherwise
		case !set && err == nil:
			err = &UnsetError{name}
		}
		out.WriteString(s[:start])
		out.WriteString(value)
		s = s[start+length+1:]
	}
	return out.String() + s, err
}

// An UnsetError is that of an environment variable which is used and not set.
type UnsetError struct{ Name string }

func (e *UnsetError) Error() string {
	return fmt.Sprintf("the environment variable %s is not set; set it, or write ${%s:-default}", e.Name, e.Name)
}

func isVariable(name string) bool {
	for i, c := range name {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
