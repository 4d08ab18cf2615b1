package subagents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core"
	"zenmcp/core/coretest"
)

func TestSource(t *testing.T) {
	t.Parallel()
	dir := folder(t, helper("one", "{}"), helper("two", "{}"))
	coretest.TestSource(t, sourceOf(t, dir), core.Capability{Kind: core.KindSubagent, Name: "two"})
	coretest.TestSource(t, sourceOf(t, t.TempDir()))
}

// run calls a sub-agent as a client would.
func run(ctx context.Context, scope *core.Scope, name, task string, progress func(core.Progress)) *core.Result {
	tool, ok := scope.Tools().Tool(name)
	if !ok {
		return core.ErrorResult(scope.Tools().UnknownTool(name))
	}
	return tool.Do(ctx, scope.Log(), &core.Call{Arguments: fmt.Appendf(nil, `{"task": %q}`, task), Progress: progress})
}

const everything = `{"tools": {"allow": ["*"]}, "subagents": {"allow": ["*"]}}`

// TestCycle lets two sub-agents ask for each other for ever (case C74, B54).
func TestCycle(t *testing.T) {
	t.Parallel()
	model := &coretest.Script{Answer: func(_ context.Context, _ int, r coretest.Request) (*core.Reply, error) {
		if last := r.Last(); last.Role == "tool" {
			return coretest.Say(last.Text()), nil
		}
		return coretest.Ask(coretest.Call("a", map[string]string{"task": "x"}), coretest.Call("b", map[string]string{"task": "x"})), nil
	}}
	scope := client(t, "m1", model, nil, sourceOf(t, folder(t, helper("a", everything), helper("b", everything))))
	res := run(t.Context(), scope, "a", "go", nil)
	if want := `"b" is running already (main → a → b) and cannot be called from within`; res.IsError || !strings.Contains(res.Text(), want) {
		t.Errorf("got %q, want it to say %q", res.Text(), want)
	}
	if n := len(model.Requests()); n != 4 {
		t.Errorf("%d requests", n)
	}
}

// TestDepth has a chain of sub-agents that is longer than what is allowed.
func TestDepth(t *testing.T) {
	t.Parallel()
	var files []json.RawMessage
	for i := range core.MaxAgentDepth + 2 {
		files = append(files, helper(fmt.Sprint("n", i), everything))
	}
	model := &coretest.Script{Answer: func(_ context.Context, i int, r coretest.Request) (*core.Reply, error) {
		if last := r.Last(); last.Role == "tool" {
			return coretest.Say(last.Text()), nil
		}
		return coretest.Ask(coretest.Call(fmt.Sprint("n", i+1), map[string]string{"task": "x"})), nil
	}}
	res := run(t.Context(), client(t, "m1", model, nil, sourceOf(t, folder(t, files...))), "n0", "go", nil)
	if want := `5 deep, and this would be one more: main → n0 → n1 → n2 → n3 → n4; do the work without "n5"`; !strings.Contains(res.Text(), want) {
		t.Errorf("got %q, want it to say %q", res.Text(), want)
	}
}

// TestDenied lets a model ask for everything there is, at every depth: nothing
// runs that the agent at that depth was not permitted (cases C77 and B01).
func TestDenied(t *testing.T) {
	t.Parallel()
	names := []string{"red", "green", "blue", "inner", "outer", "other"}
	var mu sync.Mutex
	ran := map[string][]string{} // by the agent that called
	recording := recorder(func(agent, tool string) {
		mu.Lock()
		defer mu.Unlock()
		ran[agent] = append(ran[agent], tool)
	})
	model := &coretest.Script{Answer: func(_ context.Context, i int, r coretest.Request) (*core.Reply, error) {
		if r.Last().Role == "tool" {
			return coretest.Say("done"), nil
		}
		var calls []core.ToolCall
		for i, name := range names {
			call := coretest.Call(name, map[string]string{"task": "x"})
			call.ID = fmt.Sprint("c", i)
			calls = append(calls, call)
		}
		return coretest.Ask(calls...), nil
	}}
	source := sourceOf(t, folder(t,
		helper("outer", `{"tools": {"deny": ["red"]}, "subagents": {"allow": ["inner"]}}`),
		helper("inner", `{"tools": {"allow": ["blue"]}}`),
		helper("other", everything),
	))
	permissions := core.Permissions{core.KindTool: core.Allow("red"), core.KindSubagent: core.Allow("outer")}
	scope := client(t, "m1", model, permissions, recording, source)
	if res := run(t.Context(), scope, "outer", "go", nil); res.IsError {
		t.Fatal(res.Text())
	}
	for agent, want := range map[string][]string{"main": nil, "a": {"blue", "green"}, "b": {"blue"}, "c": nil} {
		slices.Sort(ran[agent])
		if !slices.Equal(ran[agent], want) {
			t.Errorf("agent %q ran %q, was permitted %q", agent, ran[agent], want)
		}
	}
	for _, r := range model.Requests() {
		for _, m := range r.Messages {
			if m.Role == "tool" && strings.Contains(m.Text(), "permi") {
				t.Errorf("a refusal tells what is not permitted: %s", m.Text())
			}
		}
	}
}

// A recorder is a source of three tools that tell who called them.
type recorder func(agent, tool string)

func (r recorder) Discover(context.Context) (core.Offer, error) { return r, nil }

func (r recorder) Capabilities() []core.Capability {
	return tools{"red", "green", "blue"}.Capabilities()
}

func (r recorder) Instantiate(scope *core.Scope, permitted []core.Capability) ([]core.Tool, error) {
	var made []core.Tool
	for _, c := range permitted {
		made = append(made, core.Tool{Name: c.Name, Description: "d", Input: &jsonschema.Schema{Type: "object"}, Run: func(context.Context, *core.Call) (*core.Result, error) {
			r(scope.Agent().ID, c.Name)
			return nil, nil
		}})
	}
	return made, nil
}

// TestTenAtOnce runs ten sub-agents of one client together: their conversations
// do not mix, and each has a transcript of its own.
func TestTenAtOnce(t *testing.T) {
	t.Parallel()
	const n = 10
	var all sync.WaitGroup // every run is in its first round before one goes on
	all.Add(n)
	model := &coretest.Script{Answer: func(_ context.Context, _ int, r coretest.Request) (*core.Reply, error) {
		task := lastUser(r)
		if r.Last().Role == "user" {
			all.Done()
			all.Wait()
			return coretest.Ask(coretest.Call("echo", map[string]string{"task": task})), nil
		}
		for _, m := range r.Messages[2:] {
			if m.Role != "assistant" && !strings.Contains(m.Text(), task) {
				return nil, fmt.Errorf("%q in the conversation about %q", m.Text(), task)
			}
		}
		return coretest.Say("done " + task), nil
	}}
	scope := client(t, "m1", model, nil, echoes{}, sourceOf(t, folder(t, helper("a", everything))))
	var wg sync.WaitGroup
	transcripts := make([]string, n)
	for i := range n {
		wg.Go(func() {
			task := fmt.Sprintf("task [%d]", i)
			res := run(t.Context(), scope, "a", task, nil)
			if res.IsError || res.Text() != "done "+task {
				t.Errorf("%s gave %q", task, res.Text())
			}
			transcripts[i] = res.Meta[core.RunKey].(core.RunInfo).Transcript
			text, err := os.ReadFile(transcripts[i])
			if got := strings.Count(string(text), task); err != nil || got < 4 || strings.Count(string(text), "task [") != got {
				t.Errorf("the transcript of %s: %v\n%s", task, err, text)
			}
		})
	}
	wg.Wait()
	slices.Sort(transcripts)
	if got := len(slices.Compact(transcripts)); got != n {
		t.Errorf("%d transcripts", got)
	}
}

// echoes is a source of one tool that answers with its arguments.
type echoes struct{}

func (e echoes) Discover(context.Context) (core.Offer, error) { return e, nil }

func (echoes) Capabilities() []core.Capability { return tools{"echo"}.Capabilities() }

func (echoes) Instantiate(*core.Scope, []core.Capability) ([]core.Tool, error) {
	return []core.Tool{{Name: "echo", Description: "d", Input: &jsonschema.Schema{Type: "object"}, Run: func(_ context.Context, call *core.Call) (*core.Result, error) {
		var in struct{ Task string }
		err := json.Unmarshal(call.Arguments, &in)
		return core.TextResult(in.Task), err
	}}}, nil
}

// waits is a source of one tool that waits for the end of its context, and of one
// that must not run.
type waits struct {
	tools
	ended chan<- error
}

func (w waits) Discover(context.Context) (core.Offer, error) { return w, nil }

func (w waits) Instantiate(*core.Scope, []core.Capability) ([]core.Tool, error) {
	return []core.Tool{{Name: w.tools[0], Description: "d", Input: &jsonschema.Schema{Type: "object"}, Run: func(ctx context.Context, call *core.Call) (*core.Result, error) {
		call.Report(core.Progress{Done: 1, Message: "waiting"})
		<-ctx.Done()
		w.ended <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	}}}, nil
}

// TestCancel ends a run in its third round, once while a tool runs and once
// while the model is asked: it is over within 100 ms, nothing runs afterwards,
// and until then there was progress in every round (case C73).
func TestCancel(t *testing.T) {
	t.Parallel()
	for name, duringTool := range map[string]bool{"during a tool": true, "during a request": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testCancel(t, duringTool) })
		})
	}
}

func testCancel(t *testing.T, duringTool bool) {
	why := errors.New("the user has seen enough")
	ended := make(chan error, 2)
	model := &coretest.Script{Answer: func(ctx context.Context, i int, _ coretest.Request) (*core.Reply, error) {
		select {
		case <-time.After(3 * time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if i < 2 {
			return coretest.Ask(coretest.Call("nothing", "{}")), nil
		}
		return coretest.Ask(coretest.Call("wait", `{"path": "core/tool.go"}`), coretest.Call("wait", "{}")), nil
	}}
	scope := client(t, "m1", model, nil, waits{tools{"wait"}, ended}, sourceOf(t, folder(t, helper("a", everything))))
	ctx, cancel := context.WithCancelCause(t.Context())
	after := 8 * time.Second // in the third round's request
	if duringTool {
		after = 60 * time.Second
	}
	time.AfterFunc(after, func() { cancel(why) })
	var said []core.Progress
	start := time.Now()
	res := run(ctx, scope, "a", "x", func(p core.Progress) { said = append(said, p) })
	if took := time.Since(start) - after; took > 100*time.Millisecond {
		t.Errorf("it was over %v after the end", took)
	}
	if !res.IsError || !strings.Contains(res.Text(), why.Error()) {
		t.Errorf("got %q", res.Text())
	}
	if duringTool {
		for range 2 {
			if err := <-ended; !errors.Is(err, why) {
				t.Errorf("a tool ended with %v", err)
			}
		}
	}
	time.Sleep(time.Minute) // of virtual time: nothing comes afterwards
	if n := len(model.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
	var lines []string
	for i, p := range said {
		if i > 0 && p.Done <= said[i-1].Done {
			t.Errorf("progress went from %v to %v", said[i-1].Done, p.Done)
		}
		lines = append(lines, p.Message)
	}
	want := []string{"round 1: asking m1", "round 2: asking m1", "round 3: asking m1"}
	if duringTool {
		want = append(want, "round 3: wait core/tool.go", "round 3: wait: waiting", "round 3: wait: waiting (5s)")
	}
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("no progress %q in %q", line, lines)
		}
	}
}

// TestNoModel checks that what cannot run is not offered, and that the reason is
// given.
func TestNoModel(t *testing.T) {
	t.Parallel()
	definition := json.RawMessage(strings.Replace(string(helper("a", "{}")), `"messages"`, `"modelId": "m3", "messages"`, 1))
	published := client(t, "m1", coretest.Replies(), nil, sourceOf(t, folder(t, definition, helper("b", "{}")))).Tools()
	if !slices.Equal(published.Names(), []string{"b"}) {
		t.Errorf("offered %q", published.Names())
	}
	want := core.Capability{Kind: core.KindSubagent, Name: "a"}
	if o := published.Omitted; len(o) != 1 || o[0].Capability != want || o[0].Reason != `modelId: there is no model "m3"` || !strings.Contains(o[0].Origin, ".json:1:") {
		t.Errorf("omitted %+v", o)
	}
}
