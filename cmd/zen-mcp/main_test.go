package main

import (
	"io"
	"strings"
	"testing"
)

// TestExitCodes: 0 for success and help, 1 for what went wrong, 2 for wrong use.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for args, want := range map[string]int{
		"":                                  0,
		"help":                              0,
		"--help":                            0,
		"version":                           0,
		"--version":                         0,
		"tools --help":                      0,
		"tools":                             0,
		"call cwd":                          0,
		`call readFile {"path":"missing"}`:  1,
		`call sleep {"ms":-1}`:              1,
		"call readFile not-json":            1,
		"tools --agent nobody":              1,
		"tools --log-file /nowhere/x/y.log": 1,
		"sreve":                             2,
		"tools --agnet x":                   2,
		"tools extra":                       2,
		"call":                              2,
		"call nope":                         2,
		"tools --cwd /nowhere":              2,
		"tools --root /nowhere":             2,
		"tools --log-level loud":            2,
		"tools --deny tool:x":               2,
		"serve --http 127.0.0.1:0":          2, // without a root
		"serve extra":                       2,
	} {
		fields := strings.Fields(args)
		if len(fields) > 0 && (fields[0] == "tools" || fields[0] == "call") {
			fields = append(fields, "--home", dir, "--project", dir)
		}
		if got := run(t.Context(), fields, streams{strings.NewReader(""), io.Discard, io.Discard}); got != want {
			t.Errorf("zen-mcp %s: exit %d, want %d", args, got, want)
		}
	}
}
