package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A FieldError is an error in one field of a JSON document: a configuration
// file or a call's arguments. Path leads to the field from where the document
// begins, so that the reader of a file can say in which line it is.
type FieldError struct {
	Path []string
	Err  error
}

func (e *FieldError) Error() string { return strings.Join(e.Path, ".") + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

// InField says that err is about the named field, or lies deeper within it.
func InField(name string, err error) error {
	// Not errors.As: what wraps a FieldError, or is joined to it, has its own text.
	if inner, ok := err.(*FieldError); ok {
		return &FieldError{Path: append([]string{name}, inner.Path...), Err: inner.Err}
	}
	return &FieldError{Path: []string{name}, Err: err}
}

// An Omission is a capability that is not offered, and why. Sources return
// omissions as errors, joined, beside what they do offer; `zen-mcp tools` and
// `zen-mcp doctor` show them.
type Omission struct {
	Capability
	Origin string // the file or folder it comes from, if there is one
	Reason string
	// Offered says that it is offered all the same: Reason is a warning.
	Offered bool
	// Cause is the error that Reason tells, for who has to tell reasons apart; nil
	// when there is no more than the text.
	Cause error
}

// Omit is the omission of a capability because of an error. origin may be "".
func Omit(c Capability, origin string, err error) Omission {
	return Omission{Capability: c, Origin: origin, Reason: err.Error(), Cause: err}
}

// ErrDisabled is the cause of an omission that somebody wrote down: a skill with
// `enabled: false`, an MCP server with `disabled: true`.
var ErrDisabled = errors.New("switched off")

// A ShadowedError is the cause of an omission because another definition has the
// name.
type ShadowedError struct {
	By string // the file or folder of the other; "" when it is in none
}

func (e *ShadowedError) Error() string { return fmt.Sprintf("the one in %q comes first", e.By) }

// Unwrap gives the cause.
func (o Omission) Unwrap() error { return o.Cause }

func (o Omission) Error() string {
	what := o.Capability.String()
	switch {
	case what == "":
		what = o.Origin
	case o.Origin != "":
		what += " (" + o.Origin + ")"
	}
	if what == "" {
		return o.Reason
	}
	return what + ": " + o.Reason
}

// Omissions takes joined errors apart. An error that is no Omission becomes one
// that names no capability.
func Omissions(err error) []Omission {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []Omission
		for _, e := range joined.Unwrap() {
			all = append(all, Omissions(e)...)
		}
		return all
	}
	var o Omission
	if errors.As(err, &o) {
		return []Omission{o}
	}
	return []Omission{{Reason: err.Error()}}
}

// Nearest returns the candidate that is most like name, for messages that help
// a caller to the right one; "" when none is alike. A third of the letters may
// differ, in short names two or half of them; case does not count.
func Nearest(name string, candidates []string) string {
	if len(name) > 500 {
		return "" // nobody's name, and the work grows with it
	}
	name = strings.ToLower(name)
	n := utf8.RuneCountInString(name)
	best, least := "", max(n/3, min(2, n/2))+1
	for _, c := range candidates {
		if d := editDistance(name, strings.ToLower(c), least); d < least {
			best, least = c, d
		}
	}
	return best
}

// DidYouMean is the end of a message about an unknown name: `; did you mean
// "x"?` or nothing.
func DidYouMean(name string, candidates []string) string {
	if n := Nearest(name, candidates); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}

// editDistance is the Levenshtein distance, given up once it reaches limit.
func editDistance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) >= limit || len(y)-len(x) >= limit {
		return limit
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := diagonal
			if x[i] != y[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
		if slices.Min(row) >= limit {
			return limit
		}
	}
	return row[len(y)]
}
