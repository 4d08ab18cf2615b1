package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zenmcp/core"
)

// BenchmarkFiles are calls of the file tools, from their arguments to their results,
// in a temporary folder: put that ($TMPDIR) where a flush costs nothing to see what
// the tools themselves cost.
func BenchmarkFiles(b *testing.B) {
	lines := func(size int) string { return strings.Repeat("0123456789abcde\n", size/16) }
	edits := func(i int) string {
		return fmt.Sprintf(`{"path":"a","oldText":"value = %d;","newText":"value = %d;"}`, i, i+1)
	}
	content, err := json.Marshal(lines(200 << 10))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, tool, file string // file is the text of "a"
		args             func(i int) string
	}{
		{"readFile/1KB", "readFile", lines(1 << 10), func(int) string { return `{"path":"a"}` }},
		{"readFile/200KB", "readFile", lines(200 << 10), func(int) string { return `{"path":"a"}` }},
		{"writeFile/200KB", "writeFile", "", func(int) string { return `{"path":"a","force":true,"content":` + string(content) + `}` }},
		{"edit/8KB", "edit", lines(8<<10) + "value = 0;\n", edits},
		{"edit/200KB", "edit", lines(200<<10) + "value = 0;\n", edits},
		{"ls/100", "ls", "", func(int) string { return `{"path":"many"}` }},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			write(b, filepath.Join(dir, "a"), []byte(c.file))
			if err := os.Mkdir(filepath.Join(dir, "many"), 0o777); err != nil {
				b.Fatal(err)
			}
			for i := range 100 {
				write(b, filepath.Join(dir, "many", fmt.Sprintf("f%04d.txt", i)), nil)
			}
			benchmarkTool(b, dir, c.tool, c.args)
		})
	}
}

func benchmarkTool(b *testing.B, dir, name string, args func(i int) string) {
	tool, ok := newScope(b, core.Config{MaxToolOutput: new(1 << 20)}, dir).Tools().Tool(name)
	if !ok {
		b.Fatalf("no tool %s", name)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if res, err := tool.Run(b.Context(), &core.Call{Arguments: json.RawMessage(args(i))}); err != nil || res.IsError {
			b.Fatal(res, err)
		}
	}
}
