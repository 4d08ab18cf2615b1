package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// MaxFileSize is the largest file that is read, in bytes.
const MaxFileSize = 4 << 20

// maxDepth is how deep lists and objects may lie in each other.
const maxDepth = 100

// A Document is a JSON file, or a value within one, that knows where it stands.
// The text may have comments, trailing commas, a BOM, and either line end.
type Document struct {
	*source
	value *hujson.Value
	in    *Document // nil for the whole file
	name  string    // or index, in there
}

type source struct {
	file string
	text []byte // without BOM
	json []byte // the same without comments and trailing commas, at the same offsets
}

// ReadFile reads a file as a document. Errors are [Problem]s; that of a file
// which does not exist wraps fs.ErrNotExist.
func ReadFile(path string) (*Document, error) {
	data, err := ReadText(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// ReadText reads a file of another format: a regular one, no larger than
// [MaxFileSize]. Errors are as those of [ReadFile].
func ReadText(path string) ([]byte, error) {
	data, err := readRegular(path)
	if err != nil {
		return nil, &Problem{File: path, Err: Unreadable.Of(err)}
	}
	return data, nil
}

// readRegular reads a regular file. Anything else could block for ever, and a
// link to nowhere is not the same as no file: a policy may have been there.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		if _, e := os.Lstat(path); e == nil && errors.Is(err, os.ErrNotExist) {
			return nil, errors.New("is a link to a file that does not exist")
		}
		return nil, bare(err)
	}
	switch {
	case info.IsDir():
		return nil, errors.New("is a folder, not a file")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if len(data) > MaxFileSize {
		return nil, fmt.Errorf("is larger than %d MB", MaxFileSize>>20)
	}
	return data, bare(err)
}

// bare takes the path from an error of package os, since a Problem names it.
func bare(err error) error {
	var withPath *os.PathError
	if errors.As(err, &withPath) {
		return withPath.Err
	}
	return err
}

// Parse reads text as the document that file would be.
func Parse(file string, text []byte) (*Document, error) {
	src := &source{file: file, text: bytes.TrimPrefix(text, []byte("\ufeff"))}
	if at, err := src.unreadable(); err != nil {
		return nil, src.problem(at, nil, Unreadable.Of(err))
	}
	// A copy, since the parser's values alias the text and are changed below;
	// and it insists that the last comment ends with its line.
	value, err := hujson.Parse(append(slices.Clone(src.text), '\n'))
	if err != nil {
		p := src.syntax(err)
		p.Err = Unreadable.Of(p.Err)
		return nil, p
	}
	value.Standardize()
	src.json = value.Pack()
	return &Document{source: src, value: &value}, nil
}

// File is the name that the document was read under.
func (s *source) File() string { return s.file }

// JSON is the value as standard JSON. It must not be changed.
func (d *Document) JSON() json.RawMessage {
	return d.json[d.value.StartOffset:d.value.EndOffset:d.value.EndOffset]
}

// Kind is the type of the value.
func (d *Document) Kind() rawjson.Kind { return rawjson.KindOf(d.JSON()) }

// A Member is a name and value of an object.
type Member struct {
	Name   string
	Value  *Document
	offset int // of the name
}

// Members lists the members of an object in the order of the text. Of members
// with the same name only the last is listed. It lists nothing for other values.
func (d *Document) Members() []Member {
	all := d.allMembers()
	last := make(map[string]int, len(all))
	for i, m := range all {
		last[m.Name] = i
	}
	members := all[:0]
	for i, m := range all {
		if last[m.Name] == i {
			members = append(members, m)
		}
	}
	return members
}

// allMembers lists all members, also those whose name comes again.
func (d *Document) allMembers() []Member {
	obj, ok := d.value.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	all := make([]Member, len(obj.Members))
	for i := range obj.Members {
		m := &obj.Members[i]
		literal, _ := m.Name.Value.(hujson.Literal)
		name, _ := rawjson.Unquote(literal)
		all[i] = Member{name, d.below(name, &m.Value), m.Name.StartOffset}
	}
	return all
}

// Elements lists the elements of a list; nothing for other values.
func (d *Document) Elements() []*Document {
	list, ok := d.value.Value.(*hujson.Array)
	if !ok {
		return nil
	}
	out := make([]*Document, len(list.Elements))
	for i := range list.Elements {
		out[i] = d.below(strconv.Itoa(i), &list.Elements[i])
	}
	return out
}

// At is the value that a path of names and indexes leads to. Where it leads
// beyond what there is, At is the last value on the way and false.
func (d *Document) At(path ...string) (*Document, bool) {
	for _, name := range path {
		next := d.child(name)
		if next == nil {
			return d, false
		}
		d = next
	}
	return d, true
}

func (d *Document) child(name string) *Document {
	for _, m := range d.Members() {
		if m.Name == name {
			return m.Value
		}
	}
	elements := d.Elements()
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(elements) {
		return elements[i]
	}
	return nil
}

func (d *Document) below(name string, v *hujson.Value) *Document {
	return &Document{d.source, v, d, name}
}

// path leads from the top of the file to the value.
func (d *Document) path() []string {
	if d.in == nil {
		return nil
	}
	return append(d.in.path(), d.name)
}

// Problem says that err is about this value. If it is a [core.FieldError] it is
// about what lies at its path below.
func (d *Document) Problem(err error) *Problem {
	var field *core.FieldError
	path := d.path()
	if errors.As(err, &field) {
		d, _ = d.At(field.Path...)
		path, err = slices.Concat(path, field.Path), field.Err
	}
	return d.problem(d.value.StartOffset, path, err)
}

// Decode decodes the value into what v points to, as encoding/json does. The
// error joins a [Problem] for every value of a wrong type and every error that
// the types' own UnmarshalJSON finds. The warnings are about keys that are given
// twice, and about unknown keys that are almost a known one.
func (d *Document) Decode(v any) (warnings []*Problem, err error) {
	c := checker{}
	c.check(d, reflect.TypeOf(v).Elem())
	c.duplicates(d)
	if len(c.errs) == 0 {
		if err := json.Unmarshal(d.JSON(), v); err != nil {
			return c.warnings, d.Problem(err)
		}
	}
	return c.warnings, errors.Join(c.errs...)
}

// problem locates err at an offset in the text.
func (s *source) problem(offset int, path []string, err error) *Problem {
	before := s.text[:min(offset, len(s.text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Problem{
		File: s.file, Line: 1 + bytes.Count(before, []byte("\n")), Column: 1 + utf8.RuneCount(before[start:]),
		Field: strings.Join(path, "."), Err: err, text: s.text,
	}
}
