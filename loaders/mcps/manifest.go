package mcps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// A manifest is what a server offers, at one time.
type manifest struct {
	version      string // of the protocol
	instructions string
	tools        []*tool
	byName       map[string]*tool
	// partial says that the tools could not be listed to the end, so a name that
	// is not among them may exist.
	partial   bool
	resources []json.RawMessage
	templates []json.RawMessage
	prompts   int
	warnings  []string
}

// A tool is one tool of another server.
type tool struct {
	name    string
	raw     json.RawMessage // as the server listed it
	params  []paramHeader
	repeats bool
}

// repeatable says that to call the tool once more does no harm.
func (t *tool) repeatable() bool { return t != nil && t.repeats }

func (m *manifest) tool(name string) *tool { return m.byName[name] }

func (m *manifest) unknownTool(name string) error {
	names := make([]string, len(m.tools))
	for i, t := range m.tools {
		names[i] = t.name
	}
	hint := core.DidYouMean(name, names)
	if hint == "" && len(names) > 0 {
		hint = "; there are " + quoteSome(names)
	}
	return fmt.Errorf("it has no tool %q%s", core.Clip(name, 80), hint)
}

// lists keep the manifest of a session, and know when it is out of date.
type lists struct {
	turn chan struct{} // held, by a value in it, while the lists are read

	mu      sync.Mutex
	changes int // counted up by every list_changed
	current *manifest
	as      int // the count of changes that current was read at
}

// outdate has the lists read anew when they are next needed.
func (l *lists) outdate() {
	l.mu.Lock()
	l.changes++
	l.mu.Unlock()
}

// cached is the manifest if it is up to date; changes is the count to store the
// next one with.
func (l *lists) cached() (m *manifest, changes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil && l.as == l.changes {
		return l.current, l.changes
	}
	return nil, l.changes
}

// lock takes the turn to read the lists, or gives up when ctx ends.
func (l *lists) lock(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	default:
		core.Waits(ctx) // for another call, which may be answered where this one runs
	}
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// retryPartial has lists that could not be read to the end read anew.
func (l *lists) retryPartial() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil && l.current.partial {
		l.changes++
	}
}

// resourceURIs lists what can be named in a hint.
func (l *lists) resourceURIs() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return nil
	}
	var uris []string
	for _, raw := range l.current.resources {
		uris = append(uris, stringMember(raw, "uri"))
	}
	return uris
}

// manifest reads the lists, or gives what is known if nothing has changed.
func (s *session) manifest(ctx context.Context) (*manifest, error) {
	if m, _ := s.lists.cached(); m != nil {
		return m, nil
	}
	if err := s.lists.lock(ctx); err != nil {
		return nil, err
	}
	defer func() { <-s.lists.turn }()
	m, changes := s.lists.cached()
	if m != nil {
		return m, nil
	}
	m, err := s.readLists(ctx)
	if err != nil {
		return nil, err
	}
	s.lists.mu.Lock()
	s.lists.current, s.lists.as = m, changes
	s.lists.mu.Unlock()
	return m, nil
}

// tool finds a tool by name. One that is not listed is looked for once more:
// servers exist that change their tools without saying so.
func (s *session) tool(ctx context.Context, name string) (*tool, error) {
	cached, _ := s.lists.cached()
	m, err := s.manifest(ctx)
	if err != nil {
		return nil, err
	}
	if m == cached && m.tool(name) == nil {
		s.lists.outdate()
		if m, err = s.manifest(ctx); err != nil {
			return nil, err
		}
	}
	if t := m.tool(name); t != nil {
		return t, nil
	}
	if m.partial {
		return &tool{name: name}, nil
	}
	return nil, m.unknownTool(name)
}

// readLists reads what the server says that it has. A list that fails is empty,
// with a warning (contract §9); only a lost connection or a sign-in fails the whole.
func (s *session) readLists(ctx context.Context) (*manifest, error) {
	m := &manifest{version: s.version, instructions: s.instructions, byName: map[string]*tool{}}
	read := func(capability, method, key, id string) ([]json.RawMessage, error) {
		if !s.offers(capability) {
			return nil, nil
		}
		items, err := s.list(ctx, method, key, id)
		var lost *lostError
		var refused *authError
		if errors.As(err, &lost) || errors.As(err, &refused) || ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			m.partial = m.partial || key == "tools"
			why := s.mask.Replace(err.Error())
			m.warnings = append(m.warnings, method+": "+why)
			s.log.Warn("list is not complete", "method", method, "error", why)
		}
		return items, nil
	}
	tools, err := read("tools", "tools/list", "tools", "name")
	if err != nil {
		return nil, err
	}
	for _, raw := range tools {
		t, err := newTool(raw, s.modern)
		if err != nil {
			m.warnings = append(m.warnings, fmt.Sprintf("tool %q is left out: %v", t.name, err))
			continue
		}
		m.tools = append(m.tools, t)
		m.byName[t.name] = t
	}
	if m.resources, err = read("resources", "resources/list", "resources", "uri"); err != nil {
		return nil, err
	}
	if m.templates, err = read("resources", "resources/templates/list", "resourceTemplates", "uriTemplate"); err != nil {
		return nil, err
	}
	prompts, err := read("prompts", "prompts/list", "prompts", "name")
	m.prompts = len(prompts)
	return m, err
}

const (
	maxPages = 1000   // of one list
	maxItems = 100000 // of one list
)

// list reads all pages of a list. id names the member that tells items apart;
// an item that came before is passed over. A list that does not end, as when a
// cursor comes again, ends with an error beside what was read.
func (s *session) list(ctx context.Context, method, key, id string) ([]json.RawMessage, error) {
	var items []json.RawMessage
	seen, cursors := map[string]bool{}, map[string]bool{}
	var fields []byte
	for range maxPages {
		result, err := s.peer.call(ctx, &request{method: method, fields: fields, meta: s.meta(false), timeout: s.server.Timeout})
		if err != nil {
			if method == "resources/templates/list" && isNotFound(err) {
				return items, nil // many servers have resources and no templates
			}
			return items, err
		}
		page, next, err := onePage(result, key)
		if err != nil {
			return items, err
		}
		for _, item := range page {
			if name := stringMember(item, id); name != "" && !seen[name] {
				seen[name] = true
				items = append(items, item)
			}
		}
		if next == nil {
			return items, nil
		}
		if cursors[string(next)] {
			return items, fmt.Errorf("the server gave the cursor %s twice; the list was cut there", core.Clip(string(next), 80))
		}
		cursors[string(next)] = true
		if len(items) > maxItems {
			break
		}
		fields = append([]byte(`"cursor":`), next...)
	}
	return items, fmt.Errorf("the list does not end; it was cut after %d items", len(items))
}

// onePage takes the answer to a list request apart. next is the cursor as JSON,
// nil at the end.
func onePage(result json.RawMessage, key string) (items []json.RawMessage, next json.RawMessage, err error) {
	members, err := rawjson.Members(result)
	if err != nil {
		return nil, nil, errors.New("the answer is not an object")
	}
	for _, m := range members {
		switch m.Name {
		case key:
			if rawjson.KindOf(m.Value) == rawjson.Null {
				continue
			}
			if items, err = rawjson.Elements(m.Value); err != nil {
				return nil, nil, fmt.Errorf("%q in the answer is not a list", key)
			}
		case "nextCursor":
			if rawjson.KindOf(m.Value) == rawjson.String && string(m.Value) != `""` {
				next = m.Value
			}
		}
	}
	return items, next, nil
}

// newTool reads what we need to know of a tool. The error says why it cannot be
// called; the name is set even then.
func newTool(raw json.RawMessage, modern bool) (*tool, error) {
	var t struct {
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations struct {
			ReadOnlyHint   bool `json:"readOnlyHint"`
			IdempotentHint bool `json:"idempotentHint"`
		} `json:"annotations"`
	}
	out := &tool{name: stringMember(raw, "name"), raw: raw}
	if err := json.Unmarshal(raw, &t); err == nil {
		out.repeats = t.Annotations.ReadOnlyHint || t.Annotations.IdempotentHint
	}
	var err error
	if modern {
		out.params, err = paramHeaders(t.InputSchema)
	}
	return out, err
}

// stringMember is a text member of an object, "" if it has none.
func stringMember(raw json.RawMessage, name string) string {
	members, err := rawjson.Members(raw)
	if err != nil {
		return ""
	}
	for _, m := range members {
		if m.Name == name {
			var s string
			_ = json.Unmarshal(m.Value, &s) // "" if it is no text
			return s
		}
	}
	return ""
}

// brief is the reply without the manifest (contract §3).
func (m *manifest) brief(server string) (*core.Result, error) {
	return core.JSONResult(struct {
		Server    string   `json:"server"`
		Connected bool     `json:"connected"`
		Tools     int      `json:"tools"`
		Resources int      `json:"resources"`
		Templates int      `json:"resourceTemplates,omitempty"`
		Prompts   int      `json:"prompts,omitempty"`
		Protocol  string   `json:"protocol"`
		Warnings  []string `json:"warnings,omitempty"`
	}{server, true, len(m.tools), len(m.resources), len(m.templates), m.prompts, m.version, m.warnings})
}

// reply shows the manifest within a budget of code points. When it does not fit,
// it shows less and less of each item, and at last fewer items; it always says
// what is missing and how to see it.
func (m *manifest) reply(server string, budget int) (*core.Result, error) {
	whole, err := rawjson.Marshal(m.view(full, "", len(m.tools), len(m.resources)))
	if err != nil {
		return nil, err
	}
	if utf8.RuneCount(whole) <= budget {
		return core.TextResult(string(whole)), nil
	}
	hint, err := rawjson.Marshal(map[string]string{"server": server, "tool": "NAME"})
	if err != nil {
		return nil, err
	}
	note := fmt.Sprintf("shortened to fit %d characters; load_mcp %s shows one tool whole", budget, hint)
	for _, d := range []detail{short, bare} {
		text, err := rawjson.Marshal(m.view(d, note, len(m.tools), len(m.resources)))
		if err != nil || utf8.RuneCount(text) <= budget {
			return core.TextResult(string(text)), err
		}
	}
	tools, resources := len(m.tools), len(m.resources)
	for {
		tools, resources = tools/2, resources/2
		note := fmt.Sprintf("%d of %d tools and %d of %d resources, %s", tools, len(m.tools), resources, len(m.resources), note)
		text, err := rawjson.Marshal(m.view(bare, note, tools, resources))
		if err != nil || utf8.RuneCount(text) <= budget || tools+resources == 0 {
			return core.TextResult(string(text)), err
		}
	}
}

// detail is how much of each item is shown.
type detail int

const (
	full  detail = iota // as the server sent it
	short               // name and first sentence
	bare                // name only
)

type view struct {
	Note         string            `json:"note,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	Tools        []json.RawMessage `json:"tools"`
	Resources    []json.RawMessage `json:"resources"`
	Templates    []json.RawMessage `json:"resourceTemplates,omitempty"`
	Prompts      int               `json:"prompts,omitempty"`
	Warnings     []string          `json:"warnings,omitempty"`
}

// maxInstructions and maxWarnings are what a shortened reply shows of them.
const (
	maxInstructions = 2000 // code points
	maxWarnings     = 5
)

func (m *manifest) view(d detail, note string, tools, resources int) view {
	v := view{Note: note, Instructions: m.instructions, Prompts: m.prompts, Warnings: m.warnings,
		Tools: []json.RawMessage{}, Resources: []json.RawMessage{}}
	if d != full {
		v.Instructions = core.Clip(m.instructions, maxInstructions)
		v.Warnings = m.warnings[:min(len(m.warnings), maxWarnings)]
	}
	for _, t := range m.tools[:tools] {
		v.Tools = append(v.Tools, shorten(t.raw, d, "name", "description"))
	}
	for _, r := range m.resources[:resources] {
		v.Resources = append(v.Resources, shorten(r, d, "uri", "name"))
	}
	for _, r := range m.templates[:min(len(m.templates), max(resources, 20))] {
		v.Templates = append(v.Templates, shorten(r, d, "uriTemplate", "name"))
	}
	return v
}

// shorten keeps of an object the member that names it and, clipped, the one that
// describes it.
func shorten(raw json.RawMessage, d detail, name, description string) json.RawMessage {
	if d == full {
		return raw
	}
	out := rawjson.AppendString([]byte(`{"`+name+`":`), stringMember(raw, name))
	if about := firstSentence(stringMember(raw, description)); d == short && about != "" {
		out = rawjson.AppendString(append(out, `,"`+description+`":`...), about)
	}
	return append(out, '}')
}

// firstSentence is the beginning of a description, up to 160 code points of it.
func firstSentence(s string) string {
	s = strings.TrimSpace(s)
	if line, _, ok := strings.Cut(s, "\n"); ok {
		s = strings.TrimSpace(line)
	}
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return core.Clip(s, 160)
}

func isNotFound(err error) bool {
	var fault *faultError
	return errors.As(err, &fault) && fault.code == jsonrpc.CodeMethodNotFound
}
