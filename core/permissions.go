package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"zenmcp/core/rawjson"
)

// A Kind is one of the four dimensions of the permission model.
type Kind string

// The dimensions. Their values are the keys of a permissions object.
const (
	KindTool     Kind = "tools"
	KindSkill    Kind = "skills"
	KindMCP      Kind = "mcps"
	KindSubagent Kind = "subagents"
)

// Kinds lists the dimensions in the order in which people write them.
func Kinds() []Kind { return []Kind{KindTool, KindSkill, KindMCP, KindSubagent} }

// A Capability is one thing that an agent can be permitted: a tool by its name,
// a skill by its directory, an MCP server by its name in mcp.json, a sub-agent
// by the name of its function.
type Capability struct {
	Kind Kind
	Name string
}

func (c Capability) String() string {
	if c.Name == "" {
		return string(c.Kind)
	}
	return string(c.Kind) + ":" + c.Name
}

// Wildcard is the one name in a policy that is not literal: it matches all.
const Wildcard = "*"

// A Policy decides about the names of one dimension. The zero value permits
// nothing. Names are compared literally and with case: there are no patterns.
type Policy struct {
	deny  bool // names are what is refused, instead of what is permitted
	names []string
}

// Allow permits the named things only.
func Allow(names ...string) Policy { return Policy{names: names} }

// Deny permits everything but the named things.
func Deny(names ...string) Policy { return Policy{deny: true, names: names} }

// Permits reports whether the policy lets name through.
func (p Policy) Permits(name string) bool {
	listed := slices.Contains(p.names, name) || slices.Contains(p.names, Wildcard)
	return listed != p.deny
}

// Intersect returns the policy that permits what both permit.
func (p Policy) Intersect(q Policy) Policy {
	switch {
	case p.deny && q.deny:
		return Deny(slices.Concat(p.names, q.names)...)
	case p.everything():
		return q
	case q.everything():
		return p
	case p.deny:
		p, q = q, p
	}
	return Allow(slices.DeleteFunc(slices.Clone(p.names), func(n string) bool { return !q.Permits(n) })...)
}

// everything reports whether the policy is an allow list with the wildcard.
func (p Policy) everything() bool { return !p.deny && slices.Contains(p.names, Wildcard) }

// Names returns what the policy's own list names, the wildcard excepted, so
// that names of things which do not exist can be pointed out.
func (p Policy) Names() []string {
	return slices.DeleteFunc(slices.Clone(p.names), func(n string) bool { return n == Wildcard })
}

// MarshalJSON writes {"allow": […]} or {"deny": […]}.
func (p Policy) MarshalJSON() ([]byte, error) {
	key := "allow"
	if p.deny {
		key = "deny"
	}
	names := p.names
	if names == nil {
		names = []string{}
	}
	return rawjson.Marshal(map[string][]string{key: names})
}

// UnmarshalJSON reads {"allow": […]} or {"deny": […]}. Everything else, both
// lists at once included, is an error: a policy that cannot be understood must
// not be guessed at (decision 30).
func (p *Policy) UnmarshalJSON(data []byte) error {
	members, err := rawjson.Members(data)
	if err != nil {
		return errors.New(`a policy is {"allow": [names]} or {"deny": [names]}`)
	}
	*p = Policy{}
	found := ""
	for _, m := range members {
		if m.Name != "allow" && m.Name != "deny" {
			continue
		}
		if found != "" {
			return errors.New(`"allow" and "deny" exclude each other; keep one of them`)
		}
		found = m.Name
		p.deny = found == "deny"
		if p.names, err = policyNames(m.Value); err != nil {
			return InField(found, err)
		}
	}
	if found == "" {
		return errors.New(`a policy needs "allow" or "deny", each a list of names`)
	}
	return nil
}

func policyNames(raw json.RawMessage) ([]string, error) {
	// A plain decode into []string would take null for an empty list, and an
	// empty deny list permits everything.
	var items []any
	if json.Unmarshal(raw, &items) != nil || items == nil {
		return nil, errors.New("must be a list of names")
	}
	names := make([]string, 0, len(items))
	for _, item := range items {
		s, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("must be a list of names, but holds %v", item)
		}
		names = append(names, s)
	}
	return names, nil
}

// Permissions are what one agent may use. The zero value permits nothing, and so
// does a dimension that is missing. An agent's permissions are its own: nothing
// is inherited from the agent that called it.
type Permissions map[Kind]Policy

// AllowAll permits everything, as the factory's default agent does.
func AllowAll() Permissions {
	p := Permissions{}
	for _, k := range Kinds() {
		p[k] = Allow(Wildcard)
	}
	return p
}

// Permits reports whether the capability may be seen and used.
func (p Permissions) Permits(c Capability) bool { return p[c.Kind].Permits(c.Name) }

// Intersect returns permissions that permit what both permit.
func (p Permissions) Intersect(q Permissions) Permissions {
	out := Permissions{}
	for k, policy := range p {
		out[k] = policy.Intersect(q[k])
	}
	return out
}

// UnmarshalJSON reads an object of policies. A dimension that is null or false
// counts as missing; keys that are no dimension are ignored, as they permit
// nothing. An error in one dimension is an error of the whole.
func (p *Permissions) UnmarshalJSON(data []byte) error {
	*p = nil
	if rawjson.KindOf(data) == rawjson.Null {
		return nil
	}
	members, err := rawjson.Members(data)
	if err != nil {
		return errors.New("must be an object with tools, skills, mcps and subagents")
	}
	all := Permissions{}
	for _, m := range members {
		kind := Kind(m.Name)
		if _, twice := all[kind]; twice {
			return InField(m.Name, errors.New("is there twice; keep one of them"))
		}
		if !slices.Contains(Kinds(), kind) || string(m.Value) == "null" || string(m.Value) == "false" {
			continue
		}
		var policy Policy
		if err := policy.UnmarshalJSON(m.Value); err != nil {
			return InField(m.Name, err)
		}
		all[kind] = policy
	}
	*p = all
	return nil
}
