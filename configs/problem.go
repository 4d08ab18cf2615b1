package configs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"zenmcp/core"
)

// A Problem is something wrong in a file, and where: an error, or a warning when
// it comes from a function that returns warnings.
type Problem struct {
	File   string // as it was opened; "" when the problem is in no file
	Line   int    // from 1; 0 when the problem is the file itself
	Column int    // from 1, in code points; 0 when only the line is known
	Field  string // "models.0.endpointId"; "" for the whole document
	Err    error

	text []byte // of the file
}

// Error is "file:line:column: field: message", as editors and terminals link it.
func (p *Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.Place() + ": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	return b.String() + p.Err.Error()
}

// A Class tells problems apart for programs: errors.Is(problem, configs.Twice).
type Class string

// The classes. Problems of values that cannot be what they are have none.
const (
	Unreadable Class = "unreadable"  // a file that cannot be read, or is no JSON
	UnknownKey Class = "unknown key" // almost a known one
	Twice      Class = "twice"       // a key, or an id in a list
	Unresolved Class = "unresolved"  // the id of something that is not there
	Exposed    Class = "exposed"     // a secret in a file that others can read
	NoHome     Class = "no home"     // a home that was named and does not exist
	Guessed    Class = "guessed"     // the project, since the program was started in no place for one
	Limited    Class = "limited"     // an agent of a project that is not trusted
)

func (c Class) Error() string { return string(c) }

// Of says that err is of the class. Its text stays the same.
func (c Class) Of(err error) error { return &classified{err, c} }

type classified struct {
	error
	class Class
}

func (c *classified) Unwrap() error        { return c.error }
func (c *classified) Is(target error) bool { return target == c.class }

// Place is file:line:column, as far as it is known.
func (p *Problem) Place() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Omission says that something is not offered because of the problem. When the
// file is no JSON at all the reason shows the place.
func (p *Problem) Omission(c core.Capability) core.Omission {
	o := core.Omission{Capability: c, Origin: p.Place(), Reason: p.Err.Error(), Cause: p}
	if p.Field != "" {
		o.Reason = p.Field + ": " + o.Reason
	} else if excerpt := p.Excerpt(); excerpt != "" {
		o.Reason += "\n" + excerpt
	}
	return o
}

// Omitted says that something is not offered because of problems; with kept that
// what was there before them still is.
func Omitted(c core.Capability, found []*Problem, kept bool) []error {
	all := make([]error, len(found))
	for i, p := range found {
		o := p.Omission(c)
		if kept {
			o = Kept(o)
		}
		all[i] = o
	}
	return all
}

// Warned says of problems that something is offered all the same.
func Warned(c core.Capability, found []*Problem) []error {
	all := make([]error, len(found))
	for i, p := range found {
		o := p.Omission(c)
		o.Offered = true
		all[i] = o
	}
	return all
}

func (p *Problem) Unwrap() error { return p.Err }

// Problems takes joined errors apart. An error that is no Problem becomes one
// without a place.
func Problems(err error) []*Problem {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Problem
		for _, e := range joined.Unwrap() {
			all = append(all, Problems(e)...)
		}
		return all
	}
	var p *Problem
	if errors.As(err, &p) {
		return []*Problem{p}
	}
	return []*Problem{{Err: err}}
}

// excerptWidth is how many code points of a line an excerpt shows on each side.
const excerptWidth = 50

// secret finds text on a line that stands where keys and tokens do: behind such a
// name, as the argument behind such a flag, and in a text with either. Its names are
// wider than those of [core.IsSecret], since a mask too many costs an excerpt nothing.
var secret = core.Regexp(`(?i)(` + secretPlace + `)((?:[^"\\]|\\.)*)`)

const (
	secretWord  = `(?:key|token|secret|passw|auth|credential|pat)`
	secretPlace = `"[^"]*` + secretWord + `[^"]*"\s*:\s*"|"-[^"=]*` + secretWord + `[^"=]*"\s*,\s*"|` + secretWord + `\w*=|bearer `
)

// Excerpt shows the line with a caret below the place, in two lines of text, or
// nothing when there is no place or no text to show. What looks like a secret is masked, since an
// excerpt goes to logs.
func (p *Problem) Excerpt() string {
	if p.Column == 0 || p.text == nil {
		return ""
	}
	lines := bytes.Split(p.text, []byte("\n"))
	if p.Line > len(lines) {
		return ""
	}
	line := strings.TrimSuffix(string(lines[p.Line-1]), "\r")
	line = secret().ReplaceAllStringFunc(line, func(found string) string {
		parts := secret().FindStringSubmatch(found)
		return parts[1] + strings.Repeat("*", utf8.RuneCountInString(parts[2]))
	})
	runes := []rune(strings.ReplaceAll(line, "\t", " "))
	at := min(p.Column-1, len(runes))
	from, to := max(0, at-excerptWidth), min(len(runes), at+excerptWidth)
	gutter := fmt.Sprintf("%5d | ", p.Line)
	return gutter + string(runes[from:to]) + "\n" +
		strings.Repeat(" ", len(gutter)-2) + "| " + strings.Repeat(" ", at-from) + "^\n"
}
