package mcps

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"zenmcp/core"
)

// Three hops: this package in the test, and two zen-mcp servers behind it, each
// of which serves nothing but call_mcp_tool.
func threeHops(t *testing.T) (h *harness, log string, wrap func(tool string, arguments any) json.RawMessage) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "zen-mcp")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", program, "zenmcp/cmd/zen-mcp").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	log = filepath.Join(dir, "log")
	serve := func(name string, server map[string]any) map[string]any {
		home := filepath.Join(dir, name)
		text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"next": server}})
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(home, "mcp.json"), string(text))
		writeFile(t, filepath.Join(home, "agents", "default.json"), `{"permissions":{"tools":{"allow":["call_mcp_tool"]},"mcps":{"allow":["*"]}}}`)
		return args{"command": program, "args": []string{"serve", "--home", home}, "protocol": "legacy"}
	}
	last := stubServer(t, "fix", args{"log": log, "protocol": "legacy"})
	h = newHarness(t, map[string]any{"next": serve("one", serve("two", last))})
	h.text(loadName, args{"server": "next"})
	return h, log, func(tool string, arguments any) json.RawMessage {
		call := args{"server": "next", "tool": tool, "arguments": arguments}
		for range 2 {
			call = args{"server": "next", "tool": callName, "arguments": call}
		}
		raw, err := json.Marshal(call)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
}

func TestThreeHops(t *testing.T) {
	t.Parallel()
	h, log, wrap := threeHops(t)
	call := func(ctx context.Context, c core.Call) (*core.Result, error) { return run(ctx, h.scope, callName, &c) }

	res, err := call(t.Context(), core.Call{Arguments: wrap("mix", nil)})
	if err != nil {
		t.Fatal(err)
	}
	if string(res.Whole) != mixResult {
		t.Errorf("got  %s\nwant %s", res.Whole, mixResult)
	}

	if res, err = call(t.Context(), core.Call{Arguments: wrap("fail", nil)}); err != nil || !strings.Contains(string(res.Whole), `"isError":true`) {
		t.Errorf("an error came as %v, %v", res, err)
	}
	if res, err = call(t.Context(), core.Call{Arguments: wrap("boom", nil)}); err != nil || !strings.Contains(string(res.Whole), "boom") || !strings.Contains(string(res.Whole), `"isError":true`) {
		t.Errorf("a protocol error came as %v, %v", res, err)
	}

	last := 0.0
	_, err = call(t.Context(), core.Call{Arguments: wrap("work", args{"ms": 0, "steps": 50}), Progress: func(p core.Progress) {
		if p.Done != last+1 {
			t.Errorf("progress %v after %v", p.Done, last)
		}
		last = p.Done
	}})
	if err != nil || last != 50 {
		t.Errorf("%v reports of progress, %v", last, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var since time.Time
	writeFile(t, log, "") // the stub appends
	go func() {
		waitFor(t, log, "call work")
		since = time.Now()
		cancel()
	}()
	if _, err := call(ctx, core.Call{Arguments: wrap("work", args{"ms": 20000})}); err == nil {
		t.Error("a cancelled call gave a result")
	}
	waitFor(t, log, "cancelled")
	if took := time.Since(since); took > 2*time.Second {
		t.Errorf("the far end heard of it after %v", took)
	}
}
