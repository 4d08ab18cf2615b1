package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core"
	"zenmcp/core/llm"
)

// tools offers the tools t and u, which do what the test says by name.
type tools map[string]string

func (t tools) Discover(context.Context) (core.Offer, error) { return t, nil }

func (t tools) Capabilities() []core.Capability {
	return []core.Capability{{Kind: core.KindTool, Name: "t"}, {Kind: core.KindTool, Name: "u"}}
}

func (t tools) Instantiate(scope *core.Scope, permitted []core.Capability) ([]core.Tool, error) {
	var made []core.Tool
	for _, c := range permitted {
		made = append(made, core.Tool{Name: c.Name, Description: "d", Input: &jsonschema.Schema{Type: "object"}, Run: func(_ context.Context, call *core.Call) (*core.Result, error) {
			switch t[c.Name] {
			case "fails":
				return nil, errors.New("it broke")
			case "object":
				return core.JSONResult(map[string]int{"a": 1})
			case "nothing":
				return nil, nil
			case "text":
				return core.TextResult("fine"), nil
			}
			return core.TextResult(c.Name + ":" + string(call.Arguments)), nil
		}})
	}
	return made, nil
}

// run runs an agent with the tools on a service, and returns what it gives.
func run(t *testing.T, s *service, tools tools) *core.Result {
	t.Helper()
	catalog, err := core.Discover(t.Context(), tools)
	if err != nil {
		t.Fatal(err)
	}
	env := &core.Env{StateDir: t.TempDir(), Models: (&llm.Service{Transport: s}).Model}
	env.Update(config(), catalog)
	scope, err := core.NewScope(env, core.AgentDefinition{}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer scope.Close()
	res, err := core.RunAgent(t.Context(), &core.Call{Scope: scope}, core.AgentDefinition{
		ID: "a", Permissions: core.AllowAll(),
		Messages: []core.Message{core.TextMessage("system", "s"), core.TextMessage("user", "go")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func load[T any](t *testing.T, file string) []T {
	t.Helper()
	var out []T
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil || len(out) == 0 {
		t.Fatalf("%s: %d vectors, %v", file, len(out), err)
	}
	return out
}

// TestAgentLoop runs the vectors of the agent loop (contract §7) against a
// service: what the model is told, and what comes of it.
func TestAgentLoop(t *testing.T) {
	t.Parallel()
	type vector struct {
		ID, Name string
		Tools    tools
		Script   []step
		Want     struct {
			Answer, Reasoning string
			Error, Incomplete bool
			Requests          []string
			Results           []struct {
				ID, Text string
				Error    bool
			}
		}
	}
	for _, v := range load[vector](t, "testdata/agentloop.json") {
		t.Run(v.ID+" "+v.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{script: v.Script}
				res := run(t, s, v.Tools)
				if res.IsError != v.Want.Error || !v.Want.Error && res.Blocks[0] != core.Text(v.Want.Answer) {
					t.Errorf("got %+v, want %+v", res, v.Want)
				}
				if incomplete := len(res.Blocks) > 1; incomplete != v.Want.Incomplete {
					t.Errorf("got %+v", res)
				}
				var requests []string
				for _, r := range s.seen() {
					requests = append(requests, r.roles())
				}
				if !slices.Equal(requests, v.Want.Requests) {
					t.Errorf("the requests have %q, want %q", requests, v.Want.Requests)
				}
				var results []core.Message
				for _, m := range transcript(t, res) {
					if m.Role == "assistant" && m.Reasoning != v.Want.Reasoning {
						t.Errorf("reasoning %q, want %q", m.Reasoning, v.Want.Reasoning)
					}
					if m.Role == "tool" {
						results = append(results, m)
					}
				}
				if len(results) != len(v.Want.Results) {
					t.Fatalf("%d results, want %d: %+v", len(results), len(v.Want.Results), results)
				}
				for i, want := range v.Want.Results {
					got := results[i]
					failed := strings.HasPrefix(got.Text(), "error: ")
					if failed != want.Error || !failed && got.Text() != want.Text || want.ID != "" && got.ToolCallID != want.ID || got.ToolCallID == "" {
						t.Errorf("result %d is %q of %q, want %+v", i, got.Text(), got.ToolCallID, want)
					}
				}
			})
		})
	}
}

// transcript reads the messages of a run.
func transcript(t *testing.T, res *core.Result) []core.Message {
	t.Helper()
	text, err := os.ReadFile(res.Meta[core.RunKey].(core.RunInfo).Transcript)
	if err != nil {
		t.Fatal(err)
	}
	var messages []core.Message
	for line := range strings.Lines(string(text)) {
		var m core.Message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	return messages
}

func TestRoundsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{script: []step{{Raw: []json.RawMessage{
			json.RawMessage(`{"choices":[{"delta":{"tool_calls":[{"id":"c0","function":{"name":"t","arguments":"{}"}}]}}]}`),
		}}}}
		res := run(t, s, nil)
		if !res.IsError || !strings.Contains(res.Text(), "after 50 rounds") || len(s.seen()) != core.DefaultMaxRounds {
			t.Errorf("after %d requests: %s", len(s.seen()), res.Text())
		}
	})
}

// TestModels checks how models and endpoints are found (contract §8).
func TestModels(t *testing.T) {
	t.Parallel()
	type vector struct {
		ID, Name string
		Config   core.Config
		ModelID  string
		Want     struct {
			Error                     bool
			URL, Model, Authorization string
			Params                    map[string]json.RawMessage
		}
	}
	for _, v := range load[vector](t, "testdata/models.json") {
		t.Run(v.ID+" "+v.Name, func(t *testing.T) {
			t.Parallel()
			s := &service{script: []step{{Text: "hello"}}}
			m, err := (&llm.Service{Transport: s}).Model(v.Config, core.AgentDefinition{ModelID: &v.ModelID})
			if err != nil || v.Want.Error {
				if (err != nil) != v.Want.Error {
					t.Errorf("error %v, want one: %v", err, v.Want.Error)
				}
				return
			}
			if _, err := m.Reply(t.Context(), []core.Message{core.TextMessage("user", "x")}, nil); err != nil {
				t.Fatal(err)
			}
			got := s.seen()[0]
			if got.url != v.Want.URL || got.authorization != v.Want.Authorization || string(got.body["model"]) != `"`+v.Want.Model+`"` {
				t.Errorf("the request was %+v, want %+v", got, v.Want)
			}
			for name, want := range v.Want.Params {
				if string(got.body[name]) != string(want) {
					t.Errorf("%s is %s, want %s", name, got.body[name], want)
				}
			}
		})
	}
}
