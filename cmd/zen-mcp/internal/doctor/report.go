package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"zenmcp/configs"
	"zenmcp/core"
)

// A Report is the outcome of all checks. As JSON it is what `zen-mcp doctor --json`
// prints: its members stay, and others may be added.
type Report struct {
	Version  string  `json:"version"`  // of zen-mcp
	System   string  `json:"system"`   // for example linux/amd64
	Errors   int     `json:"errors"`   // how many findings of that level there are
	Warnings int     `json:"warnings"` // likewise
	Checks   []Check `json:"checks"`   // in the order in which they were made
}

// A Check is one subject: what there is, and what is wrong with it.
type Check struct {
	Name     string    `json:"name"`
	Level    Level     `json:"level"` // of the worst finding; ok without any
	Facts    []Fact    `json:"facts"`
	Findings []Finding `json:"findings"`
}

// A Fact is something that was looked at.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Finding is something to know or to do.
type Finding struct {
	Code    string `json:"code"` // see [Codes]
	Level   Level  `json:"level"`
	Message string `json:"message"`          // what is wrong with what
	File    string `json:"file,omitempty"`   // where
	Line    int    `json:"line,omitempty"`   // from 1
	Column  int    `json:"column,omitempty"` // from 1, in code points
	Advice  string `json:"advice"`
}

// Place is file:line:column, as far as it is known.
func (f Finding) Place() string {
	return (&configs.Problem{File: f.File, Line: f.Line, Column: f.Column}).Place()
}

// fact notes something that there is.
func (c *Check) fact(name, format string, args ...any) {
	c.Facts = append(c.Facts, Fact{name, fmt.Sprintf(format, args...)})
}

func (c *Check) add(f Finding) {
	if c.Level.rank() < f.Level.rank() {
		c.Level = f.Level
	}
	c.Findings = append(c.Findings, f)
}

// finding words an error. Where it is, the [configs.Problem] in it says, or the
// origin of an omission; the message need not.
func finding(id string, err error) Finding {
	about := code(id)
	f := Finding{Code: id, Level: about.Level, Message: err.Error(), Advice: about.Advice}
	var o core.Omission
	var p *configs.Problem
	isOmission, isProblem := errors.As(err, &o), errors.As(err, &p)
	switch {
	case isProblem:
		f.File, f.Line, f.Column = p.File, p.Line, p.Column
		f.Message = p.Err.Error()
		if p.Field != "" {
			f.Message = p.Field + ": " + f.Message
		}
	case isOmission:
		f.File, f.Message = o.Origin, o.Reason
	}
	if isOmission && o.Name != "" {
		f.Message = o.Capability.String() + ": " + f.Message
	}
	return f
}

// Healthy reports whether there is nothing to do: no errors and, if strict, no
// warnings.
func (r *Report) Healthy(strict bool) bool {
	return r.Errors == 0 && (r.Warnings == 0 || !strict)
}

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Text writes the report for people: for each check what there is, and below it
// what is wrong, where, and what to do.
func (r *Report) Text(w io.Writer) error {
	width := 0
	for _, c := range r.Checks {
		for _, f := range c.Facts {
			width = max(width, len([]rune(f.Name)))
		}
		for _, f := range c.Findings {
			width = max(width, len(f.Code))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "zen-mcp %s on %s\n", r.Version, r.System)
	line := func(level Level, name, text string) {
		pad := strings.Repeat(" ", max(0, width-len([]rune(name))))
		indent := strings.Repeat(" ", len("  warning  ")+width+2)
		fmt.Fprintf(&b, "  %-7s  %s%s  %s\n", level, name, pad, strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+indent))
	}
	for _, c := range r.Checks {
		if len(c.Facts)+len(c.Findings) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", c.Name)
		for _, f := range c.Facts {
			line(OK, f.Name, f.Value)
		}
		for _, f := range c.Findings {
			text := f.Message
			if place := f.Place(); place != "" {
				text += "\nat " + place
			}
			line(f.Level, f.Code, text+"\n"+f.Advice)
		}
	}
	verdict := "nothing is wrong"
	if r.Errors+r.Warnings > 0 {
		verdict = core.Plural(r.Errors, "error") + ", " + core.Plural(r.Warnings, "warning")
	}
	fmt.Fprintf(&b, "\n%s\n", verdict)
	_, err := io.WriteString(w, b.String())
	return err
}
