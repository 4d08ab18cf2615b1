package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"zenmcp/configs/clients"
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
			return setClaude(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"lines": lines, "listsize": listSize, "chat": chat, "startentry": startEntry, "sametools": sameTools, "private": private},
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
	var answer struct{ Result json.RawMessage }
	ts.Check(json.Unmarshal([]byte(answers[len(answers)-1]), &answer))
	ts.Logf("tools/list: %d bytes", len(answer.Result))
	if size := len(answer.Result); size == 0 || size > limit {
		ts.Fatalf("tools/list has %d bytes, more than %d or none", size, limit)
	}
}

// setClaude names Claude Desktop's file, which is elsewhere on each system.
func setClaude(e *testscript.Env) error {
	claude, err := clients.Lookup("claude-desktop")
	if err != nil {
		return err
	}
	f, err := claude.Read(clients.System{OS: runtime.GOOS, Home: e.Getenv("HOME"), Getenv: e.Getenv})
	e.Setenv("CLAUDE", f.Path)
	return err
}

// startEntry FILE NAME starts a server as a client would, by its entry in the
// client's file, in / and with nothing but HOME in the environment. It lists the
// server's tools on the standard output.
func startEntry(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: startentry file name")
	}
	var file struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &file))
	entry := file.MCPServers[args[1]]
	cmd := exec.Command(entry.Command, entry.Args...)
	cmd.Dir, cmd.Env = string(filepath.Separator), []string{"HOME=" + ts.Getenv("HOME"), "USERPROFILE=" + ts.Getenv("HOME"), "SystemRoot=" + os.Getenv("SystemRoot")}
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	ts.Check(cmd.Run())
}

// sameTools FILE FILE compares the tools of two answers of zen-mcp tools --json.
func sameTools(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: sametools file file")
	}
	var tools [2]struct{ Tools json.RawMessage }
	for i, file := range args {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &tools[i]))
	}
	if len(tools[0].Tools) < 1000 || !bytes.Equal(tools[0].Tools, tools[1].Tools) {
		ts.Fatalf("%s and %s have different tools, or none", args[0], args[1])
	}
}

// private FILE... checks that files and folders are their owner's alone.
func private(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || neg {
		ts.Fatalf("usage: private file...")
	}
	for _, file := range args {
		info, err := os.Stat(ts.MkAbs(file))
		ts.Check(err)
		if info.Mode().Perm()&0o077 != 0 {
			ts.Fatalf("%s has mode %v", file, info.Mode())
		}
	}
}
