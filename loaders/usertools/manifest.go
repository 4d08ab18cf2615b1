package usertools

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/proc"
)

// DefaultTimeout is how long a call of a user tool may take that names no timeout.
const DefaultTimeout = 2 * time.Minute

// A manifest is what a file says about a tool:
//
//	function:
//	  name: count_words
//	  description: Count the words of a file.
//	  parameters: {type: object, properties: {path: {type: string}}, required: [path]}
//	command: [python3, "${TOOL_DIR}/count.py"]
//	timeout: 10000            # milliseconds; default: two minutes
//	env: {LANG: C, KEY: "${MY_KEY:-none}"}
//	hints: {readOnly: true}   # and destructive, idempotent, openWorld
//
// ${NAME} in command and env is a variable of the server's environment, as in
// mcp.json; ${TOOL_DIR} is the manifest's folder, and so is the base of a command
// that is written with a slash. The command finds TOOL_DIR in its environment too.
type manifest struct {
	Function *core.FunctionSpec `json:"function"`
	Command  []string           `json:"command"`
	Timeout  int64              `json:"timeout,omitempty"`
	Env      map[string]string  `json:"env,omitempty"`
	Hints    *hints             `json:"hints,omitempty"`
}

// hints are what calling a tool may do. Without any it may do everything.
type hints struct {
	ReadOnly    *bool `json:"readOnly,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
	OpenWorld   *bool `json:"openWorld,omitempty"`
}

func (h *hints) hints() core.Hints {
	if h == nil {
		h = &hints{}
	}
	or := func(b *bool, otherwise bool) bool {
		if b != nil {
			return *b
		}
		return otherwise
	}
	readOnly := or(h.ReadOnly, false)
	return core.Hints{
		ReadOnly: readOnly, Destructive: !readOnly && or(h.Destructive, true),
		Idempotent: or(h.Idempotent, false), OpenWorld: or(h.OpenWorld, true),
	}
}

// errNoTool says that a file is about something else.
var errNoTool = errors.New("is no tool's manifest")

// manifest reads a file as a tool.
func (s *Source) manifest(file, stem string, place configs.Place) (t tool, warnings []*configs.Problem, err error) {
	d, err := readDocument(file)
	if err != nil {
		return tool{}, nil, err
	}
	_, function := d.At("function")
	_, command := d.At("command")
	if !function && !command {
		return tool{}, nil, errNoTool
	}
	var m manifest
	warnings, err = d.Decode(&m)
	c := program{dir: filepath.Dir(file), timeout: timeout(m.Timeout)}
	if err == nil {
		err = d.located(m.check())
	}
	if err == nil {
		err = d.located(c.expand(m))
	}
	if err == nil {
		c.name = m.Function.Name
		t, err = s.define(file, stem, place, *m.Function, m.Hints, c.run)
		err = d.located(err)
	}
	if err == nil && s.Inspect {
		if _, missing := proc.FindProgram(c.args[0], c.env...); missing != nil {
			warnings = append(warnings, d.Problem(core.InField("command", core.InField("0", missing))))
		}
	}
	for _, w := range warnings {
		d.relocate(w)
	}
	return t, warnings, d.relocated(err)
}

func (m manifest) check() error {
	switch {
	case m.Function == nil:
		return core.InField("function", errors.New("is missing: {name, description, parameters}"))
	case m.Function.Name == "":
		return core.InField("function", core.InField("name", errors.New("is missing or empty")))
	case len(m.Command) == 0 || m.Command[0] == "":
		return core.InField("command", errors.New("is missing: a list of the program and its arguments"))
	case m.Timeout < 0:
		return core.InField("timeout", errors.New("must be a number of milliseconds"))
	}
	return nil
}

func timeout(ms int64) time.Duration {
	if ms <= 0 || ms > int64(24*time.Hour/time.Millisecond) {
		return DefaultTimeout
	}
	return time.Duration(ms) * time.Millisecond
}

// A document is a manifest, JSON or YAML as the JSON that it stands for.
type document struct {
	*configs.Document
	yaml ast.Node // nil in JSON
}

func readDocument(file string) (document, error) {
	if filepath.Ext(file) == ".json" {
		doc, err := configs.ReadFile(file)
		return document{Document: doc}, err
	}
	text, err := configs.ReadText(file)
	if err != nil {
		return document{}, err
	}
	var value any
	if err := yaml.UnmarshalWithOptions(text, &value, yaml.UseOrderedMap()); err != nil {
		p := &configs.Problem{File: file, Err: configs.Unreadable.Of(errors.New("not valid YAML"))}
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
			p.Line, p.Column = at.GetToken().Position.Line, at.GetToken().Position.Column
			p.Err = configs.Unreadable.Of(fmt.Errorf("not valid YAML: %s", at.GetMessage()))
		}
		return document{}, p
	}
	asJSON, err := jsonOf(value)
	if err != nil {
		return document{}, &configs.Problem{File: file, Err: err}
	}
	doc, err := configs.Parse(file, asJSON)
	if err != nil {
		return document{}, err
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil || len(tree.Docs) == 0 {
		return document{Document: doc}, err
	}
	return document{doc, tree.Docs[0].Body}, nil
}

// located says where in the manifest err is.
func (d document) located(err error) error {
	if err == nil {
		return nil
	}
	return d.Problem(err)
}

// relocated is an error about the JSON as one about the file that was read.
func (d document) relocated(err error) error {
	if err == nil {
		return nil
	}
	var all []error
	for _, p := range configs.Problems(err) {
		d.relocate(p)
		all = append(all, p)
	}
	return errors.Join(all...)
}

// relocate gives a problem its place in the YAML.
func (d document) relocate(p *configs.Problem) {
	if d.yaml == nil {
		return
	}
	line, column := position(d.yaml, strings.Split(p.Field, "."))
	*p = configs.Problem{File: p.File, Line: line, Column: column, Field: p.Field, Err: p.Err}
}

// position finds what a path leads to, or the last thing on the way.
func position(n ast.Node, path []string) (line, column int) {
	at := start(n)
	for _, name := range path {
		var next ast.Node
		var values []*ast.MappingValueNode
		switch n := n.(type) {
		case *ast.MappingNode:
			values = n.Values
		case *ast.MappingValueNode:
			values = []*ast.MappingValueNode{n}
		case *ast.SequenceNode:
			if i, err := strconv.Atoi(name); err == nil && i < len(n.Values) {
				next, at = n.Values[i], start(n.Values[i])
			}
		}
		for _, v := range values {
			if v.Key.GetToken().Value == name {
				next, at = v.Value, start(v)
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return at.Line, at.Column
}

// start is where a value begins: the token of a map is its first colon.
func start(n ast.Node) *token.Position {
	switch m := n.(type) {
	case *ast.MappingNode:
		if len(m.Values) > 0 {
			return start(m.Values[0])
		}
	case *ast.MappingValueNode:
		return m.Key.GetToken().Position
	}
	return n.GetToken().Position
}

// jsonOf keeps the order of maps.
func jsonOf(value any) ([]byte, error) {
	switch v := value.(type) {
	case yaml.MapSlice:
		var b strings.Builder
		b.WriteByte('{')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			key, err := json.Marshal(fmt.Sprint(item.Key))
			if err != nil {
				return nil, err
			}
			inner, err := jsonOf(item.Value)
			if err != nil {
				return nil, err
			}
			b.Write(key)
			b.WriteByte(':')
			b.Write(inner)
		}
		b.WriteByte('}')
		return []byte(b.String()), nil
	case []any:
		list := make([]json.RawMessage, len(v))
		for i, item := range v {
			inner, err := jsonOf(item)
			if err != nil {
				return nil, err
			}
			list[i] = inner
		}
		return json.Marshal(list)
	}
	return json.Marshal(value)
}

// expand fills in the command and its environment.
func (c *program) expand(m manifest) error {
	lookup := func(name string) (string, bool) {
		if name == toolDir {
			return c.dir, true
		}
		return os.LookupEnv(name)
	}
	for i, part := range m.Command {
		expanded, err := core.ExpandEnv(part, lookup)
		if err != nil {
			return core.InField("command", core.InField(fmt.Sprint(i), err))
		}
		c.args = append(c.args, expanded)
	}
	if program := c.args[0]; filepath.Base(program) != program && !filepath.IsAbs(program) {
		c.args[0] = filepath.Join(c.dir, program)
	}
	c.env = append(c.env, toolDir+"="+c.dir)
	for name, value := range m.Env {
		expanded, err := core.ExpandEnv(value, lookup)
		if err != nil {
			return core.InField("env", core.InField(name, err))
		}
		c.env = append(c.env, name+"="+expanded)
	}
	return nil
}

// toolDir is the variable with the folder of the manifest.
const toolDir = "TOOL_DIR"
