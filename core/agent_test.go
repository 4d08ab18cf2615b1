package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core"
	"zenmcp/core/coretest"
)

// tools is a source of tools that exist in the test only, by name, and of
// nothing else.
type tools map[string]func(ctx context.Context, call *core.Call) (*core.Result, error)

func (t tools) Discover(context.Context) (core.Offer, error) { return t, nil }

func (t tools) Capabilities() []core.Capability {
	var all []core.Capability
	for name := range t {
		all = append(all, core.Capability{Kind: core.KindTool, Name: name})
	}
	slices.SortFunc(all, func(a, b core.Capability) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (t tools) Instantiate(scope *core.Scope, permitted []core.Capability) ([]core.Tool, error) {
	var made []core.Tool
	for _, c := range permitted {
		tool := core.Tool{Name: c.Name, Description: "A tool.", Input: &jsonschema.Schema{Type: "object"}, Run: t[c.Name]}
		made = append(made, core.Definition{Tool: tool}.Bind(scope))
	}
	return made, nil
}

// echo answers with its name and arguments.
func echo(name string) func(context.Context, *core.Call) (*core.Result, error) {
	return func(_ context.Context, call *core.Call) (*core.Result, error) {
		return core.TextResult(name + ":" + string(call.Arguments)), nil
	}
}

// client is a scope whose agent is permitted everything, with a scripted model.
func client(t *testing.T, model *coretest.Script, sources ...core.Source) *core.Scope {
	t.Helper()
	catalog, err := core.Discover(t.Context(), sources...)
	if err != nil {
		t.Fatal(err)
	}
	env := &core.Env{StateDir: t.TempDir(), Models: model.Models}
	env.Update(core.Config{}, catalog)
	scope, err := core.NewScope(env, core.AgentDefinition{ID: "top", Permissions: core.AllowAll()}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { scope.Close() })
	return scope
}

// worker is an agent with a task that is permitted everything.
func worker() core.AgentDefinition {
	return core.AgentDefinition{ID: "worker", Permissions: core.AllowAll(), Messages: []core.Message{
		core.TextMessage("system", "s"), core.TextMessage("user", "go"),
	}}
}

func TestRunAgent(t *testing.T) {
	t.Parallel()
	model := coretest.Replies(
		coretest.Ask(coretest.Call("t", `{"x":1}`), coretest.Call("u", ``)),
		coretest.Say("end"),
	)
	scope := client(t, model, tools{"t": echo("t"), "u": echo("u")})
	res, err := core.RunAgent(t.Context(), &core.Call{Scope: scope}, worker())
	if err != nil || res.IsError || res.Text() != "end" {
		t.Fatalf("got %+v, %v", res, err)
	}
	requests := model.Requests()
	if want := []string{"system", "user", "assistant", "tool", "tool"}; len(requests) != 2 || !slices.Equal(requests[1].Roles(), want) {
		t.Fatalf("the second request has %q, want %q", requests[1].Roles(), want)
	}
	for i, want := range []string{`t:{"x":1}`, "u:{}"} {
		m := requests[1].Messages[3+i]
		if m.Text() != want || m.ToolCallID != []string{"c0", "c1"}[i] {
			t.Errorf("result %d is %q of %q, want %q", i, m.Text(), m.ToolCallID, want)
		}
	}
	info := res.Meta[core.RunKey].(core.RunInfo)
	if info.Rounds != 2 || info.ToolCalls != 2 || info.Tokens != (core.Usage{Prompt: 20, Completion: 10, Total: 30}) || info.Model != "script" {
		t.Errorf("info %+v", info)
	}
	testTranscript(t, info.Transcript, 6)
}

// testTranscript checks that a transcript is private and holds messages.
func testTranscript(t *testing.T, file string, lines int) {
	t.Helper()
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the transcript's mode is %v (%v)", info.Mode(), err)
	}
	messages := transcript(t, file)
	for _, m := range messages {
		if m.Role == "" {
			t.Errorf("no message: %+v", m)
		}
	}
	if len(messages) != lines {
		t.Errorf("%d lines, want %d", len(messages), lines)
	}
}

// transcript reads the messages of a run.
func transcript(t *testing.T, file string) []core.Message {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var messages []core.Message
	for line := range strings.Lines(string(text)) {
		var m core.Message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		messages = append(messages, m)
	}
	return messages
}

func TestRunAgentFails(t *testing.T) {
	t.Parallel()
	boom := errors.New("endpoint \"e\" answered 500: boom")
	model := &coretest.Script{Answer: func(_ context.Context, i int, _ coretest.Request) (*core.Reply, error) {
		if i == 1 {
			return nil, boom
		}
		return coretest.Ask(coretest.Call("t", "{}")), nil
	}}
	scope := client(t, model, tools{"t": echo("t")})
	res, err := core.RunAgent(t.Context(), &core.Call{Scope: scope}, worker())
	if err != nil || !res.IsError {
		t.Fatalf("got %+v, %v", res, err)
	}
	for _, want := range []string{boom.Error(), "2 rounds, 1 tool call (1 × t)", "The last tool result: t:{}", ".jsonl"} {
		if !strings.Contains(res.Text(), want) {
			t.Errorf("%q is not in %q", want, res.Text())
		}
	}
}
