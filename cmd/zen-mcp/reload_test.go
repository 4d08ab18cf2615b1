package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// A house is a home and a project with a program that serves them.
type house struct {
	t    *testing.T
	dir  string
	args []string

	mu  sync.Mutex
	log strings.Builder
}

func newHouse(t *testing.T, args ...string) *house {
	h := &house{t: t, dir: t.TempDir(), args: args}
	for _, dir := range []string{"home", "project"} {
		if err := os.Mkdir(h.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *house) path(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

// write writes a file as many editors do: beside it, and then over it.
func (h *house) write(name, text string) {
	h.t.Helper()
	path := h.path(name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path+".tmp", []byte(text), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) skill(name, description string) {
	h.t.Helper()
	h.write("home/.ai-zen/skills/"+name+"/SKILL.md", "---\nname: "+name+"\ndescription: "+description+"\n---\nText.\n")
}

// command is the program, serving.
func (h *house) command(args ...string) *exec.Cmd {
	cmd := exec.Command("zen-mcp", slices.Concat([]string{"serve"}, h.args, args)...)
	cmd.Dir = h.path("project")
	cmd.Env = append(os.Environ(), "HOME="+h.path("home"), "USERPROFILE="+h.path("home"), "XDG_STATE_HOME="+h.path("state"), "AI_ZEN_DIR=")
	cmd.Stderr = h
	return cmd
}

// Write takes what the program logs.
func (h *house) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(p)
}

func (h *house) logged(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(h.log.String(), text)
}

// await waits until something holds.
func (h *house) await(what string, holds func() bool) {
	h.t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.t.Fatalf("%s does not come true; the log:\n%s", what, h.log.String())
		}
		time.Sleep(time.Millisecond)
	}
}

// A guest is a client, and what it was told.
type guest struct {
	*mcp.ClientSession
	house                     *house
	tools, prompts, resources chan time.Time
}

// guest connects a client, over stdio or HTTP.
func (h *house) guest(version string, overHTTP bool) *guest {
	h.t.Helper()
	g := &guest{house: h, tools: make(chan time.Time, 1000), prompts: make(chan time.Time, 1000), resources: make(chan time.Time, 1000)}
	acknowledged := make(chan bool, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { g.tools <- time.Now() },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { g.prompts <- time.Now() },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { g.resources <- time.Now() },
	})
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				acknowledged <- true
			}
			return next(ctx, method, req)
		}
	})
	var transport mcp.Transport = &mcp.CommandTransport{Command: h.command()}
	if overHTTP {
		transport = &mcp.StreamableClientTransport{Endpoint: h.serveHTTP()}
	}
	var err error
	if g.ClientSession, err = client.Connect(h.t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		h.t.Fatalf("%v; the log:\n%s", err, h.log.String())
	}
	h.t.Cleanup(func() { g.Close() })
	if version >= "2026-07-28" { // Connect does not wait for the stream that is told
		select {
		case <-acknowledged:
		case <-time.After(patience):
			h.t.Fatal("the client is not heard")
		}
	}
	return g
}

// serveHTTP starts the program and returns its address.
func (h *house) serveHTTP() string {
	h.t.Helper()
	cmd := h.command("--http", "127.0.0.1:0", "--root", h.dir)
	cmd.Stderr = nil
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	address := make(chan string, 1)
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(h, lines.Text())
			if at, ok := strings.CutPrefix(lines.Text(), "zen-mcp: serving at "); ok {
				address <- at
			}
		}
	}()
	h.t.Cleanup(func() { cmd.Process.Kill(); <-ended; cmd.Wait() })
	at := ""
	select {
	case at = <-address:
	case <-time.After(patience):
		h.t.Fatalf("the program does not serve:\n%s", h.log.String())
	}
	h.await("being ready", func() bool {
		res, err := http.Get(strings.Replace(at, "/mcp", "/readyz", 1))
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return at
}

// told waits for a notification and returns when it came.
func (g *guest) told(of chan time.Time) time.Time {
	g.house.t.Helper()
	select {
	case at := <-of:
		return at
	case <-time.After(patience):
		g.house.t.Fatalf("the client is told nothing; the log:\n%s", g.house.log.String())
		return time.Time{}
	}
}

// shows reports whether a tool is listed, with a text in its description or schema.
func (g *guest) shows(tool, text string) bool {
	g.house.t.Helper()
	res, err := g.ListTools(g.house.t.Context(), nil)
	if err != nil {
		g.house.t.Fatal(err)
	}
	i := slices.IndexFunc(res.Tools, func(t *mcp.Tool) bool { return t.Name == tool })
	return i >= 0 && strings.Contains(fmt.Sprint(res.Tools[i].Description, res.Tools[i].InputSchema), text)
}

func (g *guest) call(tool, arguments string) string {
	g.house.t.Helper()
	res, err := g.CallTool(g.house.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		return err.Error()
	}
	var texts []string
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// everywhere runs a test in both eras, over stdio and HTTP.
func everywhere(t *testing.T, f func(t *testing.T, version string, overHTTP bool)) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, overHTTP := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s http %v", version, overHTTP), func(t *testing.T) {
				t.Parallel()
				f(t, version, overHTTP)
			})
		}
	}
}

// TestSavingIsSeen is what live reload is for: a file that is saved changes what a
// connected client sees. Within a second on a machine with nothing else to do; the
// log says in what time.
func TestSavingIsSeen(t *testing.T) {
	everywhere(t, func(t *testing.T, version string, overHTTP bool) {
		h := newHouse(t)
		h.skill("first", "the first skill")
		h.write("home/.ai-zen/agents/default.json", `{"permissions": {"tools": {"allow": ["*"]}, "skills": {"allow": ["*"]}}}`)
		g := h.guest(version, overHTTP)
		h.skill("zeroth", "seen by the first look at the files, or after it")
		g.told(g.tools)
		g.told(g.prompts)
		saved := time.Now()
		h.skill("second", "the second skill")
		at := g.told(g.tools)
		t.Logf("a new SKILL.md: told after %v", at.Sub(saved))
		g.told(g.prompts)
		g.told(g.resources)
		if !g.shows("load_skill", "the second skill") {
			t.Error("the client does not see the new skill")
		}
		if got := g.call("load_skill", `{"skill_id":"second"}`); !strings.Contains(got, "Text.") {
			t.Errorf("load_skill: %s", got)
		}
		saved = time.Now()
		h.write("home/.ai-zen/agents/default.json", `{"permissions": {"tools": {"deny": ["mkdir"]}, "skills": {"allow": ["first"]}}}`)
		at = g.told(g.tools)
		t.Logf("an agent's file: told after %v", at.Sub(saved))
		if g.shows("mkdir", "") || g.shows("load_skill", "the second skill") || !g.shows("ls", "") {
			t.Error("the client does not see what the agent permits now")
		}
		if got := g.call("mkdir", `{"path":"x"}`); !strings.Contains(got, `unknown tool "mkdir"`) {
			t.Errorf("a call that is not permitted any more: %s", got)
		}
		if got := g.call("load_skill", `{"skill_id":"second"}`); !strings.Contains(got, `unknown skill "second"`) {
			t.Errorf("a skill that is not permitted any more: %s", got)
		}
	})
}
