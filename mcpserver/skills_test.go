package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// shelves is a source of skills in memory.
type shelves struct {
	mu     sync.Mutex
	skills map[string]*memory
}

// memory is one skill in memory.
type memory struct {
	name     string
	mu       sync.Mutex
	files    map[string]string
	version  int64 // makes the time of the last change
	unlisted error
	broken   error // of reading any file but SKILL.md
}

func (s *shelves) Discover(context.Context) (core.Offer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return shelfOffer{s, slices.Sorted(maps.Keys(s.skills))}, nil
}

type shelfOffer struct {
	*shelves
	names []string
}

func (o shelfOffer) Capabilities() []core.Capability {
	var all []core.Capability
	for _, n := range o.names {
		all = append(all, core.Capability{Kind: core.KindSkill, Name: n})
	}
	return all
}

func (o shelfOffer) Instantiate(*core.Scope, []core.Capability) ([]core.Tool, error) { return nil, nil }

func (o shelfOffer) Skills(permitted []core.Capability) []core.Skill {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []core.Skill
	for _, c := range permitted {
		out = append(out, core.Skill{Name: c.Name, Description: "about " + c.Name, Files: o.skills[c.Name]})
	}
	return out
}

func (m *memory) Text(context.Context) (string, error) { return "the text of " + m.name + "\n", nil }

func (m *memory) List(context.Context) ([]core.SkillFile, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []core.SkillFile
	for _, path := range slices.Sorted(maps.Keys(m.files)) {
		out = append(out, core.SkillFile{Path: path, Size: int64(len(m.files[path])), Modified: time.Unix(m.version, 0)})
	}
	return out, nil
}

func (m *memory) Read(_ context.Context, path string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.files[path]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case m.broken != nil && path != "SKILL.md":
		return nil, m.broken
	}
	return []byte(text), nil
}

func (m *memory) Describe(ctx context.Context) (core.SkillManifest, error) {
	if m.unlisted != nil {
		return core.SkillManifest{}, m.unlisted
	}
	files, err := m.List(ctx)
	for i, f := range files {
		files[i].Digest = digest(m.files[f.Path])
	}
	return core.SkillManifest{Frontmatter: json.RawMessage(`{"name":"` + m.name + `"}`), Files: files}, err
}

func (m *memory) write(path, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[path] = text
	m.version++
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func testShelves() *shelves {
	return &shelves{skills: map[string]*memory{
		"alpha": {name: "alpha", files: map[string]string{
			"SKILL.md": "---\r\nname: alpha\r\n---\r\n", "references/über uns?.md": "\uFEFFabout", "references/deep/x.ts": "let x", "logo.png": "\x89PNG\r\n\x1a\n\x00", "empty.txt": "",
		}},
		"loose":  {name: "loose", files: map[string]string{"SKILL.md": "text"}, unlisted: errors.New("no YAML")},
		"secret": {name: "secret", files: map[string]string{"SKILL.md": "secret"}},
	}}
}

// skillServer publishes skills to an agent that may not see the secret one.
func skillServer(t *testing.T, s *shelves) *Server {
	t.Helper()
	env := &core.Env{}
	env.Update(core.Config{}, discover(t, s))
	permissions := core.AllowAll()
	permissions[core.KindSkill] = core.Deny("secret")
	server, err := New(Options{Version: "test", Env: env, Dir: t.TempDir(), Agents: []core.AgentDefinition{{ID: "default", Permissions: permissions}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

// withSkills runs a test in every way.
func withSkills(t *testing.T, f func(t *testing.T, session *mcp.ClientSession)) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			server := skillServer(t, testShelves())
			f(t, w.connect(t, server, nil))
		})
	}
}

func errorCode(err error) int64 {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		return wire.Code
	}
	return 0
}

func TestSkillResources(t *testing.T) {
	withSkills(t, func(t *testing.T, session *mcp.ClientSession) {
		list, err := session.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var uris []string
		for _, r := range list.Resources {
			uris = append(uris, r.URI)
		}
		want := []string{"skill://alpha/SKILL.md", "skill://alpha/empty.txt", "skill://alpha/logo.png", "skill://alpha/references/deep/x.ts",
			"skill://alpha/references/%C3%BCber%20uns%3F.md", "skill://loose/SKILL.md"}
		if !slices.Equal(uris, want) {
			t.Errorf("resources %q, want %q", uris, want)
		}
		if r := list.Resources[0]; r.Name != "alpha" || r.Description != "about alpha" || r.MIMEType != "text/markdown" || r.Size != 23 {
			t.Errorf("SKILL.md is listed as %+v", r)
		}
		files := testShelves().skills["alpha"].files
		for uri, file := range map[string]string{
			want[0]: "SKILL.md", want[1]: "empty.txt", want[2]: "logo.png", want[3]: "references/deep/x.ts", want[4]: "references/über uns?.md",
			"skill://alpha/references/über%20uns%3f.md": "references/über uns?.md",
		} {
			res, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || len(res.Contents) != 1 {
				t.Errorf("%s: %v", uri, err)
				continue
			}
			c := res.Contents[0]
			data := c.Text
			if file == "logo.png" {
				data = string(c.Blob)
			}
			if data != files[file] || c.URI != uri {
				t.Errorf("%s holds %q of %s, want %q", uri, data, c.URI, files[file])
			}
		}
		templates, err := session.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != skillTemplate {
			t.Errorf("templates: %v, %v", templates, err)
		}
	})
}

// TestNoWayOut reads what is not there, or is not the agent's, in many spellings.
func TestNoWayOut(t *testing.T) {
	withSkills(t, func(t *testing.T, session *mcp.ClientSession) {
		for _, uri := range []string{
			"skill://secret/SKILL.md", "skill://nobody/SKILL.md", "skill://alpha/none.md", "skill://alpha", "skill://alpha/", "skill://alpha/references",
			"skill://alpha/../secret/SKILL.md", "skill://alpha/%2e%2e/secret/SKILL.md", "skill://alpha/..%2fsecret/SKILL.md", "skill://alpha%2f..%2fsecret/SKILL.md",
			"skill://alpha/./SKILL.md", "skill://alpha//SKILL.md", "skill://alpha/SKILL.md/", "skill://alpha/SKILL.md?x", "skill://alpha/SKILL.md#x",
			"skill://alpha/%00", "skill://alpha/..\\secret\\SKILL.md", "skill:///SKILL.md", "skill://../SKILL.md", "skill://%2e%2e/SKILL.md", "skill://alpha/%zz",
			"SKILL://alpha/SKILL.md", "file:///etc/passwd", "alpha/SKILL.md", "skill://alpha/%252e%252e/secret/SKILL.md", "skill://unlisted",
		} {
			_, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if errorCode(err) != jsonrpc.CodeInvalidParams || !strings.Contains(err.Error(), "resource not found") {
				t.Errorf("%s: %v", uri, err)
			}
		}
	})
}

// TestUnreadable checks that what cannot be read is an error with its reason, and
// not as if there were nothing.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	shelves := testShelves()
	shelves.skills["alpha"].broken = errors.New("has too many bytes")
	server := skillServer(t, shelves)
	session := ways()[0].connect(t, server, nil)
	_, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "skill://alpha/logo.png"})
	if errorCode(err) != jsonrpc.CodeInternalError || !strings.Contains(err.Error(), "too many bytes") {
		t.Errorf("got %v", err)
	}
}

func TestSkillPrompts(t *testing.T) {
	withSkills(t, func(t *testing.T, session *mcp.ClientSession) {
		list, err := session.ListPrompts(t.Context(), nil)
		if err != nil || len(list.Prompts) != 2 || list.Prompts[0].Name != "alpha" || list.Prompts[0].Arguments[0].Name != "task" || list.Prompts[0].Arguments[0].Required {
			t.Fatalf("prompts: %+v, %v", list, err)
		}
		for task, want := range map[string]string{"": "the text of alpha\n", "do it": "the text of alpha\n\nUse this skill for the task:\ndo it"} {
			res, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "alpha", Arguments: map[string]string{"task": task}})
			if err != nil {
				t.Fatal(err)
			}
			if text := res.Messages[0].Content.(*mcp.TextContent).Text; text != want || res.Messages[0].Role != "user" {
				t.Errorf("with task %q the prompt says %q", task, text)
			}
		}
		_, denied := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "secret"})
		_, unknown := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "nobody"})
		if errorCode(denied) != jsonrpc.CodeInvalidParams || strings.ReplaceAll(denied.Error(), "secret", "nobody") != unknown.Error() {
			t.Errorf("denied: %v; unknown: %v", denied, unknown)
		}
	})
}

func TestCompletion(t *testing.T) {
	withSkills(t, func(t *testing.T, session *mcp.ClientSession) {
		complete := func(ref mcp.CompleteReference, name, value string, given map[string]string) []string {
			t.Helper()
			res, err := session.Complete(t.Context(), &mcp.CompleteParams{Ref: &ref, Argument: mcp.CompleteParamsArgument{Name: name, Value: value}, Context: &mcp.CompleteContext{Arguments: given}})
			if err != nil {
				t.Fatal(err)
			}
			return res.Completion.Values
		}
		file := mcp.CompleteReference{Type: "ref/resource", URI: skillTemplate}
		for _, c := range []struct {
			ref         mcp.CompleteReference
			name, value string
			given       map[string]string
			want        []string
		}{
			{file, "skill", "", nil, []string{"alpha", "loose"}},
			{file, "skill", "al", nil, []string{"alpha"}},
			{file, "path", "references/d", map[string]string{"skill": "alpha"}, []string{"references/deep/x.ts"}},
			{file, "path", "", map[string]string{"skill": "secret"}, []string{}},
			{file, "path", "", nil, []string{}},
			{mcp.CompleteReference{Type: "ref/prompt", Name: "alpha"}, "task", "", nil, []string{}},
		} {
			if got := complete(c.ref, c.name, c.value, c.given); !slices.Equal(got, c.want) {
				t.Errorf("%s %q with %v: %q, want %q", c.name, c.value, c.given, got, c.want)
			}
		}
	})
}

// rawParams and rawAnswer carry methods that the SDK's client does not know.
type rawParams struct {
	mcp.ParamsBase
	URI    string `json:"uri,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

type rawAnswer struct {
	mcp.ResultBase
	Skills     []skillEntry   `json:"skills"`
	Skill      skillEntry     `json:"skill"`
	Resources  []mcp.Resource `json:"resources"`
	NextCursor string         `json:"nextCursor"`
	ResultType string         `json:"resultType"`
	TTLMs      *int           `json:"ttlMs"`
	CacheScope string         `json:"cacheScope"`
}

// extension connects with a client that speaks the skills extension.
func extension(t *testing.T, w way, s *Server) func(method string, p *rawParams) (*rawAnswer, error) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for _, method := range []string{"skills/list", "skills/get", "resources/directory/read"} {
		if err := mcp.AddSendingCustomMethod[*rawParams, *rawAnswer](client, method); err != nil {
			t.Fatal(err)
		}
	}
	session := w.dial(t, s, client)
	return func(method string, p *rawParams) (*rawAnswer, error) {
		return mcp.CallCustomMethod[*rawParams, *rawAnswer](t.Context(), session, method, p)
	}
}

// TestSkillsExtension is C83.
func TestSkillsExtension(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			shelves := testShelves()
			server := skillServer(t, shelves)
			call := extension(t, w, server)
			list, err := call("skills/list", &rawParams{})
			if err != nil || len(list.Skills) != 1 || list.Skills[0].URI != "skill://alpha/SKILL.md" {
				t.Fatalf("skills/list: %+v, %v", list, err)
			}
			if isModern := w.version == modern; (list.ResultType == "complete") != isModern || (list.TTLMs != nil) != isModern || (list.CacheScope == "private") != isModern {
				t.Errorf("resultType %q, ttlMs %v, cacheScope %q", list.ResultType, list.TTLMs, list.CacheScope)
			}
			alpha := shelves.skills["alpha"]
			check := func(e skillEntry) {
				t.Helper()
				if len(e.Resources) != len(alpha.files) {
					t.Errorf("%d files, want %d", len(e.Resources), len(alpha.files))
				}
				for _, r := range e.Resources {
					_, file, _ := parseSkillURI(r.URI)
					if text := alpha.files[file]; r.Digest != digest(text) || r.Size != int64(len(text)) {
						t.Errorf("%s: %+v", file, r)
					}
				}
			}
			check(list.Skills[0])
			alpha.write("references/deep/x.ts", "let y")
			got, err := call("skills/get", &rawParams{URI: "skill://alpha/SKILL.md"})
			if err != nil {
				t.Fatal(err)
			}
			check(got.Skill)
			for _, uri := range []string{"skill://alpha/references/deep/x.ts", "skill://secret/SKILL.md", "skill://nope/SKILL.md", "skill://loose/SKILL.md", ""} {
				_, err := call("skills/get", &rawParams{URI: uri})
				if errorCode(err) != jsonrpc.CodeInvalidParams || !strings.Contains(err.Error(), fmt.Sprintf("unknown skill %q", uri)) {
					t.Errorf("skills/get of %q: %v", uri, err)
				}
			}
		})
	}
}

func TestDirectoryRead(t *testing.T) {
	t.Parallel()
	server := skillServer(t, testShelves())
	call := extension(t, ways()[0], server)
	for uri, want := range map[string][]string{
		"skill://alpha":             {"SKILL.md", "empty.txt", "logo.png", "references/"},
		"skill://alpha/":            {"SKILL.md", "empty.txt", "logo.png", "references/"},
		"skill://alpha/references":  {"deep/", "über uns?.md"},
		"skill://alpha/references/": {"deep/", "über uns?.md"},
	} {
		res, err := call("resources/directory/read", &rawParams{URI: uri})
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		var names []string
		for _, r := range res.Resources {
			_, file, _ := parseSkillURI(r.URI)
			name := file[strings.LastIndex(file, "/")+1:]
			if r.MIMEType == directoryType {
				name += "/"
			}
			names = append(names, name)
		}
		if names[0] != "SKILL.md" {
			slices.Sort(names)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s holds %q, want %q", uri, names, want)
		}
	}
	for _, uri := range []string{"skill://alpha/SKILL.md", "skill://secret", "skill://nope", "skill://alpha/refer", "skill://", "", "skill://alpha/.."} {
		if _, err := call("resources/directory/read", &rawParams{URI: uri}); errorCode(err) != jsonrpc.CodeInvalidParams || !strings.Contains(err.Error(), "unknown folder") {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

// TestPages checks that lists of many skills end their pages, and that all pages
// together are the list.
func TestPages(t *testing.T) {
	t.Parallel()
	shelves := &shelves{skills: map[string]*memory{}}
	for i := range 2100 {
		name := fmt.Sprintf("s%04d", i)
		shelves.skills[name] = &memory{name: name, files: map[string]string{"SKILL.md": name}}
	}
	server := skillServer(t, shelves)
	session := ways()[8].connect(t, server, nil)
	count, last := 0, ""
	for r, err := range session.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if r.URI <= last {
			t.Fatalf("%s after %s", r.URI, last)
		}
		count, last = count+1, r.URI
	}
	prompts := 0
	for _, err := range session.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		prompts++
	}
	if count != 2100 || prompts != 2100 {
		t.Errorf("%d resources and %d prompts", count, prompts)
	}
	call := extension(t, ways()[0], server)
	listed := 0
	for p := (&rawParams{}); ; {
		res, err := call("skills/list", p)
		if err != nil {
			t.Fatal(err)
		}
		listed += len(res.Skills)
		if res.NextCursor == "" {
			break
		}
		p = &rawParams{Cursor: res.NextCursor}
	}
	if listed != 2100 {
		t.Errorf("skills/list has %d", listed)
	}
	if _, err := session.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: "nope"}); errorCode(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("an unknown cursor: %v", err)
	}
}

// events are the notifications that a client gets.
type events struct{ updated, tools, resources, prompts chan string }

func newEvents() (*events, *mcp.ClientOptions) {
	e := &events{make(chan string, 10), make(chan string, 10), make(chan string, 10), make(chan string, 10)}
	return e, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { e.updated <- r.Params.URI },
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { e.tools <- "tools" },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {
			e.resources <- "resources"
		},
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { e.prompts <- "prompts" },
	}
}

func expect(t *testing.T, from chan string, want string) {
	t.Helper()
	select {
	case got := <-from:
		if got != want {
			t.Errorf("told of %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("not told of %q", want)
	}
}

// changeUntil changes something until the client is told. In the revision without
// sessions it is not told when the SDK has noted what it listens for, which is a moment
// after the server has.
func changeUntil(t *testing.T, from chan string, want string, change func(try int)) {
	t.Helper()
	for try := range 10 {
		change(try)
		select {
		case got := <-from:
			if got != want {
				t.Errorf("told of %q, want %q", got, want)
			}
			return
		case <-time.After(2 * time.Second):
		}
	}
	t.Errorf("not told of %q", want)
}

// TestSubscriptions checks that clients hear of changed files, in every revision.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			shelves := testShelves()
			server := skillServer(t, shelves)
			e, options := newEvents()
			session := w.connect(t, server, options)
			uri := "skill://alpha/references/deep/x.ts"
			if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
			w := &server.agents[0].subscribed
			w.await(t, func() bool { return len(w.uris) == 1 }) // in the revision without sessions Subscribe does not wait
			changeUntil(t, e.updated, uri, func(try int) {
				shelves.skills["alpha"].write("references/deep/x.ts", "let z"+strings.Repeat("z", try))
				reload(t, server, shelves)
			})
			changeUntil(t, e.resources, "resources", func(try int) {
				name := "beta" + strings.Repeat("-more", try)
				shelves.mu.Lock()
				shelves.skills[name] = &memory{name: name, files: map[string]string{"SKILL.md": "beta"}}
				shelves.mu.Unlock()
				reload(t, server, shelves)
			})
			expect(t, e.prompts, "prompts")
			if res, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "skill://beta/SKILL.md"}); err != nil || res.Contents[0].Text != "beta" {
				t.Errorf("the new skill: %v, %v", res, err)
			}
			if err := session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
			w.await(t, func() bool { return len(w.uris) == 0 })
			shelves.skills["alpha"].write("references/deep/x.ts", "let zz")
			reload(t, server, shelves)
			if len(e.updated) > 0 {
				t.Errorf("told of %q, which nobody subscribes to", <-e.updated)
			}
		})
	}
}

// TestSubscriptionsEnd checks that nothing is looked at for clients that are gone.
func TestSubscriptionsEnd(t *testing.T) {
	t.Parallel()
	server := skillServer(t, testShelves())
	w := &server.agents[0].subscribed
	session := way{version: "2025-11-25", http: true}.connect(t, server, nil)
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "skill://alpha/SKILL.md"}); err != nil {
		t.Fatal(err)
	}
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "skill://secret/SKILL.md"}); err == nil {
		t.Error("subscribed to a skill that is denied")
	}
	w.await(t, func() bool { return len(w.uris) == 1 })
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	w.await(t, func() bool { return len(w.uris)+len(w.sessions) == 0 })
}

// await waits until something holds of the subscriptions.
func (w *subscriptions) await(t *testing.T, holds func() bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	for look := time.NewTicker(time.Millisecond); ; {
		w.mu.Lock()
		done := holds()
		w.mu.Unlock()
		if done {
			look.Stop()
			return
		}
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("the subscriptions stay %v", w.uris)
		}
	}
}
