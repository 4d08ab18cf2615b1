package skills

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"zenmcp/core"
)

// The limits of the Agent Skills specification, in code points.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
)

var validName = core.Regexp(`^[a-z0-9]+(?:-[a-z0-9]+)*$`)

// A manifest is what a SKILL.md says about its skill.
type manifest struct {
	description string
	digest      digest // of the file
	subAgent    bool   // sub-agent: true, which is an extension of ours
	disabled    bool   // enabled: false

	// warnings are against the specification, and do not keep the skill from
	// being used.
	warnings []error
	// frontmatter is for hosts that compare it with what they read themselves.
	// When they would refuse it, it is nil and unlisted says why.
	frontmatter json.RawMessage
	unlisted    error
}

// parseManifest reads a SKILL.md. id is the name of its folder. The error says
// why it is no skill: nothing can be read, or name or description is missing
// (decision 24).
func parseManifest(data []byte, id string) (*manifest, error) {
	text, err := split(data)
	if err != nil {
		return nil, err
	}
	m := &manifest{digest: digestOf(data)}
	root, err := parseYAML(text)
	if err != nil {
		tolerant, notes, e := parseTolerant(text)
		if e != nil {
			return nil, err // which is about the YAML that was meant
		}
		root = tolerant
		for _, n := range notes {
			m.warn(text, n)
		}
		m.unlisted = errors.New("its frontmatter is not valid YAML")
	}
	name, description := root.get("name"), root.get("description")
	switch {
	case name.trimmed() == "":
		return nil, inEntry(text, "name", core.InField("name", errors.New("is missing")))
	case description.trimmed() == "":
		return nil, inEntry(text, "description", core.InField("description", errors.New("is missing; say what the skill does and when to use it")))
	}
	m.description = description.trimmed()
	m.subAgent = strings.EqualFold(root.get("sub-agent").trimmed(), "true")
	m.disabled = strings.EqualFold(root.get("enabled").trimmed(), "false")
	for _, err := range m.validate(root, name.trimmed(), id) {
		m.warn(text, err)
	}
	m.list(root, data)
	return m, nil
}

// trimmed is the text of a scalar; "" when there is none.
func (n *node) trimmed() string {
	if n == nil {
		return ""
	}
	return strings.TrimSpace(n.text)
}

// warn notes a warning about an entry of the frontmatter.
func (m *manifest) warn(text string, err error) {
	var field *core.FieldError
	if errors.As(err, &field) {
		err = inEntry(text, field.Path[0], err)
	}
	m.warnings = append(m.warnings, err)
}

// validate holds the fields against the specification.
func (m *manifest) validate(root node, name, id string) (problems []error) {
	bad := func(name, format string, args ...any) {
		problems = append(problems, core.InField(name, fmt.Errorf(format, args...)))
	}
	switch n := utf8.RuneCountInString(name); {
	case n > maxName:
		bad("name", "has %d characters; at most %d are allowed", n, maxName)
	case !validName().MatchString(name):
		bad("name", "%q should be lower-case letters, digits and single hyphens", name)
	case name != id:
		bad("name", "%q differs from the name of the folder, %q, under which it is offered", core.Clip(name, 80), id)
	}
	if n := utf8.RuneCountInString(m.description); n > maxDescription {
		bad("description", "has %d characters; at most %d are allowed", n, maxDescription)
	}
	if c := root.get("compatibility"); c != nil {
		if n := utf8.RuneCountInString(c.trimmed()); n > maxCompatibility {
			bad("compatibility", "has %d characters; at most %d are allowed", n, maxCompatibility)
		} else if n == 0 {
			bad("compatibility", "must be text")
		}
	}
	if d := root.get("metadata"); d != nil && !d.isMap {
		bad("metadata", "must be a map of texts")
	}
	return problems
}

// list decides whether hosts of the skills extension can be told of the skill.
// They refuse entries against the specification, and some then refuse the
// whole list.
func (m *manifest) list(root node, data []byte) {
	if m.unlisted == nil && len(m.warnings) > 0 {
		m.unlisted = m.warnings[0]
	}
	if m.unlisted == nil && !utf8.Valid(data) {
		m.unlisted = errors.New("SKILL.md is not valid UTF-8")
	}
	if m.unlisted == nil {
		m.unlisted = textual(root)
	}
	if m.unlisted == nil {
		m.frontmatter, m.unlisted = root.json()
	}
}

// textual reports the first value that must be text and is none in YAML, such as
// a version 1.0.
func textual(root node) error {
	check := func(path string, n *node) error {
		if n == nil || n.isText() {
			return nil
		}
		return core.InField(path, errors.New("is not text in YAML; put it in quotes"))
	}
	for _, name := range []string{"name", "description", "compatibility"} {
		if err := check(name, root.get(name)); err != nil {
			return err
		}
	}
	for i := range root.keys {
		if root.keys[i].name != "metadata" {
			continue
		}
		metadata := &root.keys[i].value
		if !metadata.isMap { // null, which is no map of texts
			return core.InField("metadata", errors.New("is empty; remove it"))
		}
		for j := range metadata.keys {
			if err := check("metadata."+metadata.keys[j].name, &metadata.keys[j].value); err != nil {
				return err
			}
		}
	}
	return nil
}

// isText reports whether every reader of YAML takes the value for text.
func (n *node) isText() bool {
	if n.isList || n.isMap {
		return false
	}
	if n.quoted {
		return true
	}
	v, err := scalar(n.text)
	_, isString := v.(string)
	return err == nil && isString
}
