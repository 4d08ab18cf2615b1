//go:build unix

package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zenmcp/core"
)

// When a write fails half-way, as on a full disk, the old file stays whole and
// nothing is left beside it. The test runs itself in a process that may not make
// files larger than 4 KB, which needs no privileges and no file system.
func TestFullDisk(t *testing.T) {
	const inner = "ZEN_MCP_TEST_FULL_DISK"
	if os.Getenv(inner) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
		cmd.Env = append(os.Environ(), inner+"="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	dir := os.Getenv(inner)
	write(t, filepath.Join(dir, "a"), []byte("old text\n"))
	write(t, filepath.Join(dir, "b"), []byte("old text\n"))
	if err := os.Link(filepath.Join(dir, "b"), filepath.Join(dir, "c")); err != nil {
		t.Fatal(err)
	}
	limit := syscall.Rlimit{Cur: 4096, Max: 4096}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	scope := newScope(t, core.Config{}, dir)
	long, err := json.Marshal(strings.Repeat("0123456789", 1000))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range [][2]string{
		{"writeFile", `{"path":"a","content":%s}`},
		{"writeFile", `{"path":"b","content":%s}`},
		{"writeFile", `{"path":"new","content":%s}`},
		{"edit", `{"path":"a","oldText":"old","newText":%s}`},
		{"edit", `{"path":"c","oldText":"old","newText":%s}`},
		{"batchEdit", `{"path":"a","replacements":[{"oldText":"text","newText":"x"},{"oldText":"old","newText":%s}]}`},
	} {
		answer, failed := callTool(t, t.Context(), scope, call[0], fmt.Appendf(nil, call[1], long))
		if !failed || !strings.Contains(answer, `"`) {
			t.Errorf("%s: %.200q", call[0], answer)
		}
	}
	vectorUnchanged(t, before, snapshot(t, dir))
	if answer, failed := callTool(t, t.Context(), scope, "edit", json.RawMessage(`{"path":"a","oldText":"old","newText":"new"}`)); failed {
		t.Errorf("afterwards: %s", answer)
	}
}
