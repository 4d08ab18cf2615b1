package main

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"zen-mcp": main})
}

// TestScripts runs the program as a user would: in an empty home, with a bare
// environment.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("USERPROFILE", filepath.Join(e.WorkDir, "home"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"lines": lines, "listsize": listSize, "chat": chat},
	})
}

// lines FILE N checks that a file has N lines.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: lines file count")
	}
	text := ts.ReadFile(args[0])
	if got := strings.Count(text, "\n"); args[1] != strconv.Itoa(got) {
		ts.Fatalf("%s has %d lines, not %s:\n%s", args[0], got, args[1], text)
	}
}

// listsize FILE MAX checks what tools/list costs: its answer, the last line of
// the file, is paid on every request to a model (design: 8,000 bytes for the
// tools that need no configuration).
func listSize(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: listsize file max")
	}
	limit, err := strconv.Atoi(args[1])
	ts.Check(err)
	answers := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	var answer struct {
		Result struct{ Tools json.RawMessage }
	}
	ts.Check(json.Unmarshal([]byte(answers[len(answers)-1]), &answer))
	ts.Logf("tools/list: %d bytes", len(answer.Result.Tools))
	if size := len(answer.Result.Tools); size == 0 || size > limit {
		ts.Fatalf("tools/list has %d bytes, more than %d or none", size, limit)
	}
}
