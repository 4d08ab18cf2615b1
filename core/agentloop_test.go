package core_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"zenmcp/core"
	"zenmcp/core/coretest"
)

// TestOrder runs many calls of one round at once, the first one longest: their
// results come in the order of the calls.
func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		var running, most atomic.Int64
		var calls []core.ToolCall
		for i := range n {
			calls = append(calls, coretest.Call("wait", map[string]int{"seconds": n - i}))
		}
		model := coretest.Replies(coretest.Ask(calls...), coretest.Say("end"))
		scope := client(t, model, tools{"wait": func(_ context.Context, call *core.Call) (*core.Result, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			var in struct{ Seconds int }
			if err := json.Unmarshal(call.Arguments, &in); err != nil {
				return nil, err
			}
			time.Sleep(time.Duration(in.Seconds) * time.Second)
			return core.TextResult(fmt.Sprint(in.Seconds)), nil
		}})
		if res, err := core.RunAgent(t.Context(), &core.Call{Scope: scope}, worker()); err != nil || res.IsError {
			t.Fatalf("got %v, %v", res, err)
		}
		for i, m := range model.Requests()[1].Messages[3:] {
			if m.ToolCallID != fmt.Sprint("c", i) || m.Text() != fmt.Sprint(n-i) {
				t.Errorf("result %d is %q of %s", i, m.Text(), m.ToolCallID)
			}
		}
		if got := most.Load(); got != 16 {
			t.Errorf("%d calls ran at once", got)
		}
	})
}

// TestFailingTools checks what the model is told of tools that fail in every way.
func TestFailingTools(t *testing.T) {
	t.Parallel()
	model := coretest.Replies(coretest.Ask(
		coretest.Call("errors", "{}"), coretest.Call("panics", "{}"), coretest.Call("fails", "{}"),
		coretest.Call("erorrs", "{}"), coretest.Call("errors", "[1]"), coretest.Call("errors", `{"a":`), coretest.Call("errors", `"{}"`),
	), coretest.Say("end"))
	scope := client(t, model, tools{
		"errors": func(context.Context, *core.Call) (*core.Result, error) { return nil, errors.New("it is so") },
		"panics": func(context.Context, *core.Call) (*core.Result, error) { panic("a bug") },
		"fails": func(context.Context, *core.Call) (*core.Result, error) {
			return core.FailJSON(map[string]bool{"ok": false})
		},
	})
	res, err := core.RunAgent(t.Context(), &core.Call{Scope: scope}, worker())
	if err != nil || res.Text() != "end" {
		t.Fatalf("got %v, %v", res, err)
	}
	for i, want := range []string{
		"error: it is so", "error: internal error in panics; the server goes on", `{"ok":false}`,
		`error: unknown tool "erorrs"; did you mean "errors"?`,
		`error: the arguments must be one JSON object, not an array; they were "[1]"`,
		`error: the arguments are not valid JSON: send one object; they were "{\"a\":"`,
		"error: it is so",
	} {
		if got := model.Requests()[1].Messages[3+i].Text(); got != want {
			t.Errorf("result %d is %q, want %q", i, got, want)
		}
	}
}

// TestAbort ends a run while one of two tools runs that does not care: the
// conversation has a result for each call, as the API wants it (B68), and the
// model is not asked again.
func TestAbort(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	model := coretest.Replies(coretest.Ask(coretest.Call("quick", "{}"), coretest.Call("slow", "{}")), coretest.Say("never"))
	scope := client(t, model, tools{
		"quick": echo("quick"),
		"slow": func(context.Context, *core.Call) (*core.Result, error) {
			cancel(errors.New("enough"))
			return core.TextResult("late"), nil
		},
	})
	res, err := core.RunAgent(ctx, &core.Call{Scope: scope}, worker())
	if err != nil || !res.IsError || !strings.Contains(res.Text(), "stopped: enough") || len(model.Requests()) != 1 {
		t.Fatalf("got %v, %v after %d requests", res, err, len(model.Requests()))
	}
	info := res.Meta[core.RunKey].(core.RunInfo)
	var roles, results []string
	for _, line := range transcript(t, info.Transcript) {
		roles = append(roles, line.Role)
		if line.Role == "tool" {
			results = append(results, line.ToolCallID+" "+line.Text())
		}
	}
	// The last line is the error.
	if want := []string{"system", "user", "assistant", "tool", "tool", ""}; !slices.Equal(roles, want) {
		t.Errorf("the transcript has %q, want %q", roles, want)
	}
	if results[1] != "c1 late" || !strings.HasPrefix(results[0], "c0 ") {
		t.Errorf("results %q", results)
	}
}

// TestEmptyAnswer checks that a run without an answer is an error, with what was
// done.
func TestEmptyAnswer(t *testing.T) {
	t.Parallel()
	for finish, want := range map[string]string{"": "is empty", "stop": "is empty", "content_filter": `because of "content_filter"`} {
		last := coretest.Say(" \n")
		last.Finish = finish
		model := coretest.Replies(coretest.Ask(coretest.Call("t", "{}")), last)
		res, err := core.RunAgent(t.Context(), &core.Call{Scope: client(t, model, tools{"t": echo("t")})}, worker())
		if err != nil || !res.IsError || !strings.Contains(res.Text(), want) || !strings.Contains(res.Text(), "The last tool result: t:{}") {
			t.Errorf("%q: got %v, %v, want %q", finish, res, err, want)
		}
	}
}

func TestMaxRounds(t *testing.T) {
	t.Parallel()
	model := &coretest.Script{Answer: func(context.Context, int, coretest.Request) (*core.Reply, error) {
		return coretest.Ask(coretest.Call("t", "{}")), nil
	}}
	agent := worker()
	agent.MaxRounds = 3
	res, err := core.RunAgent(t.Context(), &core.Call{Scope: client(t, model, tools{"t": echo("t")})}, agent)
	if err != nil || !res.IsError || !strings.Contains(res.Text(), "no answer after 3 rounds, which is the most (maxRounds)") || len(model.Requests()) != 3 {
		t.Errorf("got %v, %v after %d requests", res, err, len(model.Requests()))
	}
}

func TestNoModels(t *testing.T) {
	t.Parallel()
	scope, err := core.NewScope(&core.Env{}, core.AgentDefinition{}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := core.RunAgent(t.Context(), &core.Call{Scope: scope}, worker()); err == nil {
		t.Errorf("got %v", res)
	}
}

// TestShown checks how results of every kind reach models, with and without eyes.
func TestShown(t *testing.T) {
	t.Parallel()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(picture.Bytes())
	seen := `{"image_url":{"url":"data:image/png;base64,` + encoded + `"},"type":"image_url"}`
	for name, c := range map[string]struct {
		result *core.Result
		text   string
		blind  string // text for a model that does not see; "" when it is the same
		parts  string
	}{
		"texts":  {result: &core.Result{Blocks: []core.Block{core.Text("a"), core.Text("b")}}, text: "a\nb"},
		"a link": {result: &core.Result{Blocks: []core.Block{core.ResourceLink{URI: "x://y", Name: "y", MIMEType: "text/plain"}}}, text: "y x://y text/plain"},
		"a picture": {result: &core.Result{Blocks: []core.Block{core.Text("a"), core.Image{MIMEType: "image/jpeg", Data: picture.Bytes()}}},
			text: "a", blind: "a\n[a picture, image/png, which this model cannot see]", parts: seen},
		"a URL": {result: &core.Result{Blocks: []core.Block{core.ImageURL{URL: "https://h/a.png"}}},
			blind: "[a picture, https://h/a.png, which this model cannot see]", parts: `{"image_url":{"url":"https://h/a.png"},"type":"image_url"}`},
		"a file": {result: &core.Result{Blocks: []core.Block{core.FileRef{ID: "f1", Name: "a.png"}}},
			blind: "[a picture, a.png, which this model cannot see]", parts: `{"file":{"file_id":"f1"},"type":"file"}`},
		"no picture": {result: &core.Result{Blocks: []core.Block{core.Image{MIMEType: "image/png", Data: []byte("<svg/>")}}},
			text: "[a picture of a kind that models do not take was left out]"},
		"a huge picture": {result: &core.Result{Blocks: []core.Block{core.Image{Data: append(picture.Bytes(), make([]byte, 4<<20)...)}}},
			text: "[a picture of 5 MB was left out; make it smaller]"},
		"foreign blocks": {result: &core.Result{Whole: json.RawMessage(`{"content": [{"type": "text", "text": "a"}, {"type": "image", "mimeType": "image/gif", "data": "` + encoded + `"},
			{"type": "resource", "resource": {"uri": "x://y", "text": "b"}}, {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
			{"type": "resource_link", "uri": "x://z", "name": "z"}, {"type": "hologram"}]}`)},
			text:  "a\nb\n[content of the type \"audio\" (audio/wav), which a chat model cannot take, was left out]\nz x://z\n[content of the type \"hologram\" (), which a chat model cannot take, was left out]",
			blind: "a\n[a picture, image/png, which this model cannot see]\nb\n[content of the type \"audio\" (audio/wav), which a chat model cannot take, was left out]\nz x://z\n[content of the type \"hologram\" (), which a chat model cannot take, was left out]",
			parts: seen},
		"a foreign error": {result: &core.Result{Whole: json.RawMessage(`{"content": [{"type": "text", "text": "no"}], "isError": true}`)}, text: "error: no"},
		"structured only": {result: &core.Result{Whole: json.RawMessage(`{"content": [], "structuredContent": {"n": 9007199254740993}}`)}, text: `{"n": 9007199254740993}`},
		"broken":          {result: &core.Result{Whole: json.RawMessage(`[]`)}, text: "[]"},
	} {
		for _, vision := range []bool{true, false} {
			model := coretest.Replies(coretest.Ask(coretest.Call("t", "{}")), coretest.Say("end"))
			model.Vision = vision
			scope := client(t, model, tools{"t": func(context.Context, *core.Call) (*core.Result, error) { return c.result, nil }})
			if res, err := core.RunAgent(t.Context(), &core.Call{Scope: scope}, worker()); err != nil || res.IsError {
				t.Fatalf("%s: got %v, %v", name, res, err)
			}
			after := model.Requests()[1].Messages[3:]
			text, parts := c.text, c.parts
			if !vision {
				parts = ""
				if c.blind != "" {
					text = c.blind
				}
			}
			if after[0].Text() != text {
				t.Errorf("%s, vision %v: the text is %q, want %q", name, vision, after[0].Text(), text)
			}
			want := 1
			if parts != "" {
				want = 2
				content := `[{"text":"From the tool t:","type":"text"},` + parts + `]`
				if last := after[len(after)-1]; last.Role != "user" || string(last.Content) != content {
					t.Errorf("%s: %s sends %s, want %s", name, last.Role, last.Content, content)
				}
			}
			if len(after) != want {
				t.Errorf("%s, vision %v: %d messages", name, vision, len(after))
			}
		}
	}
}

// TestProgressEnds checks that nothing is reported once a run is over, whatever
// its tools still say.
func TestProgressEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var late func(core.Progress)
		model := coretest.Replies(coretest.Ask(coretest.Call("t", "{}")), coretest.Say("end"))
		scope := client(t, model, tools{"t": func(_ context.Context, call *core.Call) (*core.Result, error) {
			late = call.Progress
			time.Sleep(12 * time.Second)
			return nil, nil
		}})
		var said []string
		call := &core.Call{Scope: scope, Progress: func(p core.Progress) { said = append(said, p.Message) }}
		if res, err := core.RunAgent(t.Context(), call, worker()); err != nil || res.IsError {
			t.Fatalf("got %v, %v", res, err)
		}
		late(core.Progress{Done: 1, Message: "late"})
		time.Sleep(time.Minute)
		want := []string{"round 1: asking script", "round 1: t", "round 1: t (5s)", "round 1: t (10s)", "round 2: asking script"}
		if !slices.Equal(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	})
}
