package subagents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/coretest"
	"zenmcp/loaders/subagents"
)

func load[T any](t *testing.T, file string) []T {
	t.Helper()
	var out []T
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil || len(out) == 0 {
		t.Fatalf("%s: %d vectors, %v", file, len(out), err)
	}
	return out
}

// sourceOf makes a source of folders, those that win first.
func sourceOf(t *testing.T, dirs ...string) core.Source {
	t.Helper()
	empty := t.TempDir()
	if err := os.Mkdir(filepath.Join(empty, "sub-agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	places, err := configs.Find(configs.Options{
		Home: empty, Project: empty, SubAgents: dirs, UserHome: empty, Getenv: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return subagents.New(places)
}

// folder writes definitions into a fresh folder.
func folder(t *testing.T, definitions ...json.RawMessage) string {
	t.Helper()
	dir := t.TempDir()
	for i, d := range definitions {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%c.json", 'a'+i)), d, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// helper is a definition of a sub-agent.
func helper(name, permissions string) json.RawMessage {
	return json.RawMessage(`{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "{{task}}"}],
		"function": {"name": "` + name + `", "description": "d", "parameters": {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}},
		"permissions": ` + permissions + `}`)
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	type vector struct {
		ID, Name string
		Dirs     []string
		Files    []struct {
			Path, Text, Symlink string
			Dir                 bool
		}
		Want []string
	}
	for _, v := range load[vector](t, "discovery.json") {
		t.Run(v.ID+" "+v.Name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			var dirs []string
			for _, dir := range v.Dirs {
				if dir != "gone" {
					os.MkdirAll(filepath.Join(root, dir), 0o700)
					dirs = append(dirs, filepath.Join(root, dir))
				}
			}
			for _, f := range v.Files {
				path := filepath.Join(root, f.Path)
				err := os.MkdirAll(filepath.Dir(path), 0o700)
				switch {
				case err != nil:
				case f.Dir:
					err = os.Mkdir(path, 0o700)
				case f.Symlink != "" && runtime.GOOS == "windows":
					t.Skip("links need a privilege here")
				case f.Symlink != "":
					err = os.Symlink(f.Symlink, path)
				default:
					err = os.WriteFile(path, []byte(f.Text), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			offer, _ := sourceOf(t, dirs...).Discover(t.Context())
			var got []string
			for _, c := range offer.Capabilities() {
				got = append(got, c.Name)
			}
			if !slices.Equal(got, v.Want) {
				t.Errorf("found %q, want %q", got, v.Want)
			}
		})
	}
}

// TestOmissions checks what is said of files that are no sub-agents, and where.
func TestOmissions(t *testing.T) {
	t.Parallel()
	good := string(helper("ok", "{}"))
	for in, want := range map[string]string{
		`{`:                `a.json:1:2: `,
		`null`:             `a.json:1:1: the file must hold one object`,
		`{"messages": []}`: "a.json:1:1: has no function",
		strings.Replace(good, `"ok"`, `"not ok"`, 1):                                                         "a.json:2:24: function.name: clients refuse this name",
		strings.Replace(good, `"name": "ok", `, ``, 1):                                                       "function.name: is missing or empty",
		strings.Replace(good, `"type": "object"`, `"type": "string"`, 1):                                     `function.parameters: must have the type "object"`,
		strings.Replace(good, `"required": ["task"]`, `"anyOf": [{}]`, 1):                                    "function.parameters: must not have oneOf",
		strings.Replace(good, `"user"`, `"User"`, 1):                                                         `messages.1.role: "User" is none of`,
		strings.Replace(good, `"user"`, `"system"`, 1):                                                       "messages: must end with a message of the role user",
		strings.Replace(good, `"permissions": {}`, `"permissions": {"tools": {"allow": [], "deny": []}}`, 1): `permissions.tools: "allow" and "deny" exclude each other`,
	} {
		offer, err := sourceOf(t, folder(t, json.RawMessage(in), helper("other", "{}"))).Discover(t.Context())
		if got := offer.Capabilities(); len(got) != 1 || got[0].Name != "other" {
			t.Errorf("%s: one bad file cost more than itself: %v", in, got)
		}
		omissions := core.Omissions(err)
		if len(omissions) != 1 || omissions[0].Kind != core.KindSubagent || !strings.Contains(omissions[0].Origin+": "+omissions[0].Reason, want) {
			t.Errorf("%s: omitted %+v, want %q", in, omissions, want)
		}
	}
}

// TestFactory checks when the factory's sub-agent is there.
func TestFactory(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	names := func() []core.Capability {
		places, err := configs.Find(configs.Options{Home: home, Project: home, UserHome: home, Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		offer, err := subagents.New(places).Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return offer.Capabilities()
	}
	if got := names(); !slices.Equal(got, []core.Capability{{Kind: core.KindSubagent, Name: "sub_agent_default"}}) {
		t.Errorf("in an empty home there is %v", got)
	}
	if err := os.Mkdir(filepath.Join(home, "sub-agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) > 0 {
		t.Errorf("in a home with an empty folder there is %v", got)
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	type vector struct {
		ID, Name   string
		Definition json.RawMessage
		Want       struct {
			Error       bool
			Description string
			Parameters  json.RawMessage
		}
	}
	for _, v := range load[vector](t, "tools.json") {
		t.Run(v.ID+" "+v.Name, func(t *testing.T) {
			t.Parallel()
			tools := client(t, "m1", coretest.Replies(), nil, sourceOf(t, folder(t, v.Definition))).Tools().Tools
			if v.Want.Error {
				if len(tools) > 0 {
					t.Errorf("it became a tool: %+v", tools)
				}
				return
			}
			if len(tools) != 1 {
				t.Fatalf("%d tools", len(tools))
			}
			if schema, err := tools[0].InputJSON(); err != nil || string(schema) != string(v.Want.Parameters) || tools[0].Description != v.Want.Description {
				t.Errorf("got %q, %s (%v), want %+v", tools[0].Description, schema, err, v.Want)
			}
		})
	}
}

// TestTemplates calls a sub-agent and looks at what its model is sent.
func TestTemplates(t *testing.T) {
	t.Parallel()
	type vector struct {
		ID, Name string
		Contents []json.RawMessage
		Declared []string
		Args     json.RawMessage
		Want     []json.RawMessage // null for arguments that are refused
	}
	for _, v := range load[vector](t, "templates.json") {
		t.Run(v.ID+" "+v.Name, func(t *testing.T) {
			t.Parallel()
			properties := map[string]any{}
			for _, name := range v.Declared {
				properties[name] = map[string]any{}
			}
			definition := map[string]any{"function": map[string]any{"name": "f", "parameters": map[string]any{"properties": properties}}}
			var messages []map[string]any
			for _, c := range v.Contents {
				messages = append(messages, map[string]any{"role": "user", "content": c})
			}
			definition["messages"] = messages
			encoded, err := json.Marshal(definition)
			if err != nil {
				t.Fatal(err)
			}
			model := coretest.Replies(coretest.Say("done"))
			tool := client(t, "m1", model, nil, sourceOf(t, folder(t, encoded))).Tools().Tools[0]
			_, err = tool.Run(t.Context(), &core.Call{Arguments: v.Args})
			if v.Want == nil {
				if err == nil {
					t.Error("the arguments were taken")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, m := range model.Requests()[0].Messages[1:] {
				if string(m.Content) != string(v.Want[i]) {
					t.Errorf("message %d is %s, want %s", i, m.Content, v.Want[i])
				}
			}
		})
	}
}

// tools is a source of tools that say their name.
type tools []string

func (t tools) Discover(context.Context) (core.Offer, error) { return t, nil }

func (t tools) Capabilities() []core.Capability {
	var all []core.Capability
	for _, name := range t {
		all = append(all, core.Capability{Kind: core.KindTool, Name: name})
	}
	return all
}

func (t tools) Instantiate(_ *core.Scope, permitted []core.Capability) ([]core.Tool, error) {
	var made []core.Tool
	for _, c := range permitted {
		made = append(made, core.Tool{Name: c.Name, Description: "d", Input: &jsonschema.Schema{Type: "object"}, Run: func(context.Context, *core.Call) (*core.Result, error) {
			return core.TextResult(c.Name), nil
		}})
	}
	return made, nil
}

// client is a scope of an agent with one of the models m1 and m2, which both
// answer with the script; asked, if not nil, learns which was asked for.
func client(t *testing.T, modelID string, script *coretest.Script, permissions core.Permissions, sources ...core.Source) *core.Scope {
	t.Helper()
	catalog, err := core.Discover(t.Context(), sources...)
	if err != nil {
		t.Fatal(err)
	}
	env := &core.Env{StateDir: t.TempDir(), Models: func(_ core.Config, a core.AgentDefinition) (core.Model, error) {
		id := "m1"
		if a.ModelID != nil {
			id = *a.ModelID
		}
		if id != "m1" && id != "m2" {
			return nil, fmt.Errorf("there is no model %q", id)
		}
		return named{script, id}, nil
	}}
	env.Update(core.Config{}, catalog)
	if permissions == nil {
		permissions = core.AllowAll()
	}
	scope, err := core.NewScope(env, core.AgentDefinition{ID: "main", ModelID: &modelID, Permissions: permissions}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { scope.Close() })
	return scope
}

// named is the script under the id of a model. What the model is asked as is
// kept in the conversation's first message, for the test.
type named struct {
	*coretest.Script
	id string
}

func (n named) Info() core.ModelInfo { return core.ModelInfo{ID: n.id} }

func (n named) Reply(ctx context.Context, conversation []core.Message, tools []core.Tool) (*core.Reply, error) {
	conversation = append([]core.Message{core.TextMessage("model", n.id)}, conversation...)
	return n.Script.Reply(ctx, conversation, tools)
}

// TestRuns runs whole conversations of a main agent and its sub-agents.
func TestRuns(t *testing.T) {
	t.Parallel()
	type vector struct {
		ID, Name  string
		SubAgents []json.RawMessage
		Agent     struct {
			ModelID     string
			Permissions core.Permissions
		}
		Script []struct {
			Text, Fails string
			Calls       []struct {
				Name string
				Args json.RawMessage
			}
		}
		Want struct {
			Results []struct {
				Text  string
				Error bool
			}
			Requests []struct {
				Model, Roles, LastUser string
				Tools                  []string
			}
		}
	}
	for _, v := range load[vector](t, "runs.json") {
		t.Run(v.ID+" "+v.Name, func(t *testing.T) {
			t.Parallel()
			model := &coretest.Script{Answer: func(_ context.Context, i int, _ coretest.Request) (*core.Reply, error) {
				step := v.Script[i]
				if step.Fails != "" {
					return nil, errors.New(step.Fails)
				}
				reply := coretest.Say(step.Text)
				for i, c := range step.Calls {
					call := coretest.Call(c.Name, string(c.Args))
					call.ID = fmt.Sprint("c", i)
					reply.Message.ToolCalls = append(reply.Message.ToolCalls, call)
				}
				return reply, nil
			}}
			if v.Agent.Permissions == nil {
				v.Agent.Permissions = core.Permissions{core.KindTool: core.Allow("cwd"), core.KindSubagent: core.Allow("*")}
			}
			if v.Agent.ModelID == "" {
				v.Agent.ModelID = "m1"
			}
			scope := client(t, v.Agent.ModelID, model, v.Agent.Permissions, tools{"cwd", "ls", "readFile"}, sourceOf(t, folder(t, v.SubAgents...)))
			task := v.Want.Requests[0].LastUser
			main := core.AgentDefinition{ID: "main", Permissions: v.Agent.Permissions, Messages: []core.Message{core.TextMessage("system", "s"), core.TextMessage("user", task)}}
			res, err := core.RunAgent(t.Context(), &core.Call{Scope: scope}, main)
			if err != nil || res.Text() != v.Script[len(v.Script)-1].Text {
				t.Fatalf("got %+v, %v", res, err)
			}
			requests := model.Requests()
			if len(requests) != len(v.Want.Requests) {
				t.Fatalf("%d requests, want %d", len(requests), len(v.Want.Requests))
			}
			for i, want := range v.Want.Requests {
				got := requests[i]
				if roles := strings.Join(got.Roles()[1:], ","); roles != want.Roles || !slices.Equal(got.ToolNames(), want.Tools) || lastUser(got) != want.LastUser || got.Messages[0].Text() != want.Model {
					t.Errorf("request %d to %q has %s, %q, %q, want %+v", i, got.Messages[0].Text(), roles, got.ToolNames(), lastUser(got), want)
				}
			}
			var results []string
			for _, m := range requests[len(requests)-1].Messages {
				if m.Role == "tool" {
					results = append(results, m.Text())
				}
			}
			if len(results) != len(v.Want.Results) {
				t.Fatalf("results %q, want %+v", results, v.Want.Results)
			}
			for i, want := range v.Want.Results {
				failed := strings.HasPrefix(results[i], "error: ")
				if failed != want.Error || !failed && results[i] != want.Text {
					t.Errorf("result %d is %q, want %+v", i, results[i], want)
				}
			}
		})
	}
}

func lastUser(r coretest.Request) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" {
			return m.Text()
		}
	}
	return ""
}
