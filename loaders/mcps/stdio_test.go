package mcps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"zenmcp/core"
)

// The cases are those of a faithful hop: what a server does and says must reach
// the caller, and the other way round, as if nothing were between.

func fixHarness(t testing.TB, options string, more ...args) (h *harness, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "log")
	h = newHarness(t, map[string]any{"fix": stubServer(t, options, append(more, args{"log": log})...)})
	h.text("load_mcp", args{"server": "fix", "include_manifest": false})
	return h, log
}

func callArguments(t testing.TB, tool string, arguments any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(args{"server": "fix", "tool": tool, "arguments": arguments})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// C42: progress comes in order and before the result.
func TestProgress(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			h, _ := fixHarness(t, era)
			const steps = 300
			var got []core.Progress
			returned := false
			_, err := run(t.Context(), h.scope, callName, &core.Call{
				Arguments: callArguments(t, "work", args{"ms": 0, "steps": steps}),
				Progress: func(p core.Progress) {
					if returned {
						t.Error("progress after the result")
					}
					got = append(got, p)
				},
			})
			returned = true
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != steps {
				t.Fatalf("%d reports, want %d", len(got), steps)
			}
			for i, p := range got {
				if want := (core.Progress{Done: float64(i + 1), Total: steps, Message: "step"}); p != want {
					t.Fatalf("report %d is %+v, want %+v", i, p, want)
				}
			}
		})
	}
}

// C43: a cancelled call returns at once, and the server hears of it.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			h, log := fixHarness(t, era)
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("the user pressed escape")
			var since time.Time
			go func() {
				waitFor(t, log, "call work")
				since = time.Now()
				cancel(why)
			}()
			_, err := run(ctx, h.scope, callName, &core.Call{Arguments: callArguments(t, "work", args{"ms": 20000})})
			if !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
			// It is a matter of microseconds; machines that run tests are busy.
			if took := time.Since(since); took > 500*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			waitFor(t, log, "cancelled")
			if got := h.text(callName, args{"server": "fix", "tool": "echo"}); !strings.Contains(got, "x=") {
				t.Errorf("the next call: %s", got)
			}
		})
	}
}

// C44: progress keeps a call alive; silence ends it, and not the session.
func TestTimeout(t *testing.T) {
	t.Parallel()
	h, log := fixHarness(t, "fix", args{"timeout": 1500})
	h.text(callName, args{"server": "fix", "tool": "work", "arguments": args{"ms": 2000, "steps": 40}})
	h.fails(callName, args{"server": "fix", "tool": "work", "arguments": args{"ms": 20000}},
		`MCP server "fix"`, `tool "work"`, "1.5s")
	waitFor(t, log, "cancelled")
	h.text(callName, args{"server": "fix", "tool": "echo"})
	if n := strings.Count(readFile(t, log), "start\n"); n != 1 {
		t.Errorf("%d starts: the session was not kept", n)
	}
}

func TestMaxTimeout(t *testing.T) {
	t.Parallel()
	h, _ := fixHarness(t, "fix", args{"timeout": 1500, "maxTotalTimeout": 2000})
	h.fails(callName, args{"server": "fix", "tool": "work", "arguments": args{"ms": 20000, "steps": 200}}, "2s", "maxTotalTimeout")
}

// C49: a bad server costs the others nothing, and says what is wrong with it.
func TestBadServers(t *testing.T) {
	t.Parallel()
	h := newHarness(t, map[string]any{
		"good":   stubServer(t, "fix"),
		"silent": stubServer(t, "silent", args{"connectTimeout": 300}),
		"exits":  stubServer(t, "exit"),
		"typo":   map[string]any{"command": "no-such-program-anywhere"},
		"nodir":  stubServer(t, "fix", args{"cwd": "not/there"}),
		"var":    map[string]any{"command": "x", "args": []string{"${ZEN_MCP_NOT_SET_ANYWHERE}"}},
	})
	h.text(loadName, args{"server": "good"})
	h.fails(loadName, args{"server": "silent"}, "not get ready in time", "300ms")
	h.fails(loadName, args{"server": "exits"}, "exit code 3", "no licence found")
	h.fails(loadName, args{"server": "typo"}, "no-such-program-anywhere", "PATH")
	h.fails(loadName, args{"server": "nodir"}, "not")
	h.fails(loadName, args{"server": "var"}, "ZEN_MCP_NOT_SET_ANYWHERE", "args.0")
}

// Decision 25, B63: where a child runs, and what it finds in its environment.
func TestChildEnvironment(t *testing.T) {
	t.Parallel()
	h := newHarness(t, map[string]any{
		"here":  stubServer(t, "fix"),
		"below": stubServer(t, "fix", args{"cwd": "sub"}),
	})
	project, err := filepath.EvalSymlinks(h.project)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(h.project, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string]string{"here": project, "below": filepath.Join(project, "sub")} {
		h.text(loadName, args{"server": server})
		got := h.text(callName, args{"server": server, "tool": "env"})
		wanted, err := json.Marshal(want + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, string(wanted)) {
			t.Errorf("%s runs in %s, not in %s", server, got, want)
		}
	}
}

// Noise is logged with the server's name, and stderr is drained.
func TestNoiseIsLogged(t *testing.T) {
	t.Parallel()
	h, _ := fixHarness(t, "noise")
	h.text(callName, args{"server": "fix", "tool": "echo"})
	for _, want := range []string{"mcp_server=fix", "Welcome!", "just another line", "xxxxx"} {
		if !strings.Contains(h.log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	h, log := fixHarness(t, "fix")
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 10 {
				x := fmt.Sprintf("%d-%d", i, j)
				res, err := run(t.Context(), h.scope, callName, &core.Call{Arguments: callArguments(t, "echo", args{"x": x})})
				if err != nil {
					t.Error(err)
				} else if !strings.Contains(string(res.Whole), `"x=`+x+`"`) {
					t.Errorf("%s got %s", x, res.Whole)
				}
			}
		})
	}
	wg.Wait()
	if n := strings.Count(readFile(t, log), "start\n"); n != 1 {
		t.Errorf("%d starts", n)
	}
}

// A question of the server reaches the user, and the answer the server, in both
// eras; who cannot be asked is not waited for.
func TestElicitation(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			// The answer takes longer than the limit of silence.
			h := newHarness(t, map[string]any{"fix": stubServer(t, era, args{"timeout": 2000})})
			var asked string
			call := func(tool string, arguments any, elicit bool) (*core.Result, error) {
				raw, err := json.Marshal(arguments)
				if err != nil {
					t.Fatal(err)
				}
				c := &core.Call{Arguments: raw}
				if elicit {
					c.Elicit = func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
						asked = string(params)
						if err := pause(ctx, 2500*time.Millisecond); err != nil {
							return nil, err
						}
						return json.RawMessage(`{"action":"accept","content":{"colour":"blue"}}`), nil
					}
				}
				return run(t.Context(), h.scope, tool, c)
			}
			if _, err := call(loadName, args{"server": "fix"}, true); err != nil {
				t.Fatal(err)
			}
			ask := args{"server": "fix", "tool": "ask"}
			res, err := call(callName, ask, true)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(res.Whole), `\"colour\":\"blue\"`) || !strings.Contains(asked, "Which colour?") {
				t.Errorf("asked %s, got %s", asked, res.Whole)
			}
			if era == "modern" && !strings.Contains(string(res.Whole), "s1 ") {
				t.Errorf("the state was not returned: %s", res.Whole)
			}
			res, err = call(callName, ask, false)
			text := fmt.Sprint(err)
			if err == nil {
				text = string(res.Whole) // a legacy server words it itself
			}
			if !strings.Contains(text, "cannot ask its user") {
				t.Errorf("without anybody to ask: %s", text)
			}
		})
	}
}

// What is declared to a server is what is true of the client.
func TestElicitationIsDeclared(t *testing.T) {
	t.Parallel()
	for _, can := range []bool{false, true} {
		log := filepath.Join(t.TempDir(), "log")
		h := newHarness(t, map[string]any{"fix": stubServer(t, "fix", args{"log": log})})
		c := &core.Call{Arguments: json.RawMessage(`{"server":"fix"}`)}
		if can {
			c.Elicit = func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
		}
		if _, err := run(t.Context(), h.scope, loadName, c); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(readFile(t, log), `2025-11-25 {"elicitation":{"form":{}}}`); got != can {
			t.Errorf("can %v, declared %v:\n%s", can, got, readFile(t, log))
		}
	}
}

// The reply to load_mcp keeps within the budget and says how to see the rest.
func TestManifestBudget(t *testing.T) {
	t.Parallel()
	h := newHarness(t, map[string]any{"fix": stubServer(t, "huge")})
	catalog := h.env.Catalog()
	sizes := map[int]string{}
	for _, budget := range []int{100000, 24000, 16000, 4000, 900} {
		h.env.Update(core.Config{MaxToolOutput: &budget}, catalog)
		text := h.text(loadName, args{"server": "fix"})
		sizes[budget] = text
		var m struct {
			Note  string
			Tools []map[string]any
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("budget %d: %v: %s", budget, err, text)
		}
		if len(text) > budget {
			t.Errorf("budget %d: %d characters", budget, len(text))
		}
		if whole := budget == 100000; whole != (m.Note == "") || whole != (m.Tools[0]["inputSchema"] != nil) {
			t.Errorf("budget %d: note %q, first tool %v", budget, m.Note, m.Tools[0])
		}
		if budget >= 16000 && len(m.Tools) != 420 {
			t.Errorf("budget %d: %d tools", budget, len(m.Tools))
		}
		if budget < 100000 && !strings.Contains(m.Note, `load_mcp {"server":"fix","tool":"NAME"}`) {
			t.Errorf("budget %d: the note is %q", budget, m.Note)
		}
	}
	if !strings.Contains(sizes[24000], "says x") {
		t.Error("with room for them there are no first sentences")
	}
}

// A call that waits for others to have read the lists gives back the goroutine on
// which it runs: the lists may come in there.
func TestWaitForLists(t *testing.T) {
	t.Parallel()
	h, _ := fixHarness(t, "fix")
	s := h.source.connections(h.scope).own.slots["fix"][0].current
	s.lists.outdate()
	s.lists.turn <- struct{}{} // somebody reads them
	tools := h.scope.Tools()
	echo, _ := tools.Tool(callName)
	done := make(chan error)
	core.NewHost(nil).Run(t.Context(), echo.Pace, func(ctx context.Context) {
		_, err := echo.Run(ctx, &core.Call{Arguments: callArguments(t, "echo", nil)})
		done <- err
	})
	<-s.lists.turn
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A child that is there and reads no more is as good as dead: the call has not been
// done, and is made of a new one.
func TestDeafChild(t *testing.T) {
	t.Parallel()
	h, log := fixHarness(t, "deaf")
	h.text(callName, args{"server": "fix", "tool": "echo"})
	waitFor(t, log, "deaf")
	h.text(callName, args{"server": "fix", "tool": "echo"})
	if n := strings.Count(readFile(t, log), "start\n"); n != 2 {
		t.Errorf("%d starts, want 2", n)
	}
}
