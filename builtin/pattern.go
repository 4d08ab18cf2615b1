package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"zenmcp/core"
)

// Limits of one pattern: its bytes, and what its braces may expand to.
const (
	maxPattern      = 10_000
	maxAlternatives = 1000
)

// A pattern is one alternative of what a caller gave: braces are expanded, "."
// and ".." are resolved as in a path.
type pattern struct {
	root string // where it begins: "" the base, "../" and so on above it, "/" or "C:/" absolute
	segs []segment
	dirs bool // ended with a slash: only folders
}

// A segment matches one name, or, as "**", any number of names.
type segment struct {
	source string // as it was written
	kind   segmentKind
	head   string // all of the name, or what is before the star
	tail   string // what is after the star
	glob   string // for doublestar
	dot    bool   // begins with a dot that is written out, or matches such names anyway
}

type segmentKind uint8

const (
	exact segmentKind = iota // a name
	affix                    // one star and nothing else special
	other                    // what doublestar matches
	deep                     // **
)

// matches reports whether a name fits. Names with a dot in front need one in the
// pattern.
func (s *segment) matches(name string) bool {
	if name[0] == '.' && !s.dot {
		return false
	}
	switch s.kind {
	case deep:
		return true
	case exact:
		return name == s.head
	case affix:
		return len(name) >= len(s.head)+len(s.tail) && strings.HasPrefix(name, s.head) && strings.HasSuffix(name, s.tail)
	}
	return doublestar.MatchUnvalidated(s.glob, name)
}

// Syntax that other globs have and this one refuses rather than misreads.
var (
	extglob    = core.Regexp(`(^|[^\\])[!@+?*]\([^/]*\)`)
	posixClass = core.Regexp(`\[[^]/]*\[:[a-z]+:\]`)
)

// parsePattern reads the syntax of globs: * ? [a-z] [!a-z] within a name, ** for
// any number of folders, {a,b} and {1..3} for alternatives, a backslash before
// a character that is meant as itself, a slash at the end for folders only.
func parsePattern(text string) ([]pattern, error) {
	switch {
	case text == "":
		return nil, errors.New(`the pattern is empty; "*" matches everything in a folder, "**/*" everything below it`)
	case len(text) > maxPattern:
		return nil, fmt.Errorf("the pattern has %d bytes, and %d is the limit; use several calls", len(text), maxPattern)
	case strings.ContainsRune(text, 0):
		return nil, fmt.Errorf("pattern %q: a name cannot hold a NUL character", text)
	case extglob().MatchString(text):
		return nil, fmt.Errorf("pattern %q: extended globs such as !(a) or +(a|b) are not supported; "+
			`write alternatives as {a,b}, leave things out with "exclude", and put a backslash before a parenthesis that is part of a name`, text)
	case posixClass().MatchString(text):
		return nil, fmt.Errorf("pattern %q: classes such as [:alpha:] are not supported; write the characters, as in [a-zA-Z]", text)
	}
	alternatives, err := expandBraces(text)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", core.Clip(text, 200), err)
	}
	patterns := make([]pattern, len(alternatives))
	for i, alternative := range alternatives {
		if patterns[i], err = splitPattern(alternative); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", core.Clip(text, 200), err)
		}
	}
	return patterns, nil
}

// splitPattern takes one alternative apart.
func splitPattern(text string) (pattern, error) {
	var p pattern
	if volume := filepath.VolumeName(text); volume != "" || strings.HasPrefix(text, "/") {
		p.root = filepath.ToSlash(volume) + "/"
		text = text[len(volume):]
	}
	absolute := p.root != ""
	for part := range strings.SplitSeq(text, "/") {
		s, err := parseSegment(part)
		if err != nil {
			return p, err
		}
		n := len(p.segs)
		p.dirs = false
		switch {
		case s.kind == exact && (s.head == "" || s.head == "."):
			p.dirs = true
		case s.kind == exact && s.head == "..":
			switch {
			case n > 0 && p.segs[n-1].kind == deep:
				return p, errors.New("the .. has nothing to leave behind **; take it out")
			case n > 0:
				p.segs = p.segs[:n-1]
			case !absolute:
				p.root += "../"
			}
			p.dirs = true
		case s.kind == deep && n > 0 && p.segs[n-1].kind == deep:
		default:
			p.segs = append(p.segs, s)
		}
	}
	return p, nil
}

// parseSegment reads one name of a pattern.
func parseSegment(text string) (segment, error) {
	s := segment{source: text, dot: strings.HasPrefix(strings.TrimPrefix(text, `\`), ".")}
	if text == "**" {
		s.kind = deep
		return s, nil
	}
	var literal, glob strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '*':
			if i > 0 && text[i-1] == '*' && strings.HasSuffix(glob.String(), "*") && !strings.HasSuffix(glob.String(), `\*`) {
				continue // more stars in a row are as one
			}
			if s.kind == exact {
				s.kind, s.head = affix, literal.String()
				literal.Reset()
			} else {
				s.kind = other
			}
			glob.WriteByte(c)
			continue
		case c == '?':
			s.kind = other
			glob.WriteByte(c)
			continue
		case c == '[':
			if end := classEnd(text[i:]); end > 0 {
				s.kind = other
				glob.WriteString(class(text[i : i+end]))
				i += end - 1
				continue
			}
		case c == '\\' && i+1 < len(text):
			i++
			c = text[i]
		}
		literal.WriteByte(c)
		if strings.IndexByte(`*?[]{}\`, c) >= 0 {
			glob.WriteByte('\\')
		}
		glob.WriteByte(c)
	}
	return s.with(literal.String(), glob.String())
}

// with completes a segment of the kind that was found.
func (s segment) with(literal, glob string) (segment, error) {
	switch s.kind {
	case exact:
		s.head = literal
	case affix:
		s.tail = literal
	case other:
		s.glob = glob
		if !doublestar.ValidatePattern(glob) {
			return s, fmt.Errorf("%q cannot be read; put a backslash before a [ that is part of a name", s.source)
		}
	}
	return s, nil
}

// classEnd is the length of the class that text begins with, 0 if its bracket is
// not closed and so means itself. A ] right at the start is one of the characters.
func classEnd(text string) int {
	i := 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		i++
	}
	for first := i; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == ']' && i > first:
			return i + 1
		}
	}
	return 0
}

// class writes a class so that doublestar reads it, which wants a backslash
// before a ] that is one of the characters.
func class(text string) string {
	start := 1
	if text[1] == '!' || text[1] == '^' {
		start = 2
	}
	if text[start] == ']' {
		return text[:start] + `\` + text[start:]
	}
	return text
}

// expandBraces writes every alternative out. Braces that hold none mean
// themselves.
func expandBraces(text string) ([]string, error) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			options, end, err := braceOptions(text[i:])
			if err != nil {
				return nil, err
			}
			if options == nil {
				continue
			}
			return combine(text[:i], options, text[i+end:])
		}
	}
	return []string{text}, nil
}

func combine(head string, options []string, tail string) ([]string, error) {
	tails, err := expandBraces(tail)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, option := range options {
		middles, err := expandBraces(option)
		if err != nil {
			return nil, err
		}
		if len(all)+len(middles)*len(tails) > maxAlternatives {
			return nil, errTooMany
		}
		for _, middle := range middles {
			for _, t := range tails {
				all = append(all, head+middle+t)
			}
		}
	}
	return all, nil
}

var errTooMany = fmt.Errorf("the braces expand to more than %d patterns; use a wildcard", maxAlternatives)

// braceOptions splits the braces that text begins with. It gives nil when they
// are not closed, or hold neither a comma nor a range.
func braceOptions(text string) (options []string, end int, err error) {
	depth, from := 0, 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			depth++
		case ',':
			if depth == 1 {
				options = append(options, text[from:i])
				from = i + 1
			}
		case '}':
			if depth--; depth > 0 {
				continue
			}
			if options == nil {
				options, err = braceRange(text[1:i])
				return options, i + 1, err
			}
			return append(options, text[from:i]), i + 1, nil
		}
	}
	return nil, 0, nil
}

// braceRange writes 1..3, 01..10, c..a and, with a step, 0..10..5 out.
func braceRange(text string) ([]string, error) {
	parts := strings.Split(text, "..")
	if len(parts) < 2 || len(parts) > 3 {
		return nil, nil
	}
	from, err1 := strconv.ParseInt(parts[0], 10, 32)
	to, err2 := strconv.ParseInt(parts[1], 10, 32)
	format := "%d"
	if err1 != nil || err2 != nil {
		if len(parts[0]) != 1 || len(parts[1]) != 1 || !isLetter(parts[0][0]) || !isLetter(parts[1][0]) {
			return nil, nil
		}
		from, to, format = int64(parts[0][0]), int64(parts[1][0]), "%c"
	} else if hasZero(parts[0]) || hasZero(parts[1]) {
		format = fmt.Sprintf("%%0%dd", max(len(parts[0]), len(parts[1])))
	}
	step := int64(1)
	if len(parts) == 3 {
		n, err := strconv.ParseInt(parts[2], 10, 32)
		if err != nil || n == 0 {
			return nil, nil
		}
		step = max(n, -n)
	}
	count := max(to-from, from-to)/step + 1
	if count > maxAlternatives {
		return nil, errTooMany
	}
	if to < from {
		step = -step
	}
	options := make([]string, count)
	for i := range options {
		options[i] = fmt.Sprintf(format, from+int64(i)*step)
	}
	return options, nil
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func hasZero(number string) bool {
	number = strings.TrimPrefix(number, "-")
	return len(number) > 1 && number[0] == '0'
}

// A node is a segment of patterns that begin alike, and what follows it.
type node struct {
	segment
	ends ends
	kids []*node
	next []*node // what is wanted in a folder that was reached here
}

// ends tells whether, and how, a path that was matched so far is a result.
type ends uint8

const (
	endsPlain ends = 1 << iota // its last name was asked for
	endsDeep                   // ** reached it
	endsSlash                  // as a folder: a slash follows
	endsZero                   // as a folder: ** follows, which may stand for nothing
)

// insert adds the segments of a pattern below the nodes.
func insert(nodes *[]*node, segs []segment, dirs bool) {
	s := segs[0]
	i := slices.IndexFunc(*nodes, func(n *node) bool { return n.source == s.source })
	if i < 0 {
		i = len(*nodes)
		*nodes = append(*nodes, &node{segment: s})
	}
	n := (*nodes)[i]
	if len(segs) > 1 {
		if len(segs) == 2 && segs[1].kind == deep {
			n.ends |= endsZero
		}
		insert(&n.kids, segs[1:], dirs)
		return
	}
	switch {
	case dirs:
		n.ends |= endsSlash
	case s.kind == deep:
		n.ends |= endsDeep
	default:
		n.ends |= endsPlain
	}
}

// link prepares nodes for matching and returns what is wanted in the folder that
// they begin in.
func link(nodes []*node) []*node {
	var wanted []*node
	for _, n := range nodes {
		below := link(n.kids)
		n.next = below
		wanted = append(wanted, n)
		if n.kind == deep {
			n.next = append([]*node{n}, below...)
			wanted = append(wanted, below...)
		}
		n.next = slices.Clip(n.next)
	}
	return wanted
}

// step matches one name. It gives how patterns end there and what is wanted
// behind the name: in a folder, or in what a link leads to that a pattern names
// without a wildcard.
func step(wanted []*node, name string, typ fs.FileMode) (e ends, next []*node) {
	for _, n := range wanted {
		if !n.matches(name) {
			continue
		}
		e |= n.ends
		switch {
		case len(n.next) == 0 || typ != fs.ModeDir && (typ != fs.ModeSymlink || n.kind != exact):
		case next == nil:
			next = n.next
		default:
			for _, more := range n.next {
				if !slices.Contains(next, more) {
					next = append(next, more)
				}
			}
		}
	}
	return e, next
}

// listed reports whether a path with these ends is a result. A folder whose
// content is excluded is one only when its own name was asked for.
func (e ends) listed(folder, emptied bool) bool {
	switch {
	case e&endsPlain != 0:
		return true
	case folder:
		return e != 0 && !emptied
	}
	return e&endsDeep != 0
}

// excluded reports whether an exclude with these ends leaves the path out. One
// such as "x/**" leaves out what is in x.
func (e ends) excluded(folder bool) bool {
	return e&(endsPlain|endsDeep) != 0 || folder && e&endsSlash != 0
}

// emptied reports whether excludes leave out all that is in a folder.
func emptied(excludes []*node) bool {
	return slices.ContainsFunc(excludes, func(n *node) bool { return n.kind == deep && n.ends&endsDeep != 0 })
}
