package usertools

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"zenmcp/configs"
	"zenmcp/core"
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
func (s *Source) manifest(file, stem string, place configs.Place) (tool, error) {
	doc, err := readDocument(file)
	if err != nil {
		return tool{}, withoutFile(err, file)
	}
	_, function := doc.At("function")
	_, command := doc.At("command")
	if !function && !command {
		return tool{}, errNoTool
	}
	var m manifest
	warnings, err := doc.Decode(&m)
	for _, w := range warnings {
		s.log.Warn(withoutFile(w, file).Error(), "file", file)
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return tool{}, withoutFile(err, file)
	}
	c := program{dir: filepath.Dir(file), timeout: timeout(m.Timeout)}
	if err := c.expand(m); err != nil {
		return tool{}, err
	}
	c.name = m.Function.Name
	return s.define(file, stem, place, *m.Function, m.Hints, c.run)
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

// readDocument reads JSON, or YAML as the JSON that it stands for.
func readDocument(file string) (*configs.Document, error) {
	if filepath.Ext(file) == ".json" {
		return configs.ReadFile(file)
	}
	text, err := configs.ReadText(file)
	if err != nil {
		return nil, err
	}
	var value any
	if err := yaml.UnmarshalWithOptions(text, &value, yaml.UseOrderedMap()); err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
			return nil, fmt.Errorf("line %d: not valid YAML: %s", at.GetToken().Position.Line, at.GetMessage())
		}
		return nil, errors.New("not valid YAML")
	}
	asJSON, err := jsonOf(value)
	if err != nil {
		return nil, err
	}
	return configs.Parse(file, asJSON)
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

// withoutFile words an error for somebody who is told the file beside it. Lines of
// YAML are not those of the JSON that was decoded.
func withoutFile(err error, file string) error {
	var words []string
	for _, p := range configs.Problems(err) {
		text := p.Err.Error()
		if p.Field != "" {
			text = p.Field + ": " + text
		}
		if p.Line > 0 && filepath.Ext(file) == ".json" {
			text = fmt.Sprintf("line %d: %s", p.Line, text)
		}
		words = append(words, text)
	}
	return errors.New(strings.Join(words, "; "))
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
