package clients

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"zenmcp/configs"
)

// A File is a client's file as it is now.
type File struct {
	Path    string
	Exists  bool
	Present bool    // the client was used on this system, by the folders that it has
	Entries []Entry // the servers, in the order of the file
}

// An Entry is one server in a client's file.
type Entry struct {
	Name    string
	Command string // "" for a server that is not started but reached
	Args    []string
	Env     map[string]string // added to what the client gives
	Line    int               // from 1
}

// Ours reports whether the entry starts zen-mcp, by the name of the program.
func (e Entry) Ours() bool {
	program := e.Command[strings.LastIndexAny(e.Command, `/\`)+1:]
	return strings.HasPrefix(strings.ToLower(program), "zen-mcp")
}

// Read reads the file that the client would read. A file that is not there has no
// entries; one that cannot be understood is an error that says where and why.
func (c Client) Read(s System) (File, error) {
	f, err := c.open(s)
	return f.File, err
}

// opened is a file with its text.
type opened struct {
	File
	version
}

var bom = []byte("\ufeff")

func (c Client) open(s System) (opened, error) {
	at, present := c.locate(s)
	f := opened{File: File{Path: at.file, Present: present}}
	text, err := readFile(at.file)
	if err != nil {
		return f, &configs.Problem{File: at.file, Err: err}
	}
	f.text, f.Exists = text, text != nil
	if f.doc, err = c.format.parse(at.file, f.plain()); err != nil {
		return f, err
	}
	f.Entries = c.entries(f)
	return f, nil
}

// readFile gives nil for a file that does not exist.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, errors.New("is a link to a file that does not exist")
		}
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	if err != nil {
		return nil, bare(err)
	}
	text, err := os.ReadFile(path)
	if text == nil {
		text = []byte{}
	}
	return text, bare(err)
}

// bare takes the path from an error, since a Problem names it.
func bare(err error) error {
	var withPath *fs.PathError
	if errors.As(err, &withPath) {
		return withPath.Err
	}
	return err
}

func (c Client) entries(f opened) []Entry {
	section, _ := lookup(f.doc.value(), c.section)
	servers, _ := section.(map[string]any)
	var all []Entry
	for name, value := range servers {
		e := c.entryOf(name, value)
		if at, ok := f.doc.span(c.section, name); ok {
			e.Line = 1 + bytes.Count(f.plain()[:at.start], []byte("\n"))
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Name, b.Name))
	})
	return all
}

// entryOf reads a decoded entry as far as it is one.
func (c Client) entryOf(name string, value any) Entry {
	e := Entry{Name: name}
	command, _ := lookup(value, c.command)
	e.Command, _ = command.(string)
	args, _ := lookup(value, "args")
	list, _ := args.([]any)
	for _, arg := range list {
		if text, ok := arg.(string); ok {
			e.Args = append(e.Args, text)
		}
	}
	env, _ := lookup(value, cmp.Or(c.env, "env"))
	values, _ := env.(map[string]any)
	for name, value := range values {
		if text, ok := value.(string); ok {
			if e.Env == nil {
				e.Env = map[string]string{}
			}
			e.Env[name] = text
		}
	}
	return e
}

// find is the entry of a name.
func (f File) find(name string) (Entry, bool) {
	i := slices.IndexFunc(f.Entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return f.Entries[i], true
}
