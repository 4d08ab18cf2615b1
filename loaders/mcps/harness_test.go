package mcps

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/coretest"
	"zenmcp/core/wire"
)

// A harness is a client with a configuration of its own.
type harness struct {
	t       testing.TB
	scope   *core.Scope
	env     *core.Env
	source  *Source
	project string
	file    string // mcp.json
	log     *coretest.Buffer
}

// newHarness makes a client of the servers in an mcp.json.
func newHarness(t testing.TB, mcpServers map[string]any) *harness {
	t.Helper()
	return newHarnessFor(t, core.AgentDefinition{ID: "a", Permissions: core.AllowAll()}, mcpServers)
}

func newHarnessFor(t testing.TB, agent core.AgentDefinition, mcpServers map[string]any) *harness {
	t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": mcpServers})
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	h := &harness{t: t, project: t.TempDir(), file: filepath.Join(home, "mcp.json"), log: &coretest.Buffer{}}
	writeFile(t, h.file, string(text))
	h.source = New(Options{Places: places(t, home, h.project), Version: "1.2.3"})
	h.env = &core.Env{Log: slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	h.reload()
	h.scope = h.newScope(agent)
	return h
}

func (h *harness) reload() {
	h.t.Helper()
	h.configure(core.Config{})
}

func (h *harness) configure(config core.Config) {
	h.t.Helper()
	catalog, err := core.Discover(h.t.Context(), h.source)
	if err != nil {
		h.t.Fatal(err)
	}
	h.env.Update(config, catalog)
}

func (h *harness) newScope(agent core.AgentDefinition) *core.Scope {
	h.t.Helper()
	scope, err := core.NewScope(h.env, agent, h.project, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := scope.Close(); err != nil {
			h.t.Error(err)
		}
	})
	return scope
}

func places(t testing.TB, home, project string) *configs.Places {
	t.Helper()
	p, err := configs.Find(configs.Options{Home: home, Project: project, UserHome: t.TempDir(), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run calls a tool in a scope. One that parks is run as a server on stdio does.
func run(ctx context.Context, scope *core.Scope, tool string, call *core.Call) (res *core.Result, err error) {
	published := scope.Tools()
	t, ok := published.Tool(tool)
	if !ok {
		return nil, published.UnknownTool(tool)
	}
	if t.Pace != core.PaceParks {
		return t.Run(ctx, call)
	}
	done := make(chan struct{})
	core.NewHost(nil).Run(ctx, t.Pace, func(ctx context.Context) {
		defer close(done)
		res, err = t.Run(ctx, call)
	})
	<-done
	return res, err
}

// try calls a tool of the harness's own client.
func (h *harness) try(tool string, args any) (*core.Result, error) {
	h.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		h.t.Fatal(err)
	}
	return run(h.t.Context(), h.scope, tool, &core.Call{Arguments: raw})
}

// text is what a call gives, which must not fail: the whole result of a foreign
// tool, or the text.
func (h *harness) text(tool string, args any) string {
	h.t.Helper()
	res, err := h.try(tool, args)
	if err != nil {
		h.t.Fatalf("%s: %v\n%s", tool, err, h.log)
	}
	if res.Whole != nil {
		return string(res.Whole)
	}
	return res.Text()
}

// fails calls a tool that must fail, and returns the words.
func (h *harness) fails(tool string, args any, words ...string) string {
	h.t.Helper()
	res, err := h.try(tool, args)
	if err == nil {
		h.t.Fatalf("%s did not fail: %+v", tool, res)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			h.t.Errorf("%s: the error %q does not say %q", tool, err, w)
		}
	}
	return err.Error()
}

type args map[string]any

// stubServer is an entry of mcp.json that starts this binary as a stub.
func stubServer(t testing.TB, options string, more ...args) map[string]any {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]any{stubEnv: options}
	entry := map[string]any{"command": self, "env": env}
	for _, m := range more {
		for k, v := range m {
			if k == "log" {
				env[logEnv] = v
			} else {
				entry[k] = v
			}
		}
	}
	return entry
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// waitFor waits until a stub has written a line that begins so.
func waitFor(t testing.TB, log, line string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !strings.Contains("\n"+readFile(t, log), "\n"+line) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Errorf("the log does not get a line %q:\n%s", line, readFile(t, log))
			return
		}
	}
}

// A direct client of a stdio server writes and reads frames, so it sees what the
// server sends and nothing else.
type direct struct {
	t    testing.TB
	conn *wire.Conn
	next int64
}

func newDirect(t testing.TB, command []string, env ...string) *direct {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	transport := wire.Transport{In: out, Out: in, Peer: true}
	d := &direct{t: t, conn: transport.Open()}
	t.Cleanup(func() {
		d.conn.Close()
		cmd.Process.Kill() // servers exist that do not leave by themselves
		cmd.Wait()
	})
	d.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"d","version":"1"}}`)
	if err := d.conn.Write(t.Context(), &jsonrpc.Request{Method: "notifications/initialized"}); err != nil {
		t.Fatal(err)
	}
	return d
}

// call gives the result of a request, or its error as JSON.
func (d *direct) call(method, params string) string {
	d.t.Helper()
	d.next++
	if err := d.conn.Write(context.Background(), &jsonrpc.Request{ID: requestID(d.next), Method: method, Params: json.RawMessage(params)}); err != nil {
		d.t.Fatal(err)
	}
	for {
		msg, err := d.conn.Read(context.Background())
		if err != nil {
			d.t.Fatal(err)
		}
		if answer, ok := msg.(*jsonrpc.Response); ok {
			if answer.Error != nil {
				return answer.Error.Error()
			}
			return string(answer.Result)
		}
	}
}
