package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	cmd := exec.Command("zen-mcp", slices.Concat([]string{"serve", "--log-level", "debug"}, h.args, args)...)
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

// logged counts how often a text is in the log.
func (h *house) logged(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Count(h.log.String(), text)
}

// reread waits until the program has read its files once more than it had.
func (h *house) reread(change func()) {
	h.t.Helper()
	before := h.logged(rereads)
	change()
	h.await("that the files are read again", func() bool { return h.logged(rereads) > before })
}

const rereads = "read the files again"

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
	if overHTTP {
		return h.join(version, &mcp.StreamableClientTransport{Endpoint: h.serveHTTP()})
	}
	return h.join(version, &mcp.CommandTransport{Command: h.command()})
}

func (h *house) join(version string, transport mcp.Transport) *guest {
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
	select {
	case at := <-address:
		return at
	case <-time.After(patience):
		h.t.Fatalf("the program does not serve:\n%s", h.log.String())
		return ""
	}
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

// TestEditors checks the ways in which editors save.
func TestEditors(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.skill("s", "saved by nobody")
	g := h.guest("2025-11-25", false)
	file := h.path("home/.ai-zen/skills/s/SKILL.md")
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	for name, save := range map[string]func(text []byte){
		"a file is renamed over it": func(text []byte) {
			must(os.WriteFile(file+".tmp", text, 0o600), os.Rename(file+".tmp", file))
		},
		"it is truncated and written": func(text []byte) { must(os.WriteFile(file, text, 0o600)) },
		"it is deleted and created":   func(text []byte) { must(os.Remove(file), os.WriteFile(file, text, 0o600)) },
		"vim keeps a backup": func(text []byte) {
			must(os.WriteFile(filepath.Join(filepath.Dir(file), "4913"), nil, 0o600), os.Remove(filepath.Join(filepath.Dir(file), "4913")))
			must(os.Rename(file, file+"~"), os.WriteFile(file, text, 0o600), os.Remove(file+"~"))
		},
		"it is written piece by piece": func(text []byte) {
			f, err := os.Create(file)
			must(err)
			for _, b := range text {
				_, err := f.Write([]byte{b})
				must(err)
			}
			must(f.Close())
		},
	} {
		save([]byte("---\nname: s\ndescription: saved so that " + name + "\n---\n"))
		h.await("that it is seen when "+name, func() bool { return g.shows("load_skill", "saved so that "+name) })
	}
}

// TestManyChanges checks that a hundred changes in a second are a handful of
// notifications, and that the last one is seen.
func TestManyChanges(t *testing.T) {
	everywhere(t, func(t *testing.T, version string, overHTTP bool) {
		h := newHouse(t)
		h.skill("s", "change 0 of many")
		g := h.guest(version, overHTTP)
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for i := range 100 {
			<-pace.C
			h.skill("s", fmt.Sprintf("change %d of many", i+1))
		}
		h.await("that the last change is seen", func() bool { return g.shows("load_skill", "change 100 of many") })
		h.await("that the client is told", func() bool { return len(g.tools) > 0 })
		h.reread(func() { h.write("home/.ai-zen/config.json", "{}") })
		if n := len(g.tools); n > 6 {
			t.Errorf("told %d times", n)
		} else {
			t.Logf("told %d times, and read %d times", n, h.logged(rereads))
		}
	})
}

// TestNothingChanges checks that nobody is told when files say what they said.
func TestNothingChanges(t *testing.T) {
	everywhere(t, func(t *testing.T, version string, overHTTP bool) {
		h := newHouse(t)
		agent := `{"permissions": {"tools": {"allow": ["ls", "load_skill"]}, "skills": {"allow": ["*"]}}}`
		h.write("home/.ai-zen/agents/default.json", agent)
		h.skill("s", "a skill")
		g := h.guest(version, overHTTP)
		h.await("the first look", func() bool { return h.logged(rereads) > 0 })
		h.reread(func() {
			h.skill("s", "a skill")
			h.write("home/.ai-zen/agents/default.json", agent+"\n")
			h.write("home/.ai-zen/agents/other.json", "{}")
			h.write("home/.ai-zen/tools/t.yaml", "function: {name: t, description: d}\ncommand: [true]\n") // not permitted
		})
		h.write("home/.ai-zen/agents/default.json", `{"permissions": {"tools": {"allow": ["ls"]}, "skills": {"allow": ["*"]}}}`)
		g.told(g.tools)
		if len(g.tools)+len(g.prompts)+len(g.resources) > 0 {
			t.Errorf("told for nothing: %d, %d, %d", len(g.tools), len(g.prompts), len(g.resources))
		}
	})
}

// TestBrokenFiles checks that a file which makes no sense counts as it was, that the
// log says where it is wrong, and that it counts again when it is mended.
func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	subAgent := func(description string) string {
		return `{"function": {"name": "sub", "description": "` + description + `", "parameters": {"type": "object"}}, "messages": [{"role": "user", "content": "x"}]}`
	}
	config := func(more string) string {
		return `{"endpoints": [{"id": "e", "baseUrl": "http://127.0.0.1:9/", "apiKey": "${NO_KEY:-sk}"}], "models": [{"id": "m", "endpointId": "e"}], "defaultModel": "m"` + more + `}`
	}
	files := map[string]struct{ good, bad, said, tool, shows, mended string }{
		"config.json": {config(""), config(`, "defaultModel": 5`), "config.json:1:", "sub", "before", ""},
		"agents/default.json": {`{"permissions": {"tools": {"deny": ["rm"]}, "skills": {"allow": ["*"]}, "mcps": {"allow": ["*"]}, "subagents": {"allow": ["*"]}}}`,
			`{"permissions": {"tools": {"deny": "rm"}}}`, "default.json:1:36: permissions.tools.deny: must be a list", "ls", "", ""},
		"mcp.json": {`{"mcpServers": {"m": {"command": "c", "description": "before"}}}`, `{"mcpServers": {"m": {"args": ["--pin", "half-a-sec`, "mcp.json:1:41",
			"load_mcp", "before", `{"mcpServers": {"m": {"command": "c", "description": "mended"}}}`},
		"sub-agents/sub.json": {subAgent("before"), "{\n\"function\": 5}", "sub.json:2:13", "sub", "before", subAgent("mended")},
		"skills/s/SKILL.md": {"---\nname: s\ndescription: before\n---\n", "---\nname: s\n---\n", "SKILL.md", "load_skill", "before",
			"---\nname: s\ndescription: mended\n---\n"},
		"tools/t.json": {`{"function": {"name": "t", "description": "before"}, "command": ["true"]}`, `{"function": {"name": "t"`, "line 1",
			"t", "before", `{"function": {"name": "t", "description": "mended"}, "command": ["true"]}`},
	}
	for name, f := range files {
		h.write("home/.ai-zen/"+name, f.good)
	}
	g := h.guest("2025-11-25", false)
	h.await("the first look", func() bool { return h.logged(rereads) > 0 })
	for name, f := range files {
		if !g.shows(f.tool, f.shows) {
			t.Fatalf("%s is not seen", name)
		}
	}
	for name, f := range files {
		h.write("home/.ai-zen/"+name, f.bad)
	}
	for name, f := range files {
		h.await(fmt.Sprintf("that %s is said of %s", f.said, name), func() bool { return h.logged(f.said) > 0 })
	}
	for name, f := range files {
		if !g.shows(f.tool, f.shows) {
			t.Errorf("%s is broken, and %s is not what it was", name, f.tool)
		}
	}
	if g.shows("rm", "") || len(g.tools)+len(g.prompts) > 0 {
		t.Error("a broken file changed what is published")
	}
	h.reread(func() { h.write("home/.ai-zen/agents/other.json", "{}") })
	if h.logged("half-a-sec") > 0 {
		t.Error("the log shows what somebody writes just now")
	}
	if n := h.logged("sub.json:2:13"); n != 1 {
		t.Errorf("a broken file is told of %d times", n)
	}
	for name, f := range files {
		if f.mended == "" {
			f.mended = f.good
		}
		h.write("home/.ai-zen/"+name, f.mended)
	}
	for name, f := range files {
		if f.mended != "" {
			h.await("that the mended "+name+" is seen", func() bool { return g.shows(f.tool, "mended") })
		}
	}
}

// TestAgentFileGoes checks that an agent whose file is gone stays, rather than
// becoming the built-in one, which permits everything.
func TestAgentFileGoes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("home/.ai-zen/agents/default.json", `{"permissions": {"tools": {"allow": ["ls"]}}}`)
	g := h.guest("2025-11-25", false)
	h.await("the first look", func() bool { return h.logged(rereads) > 0 })
	if err := os.Remove(h.path("home/.ai-zen/agents/default.json")); err != nil {
		t.Fatal(err)
	}
	h.await("that the log says so", func() bool { return h.logged("is gone") > 0 })
	if !g.shows("ls", "") || g.shows("exec", "") {
		t.Error("the agent is another one")
	}
	h.write("home/.ai-zen/agents/default.json", `{"permissions": {"tools": {"allow": ["ls", "exec"]}}}`)
	g.told(g.tools)
	if !g.shows("exec", "") {
		t.Error("the agent's new file is not seen")
	}
}

// TestCallsGoOn checks that a call which runs ends as it began, when its tool is not
// permitted any more.
func TestCallsGoOn(t *testing.T) {
	everywhere(t, func(t *testing.T, version string, overHTTP bool) {
		if runtime.GOOS == "windows" {
			t.Skip("the command is for a shell of Unix")
		}
		h := newHouse(t, "--unconfined-exec")
		g := h.guest(version, overHTTP)
		result := make(chan string, 1)
		go func() {
			result <- g.call("exec", fmt.Sprintf(`{"command":"touch began; while [ ! -e go-on ]; do sleep 0.01; done; echo went on", "timeout": 60000, "cwd": %q}`, h.path("project")))
		}()
		h.await("the call", func() bool {
			if len(result) > 0 {
				t.Fatal(<-result)
			}
			_, err := os.Stat(h.path("project/began"))
			return err == nil
		})
		h.write("home/.ai-zen/agents/default.json", `{"permissions": {"tools": {"deny": ["exec"]}}}`)
		g.told(g.tools)
		if got := g.call("exec", `{"command":"true","timeout":1000}`); !strings.Contains(got, `unknown tool "exec"`) {
			t.Errorf("the next call: %s", got)
		}
		h.write("project/go-on", "")
		if got := <-result; !strings.Contains(got, "went on") {
			t.Errorf("the call that ran: %s", got)
		}
	})
}

// TestChangedServer checks that a changed entry of mcp.json ends the connection, that
// the next call has another, and that other connections stay.
func TestChangedServer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the command is for a shell of Unix")
	}
	h := newHouse(t)
	entry := func(project string) string {
		return fmt.Sprintf(`{"command": "zen-mcp", "args": ["serve", "--project", %q]}`, h.path(project))
	}
	h.write("other/x", "")
	h.write("home/.ai-zen/mcp.json", `{"mcpServers": {"same": `+entry("project")+`, "inner": `+entry("project")+`, "gone": `+entry("project")+`}}`)
	g := h.guest("2025-11-25", false)
	pid := func(server string) string {
		t.Helper()
		got := g.call("call_mcp_tool", `{"server":"`+server+`","tool":"exec","arguments":{"command":"echo pid $PPID in $PWD","timeout":60000}}`)
		_, after, _ := strings.Cut(got, "pid ")
		id, _, ok := strings.Cut(after, " ")
		if !ok {
			t.Fatalf("%s: %s", server, got)
		}
		return id
	}
	before := map[string]string{}
	for _, server := range []string{"same", "inner", "gone"} {
		g.call("load_mcp", `{"server":"`+server+`","include_manifest":false}`)
		before[server] = pid(server)
	}
	h.write("home/.ai-zen/mcp.json", `{"mcpServers": {"same": `+entry("project")+`, "inner": `+entry("other")+`}}`)
	g.told(g.tools)
	for _, server := range []string{"inner", "gone"} {
		h.await("that "+server+" ends", func() bool { return exec.Command("kill", "-0", before[server]).Run() != nil })
	}
	if pid("same") != before["same"] {
		t.Error("a server whose entry is the same was started again")
	}
	if got := g.call("call_mcp_tool", `{"server":"inner","tool":"cwd"}`); !strings.Contains(got, h.path("other")) {
		t.Errorf("the changed server: %s", got)
	}
	if got := g.call("call_mcp_tool", `{"server":"gone","tool":"cwd"}`); !strings.Contains(got, `unknown MCP server "gone"`) {
		t.Errorf("the server that is gone: %s", got)
	}
}

// TestTrustWhileServing checks that trust counts when it is given, and until what is
// trusted changes.
func TestTrustWhileServing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	manifest := func(description string) string {
		return `{"function": {"name": "theirs", "description": "` + description + `"}, "command": ["true"]}`
	}
	h.write("project/.ai-zen/tools/t.json", manifest("one"))
	g := h.guest("2025-11-25", false)
	if g.shows("theirs", "") {
		t.Error("a tool of a project that is not trusted is there")
	}
	trust := func() {
		t.Helper()
		cmd := h.command()
		cmd.Args = []string{cmd.Args[0], "trust"}
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		g.told(g.tools)
	}
	trust()
	if !g.shows("theirs", "one") {
		t.Error("the tool of the trusted project is not there")
	}
	h.write("project/.ai-zen/tools/t.json", manifest("two"))
	g.told(g.tools)
	if g.shows("theirs", "") || h.logged("it has changed since you trusted it") == 0 {
		t.Error("a tool that has changed is trusted")
	}
	trust()
	if !g.shows("theirs", "two") {
		t.Error("the changed tool is not there when it is trusted again")
	}
}

// TestNoReload checks that with the flag files count as they were at the start.
func TestNoReload(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.skill("s", "before")
	h.args = []string{"--no-reload"}
	deaf := h.guest("2025-11-25", false)
	h.args = nil
	g := h.guest("2025-11-25", false)
	h.skill("s", "after")
	g.told(g.tools)
	if len(deaf.tools) > 0 || !deaf.shows("load_skill", "before") {
		t.Error("files are read again")
	}
}

// TestOneAgentChanges checks that only the clients of that agent are told.
func TestOneAgentChanges(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		h := newHouse(t, "--agent", "a", "--agent", "b")
		one, two := `{"permissions": {"tools": {"allow": ["ls"]}}}`, `{"permissions": {"tools": {"allow": ["ls", "glob"]}}}`
		h.write("home/.ai-zen/agents/a.json", one)
		h.write("home/.ai-zen/agents/b.json", one)
		at := h.serveHTTP()
		a, b := h.join(version, &mcp.StreamableClientTransport{Endpoint: at + "/a"}), h.join(version, &mcp.StreamableClientTransport{Endpoint: at + "/b"})
		h.write("home/.ai-zen/agents/b.json", two)
		b.told(b.tools)
		h.write("home/.ai-zen/agents/a.json", two)
		a.told(a.tools)
		if len(a.tools)+len(b.tools) > 0 || !a.shows("glob", "") || !b.shows("glob", "") {
			t.Errorf("%s: told once more than it should be, or of nothing", version)
		}
	}
}
