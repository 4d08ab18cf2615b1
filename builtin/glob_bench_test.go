package builtin

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"zenmcp/core"
)

// benchTree makes a tree of empty files as source trees are: deep, half of it in
// node_modules, with hidden folders. One file in 400 is called *_needle.go.
func benchTree(b *testing.B, files int) string {
	b.Helper()
	root := b.TempDir()
	mkdir := func(dir string) {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			b.Fatal(err)
		}
	}
	for n := 0; n < files; {
		i := n / 20
		dir := fmt.Sprintf("src/a%d/b%d/c%d/d%d", i%7, i%31, i%61, i)
		switch {
		case i%2 == 0:
			dir = fmt.Sprintf("node_modules/pkg%d/lib/x%d", i%300, i)
		case i%33 == 1:
			dir = fmt.Sprintf(".cache/%d/%d", i%30, i)
		}
		dir = filepath.Join(root, dir)
		mkdir(dir)
		for j := 0; j < 20 && n < files; j++ {
			name := fmt.Sprintf("file%d.%s", n, []string{"go", "js", "ts", "md"}[j%4])
			if n%400 == 25 {
				name = fmt.Sprintf("file%d_needle.go", n)
			}
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	return root
}

// BenchmarkGlob puts the tool beside filepath.WalkDir, which matches the same
// ends of names on one thread and sorts nothing. The aim is 0.6 of its time
// on two processors.
func BenchmarkGlob(b *testing.B) {
	trees := []struct{ name, root, narrow, wide string }{
		{"20000files", benchTree(b, 20_000), "_needle.go", ".js"},
		{"gosrc", goSource(b), "_windows.go", ".go"},
	}
	for _, tree := range trees {
		for _, end := range []string{tree.narrow, tree.wide} {
			b.Run(tree.name+"/"+end+"/walkdir", func(b *testing.B) {
				for b.Loop() {
					found := 0
					err := filepath.WalkDir(tree.root, func(path string, _ fs.DirEntry, err error) error {
						if strings.HasSuffix(path, end) {
							found++
						}
						return err
					})
					if err != nil || found == 0 {
						b.Fatal(found, err)
					}
				}
			})
			b.Run(tree.name+"/"+end+"/glob", func(b *testing.B) { benchGlob(b, tree.root, end, false) })
			b.Run(tree.name+"/"+end+"/confined", func(b *testing.B) { benchGlob(b, tree.root, end, true) })
		}
	}
}

func benchGlob(b *testing.B, root, end string, confined bool) {
	whole := 100 << 20 // the budget of results is not measured here
	var roots []string
	if confined {
		roots = []string{root}
	}
	scope := newScope(b, core.Config{MaxToolOutput: &whole}, root, roots...)
	args := fmt.Appendf(nil, `{"pattern":%q,"exclude":[]}`, "**/*"+end)
	b.ReportAllocs()
	for b.Loop() {
		if answer, failed := callTool(b, b.Context(), scope, "glob", args); failed || !strings.Contains(answer, end) {
			b.Fatalf("%.200s", answer)
		}
	}
}

// goSource is the source of Go's own library, a real tree of 11,000 files.
func goSource(b *testing.B) string {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "src")
}
