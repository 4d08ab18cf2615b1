//go:build unix

package mcps

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"zenmcp/core"
)

// C56: with the scope ends everything that the server has started, whether or
// not the server itself listens.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, options := range []string{"fork", "fork,stubborn"} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			log := t.TempDir() + "/log"
			h := newHarness(t, map[string]any{"fix": stubServer(t, options, args{"log": log})})
			scope, err := core.NewScope(h.env, core.AgentDefinition{Permissions: core.AllowAll()}, h.project, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := run(t.Context(), scope, loadName, &core.Call{Arguments: []byte(`{"server":"fix"}`)}); err != nil {
				t.Fatal(err)
			}
			var pid int
			_, line, _ := strings.Cut(readFile(t, log), "grandchild ")
			if _, err := fmt.Sscan(line, &pid); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := scope.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("it took %v", took)
			}
			if state := processState(pid); state != "" && state != "Z" {
				t.Errorf("the grandchild %d is in state %q", pid, state)
			}
		})
	}
}

// processState is the state of a process, "" if there is none.
func processState(pid int) string {
	if syscall.Kill(pid, 0) != nil {
		return ""
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if _, after, ok := strings.Cut(string(stat), ") "); err == nil && ok {
		return after[:1]
	}
	return "?"
}
