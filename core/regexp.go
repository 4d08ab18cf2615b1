package core

import (
	"regexp"
	"sync"
)

// Regexp is [regexp.MustCompile] at the first use. Compiling all the expressions
// of a program that answers in a few milliseconds would be a noticeable part of
// its start, and most of them are for files and mistakes that are not there.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
