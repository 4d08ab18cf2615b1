package main

import (
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
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"lines": lines},
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
