package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"zenmcp/core"
)

// naiveExtent is the contract of a range, on a text that is in memory.
func naiveExtent(text string, n []int) string {
	all := []int{0, 0, -1, -1}
	copy(all, n)
	lines := strings.Split(text, "\n")
	line := func(i int) []rune { return []rune(lines[i]) }
	clamp := func(i, count int) int { return min(fromEnd(i, count), max(0, count-1)) }
	if all[0] >= len(lines) {
		return fmt.Sprintf("note: nothing to read: the file has %s, counted from 0", core.Plural(len(lines), "line"))
	}
	from, to := clamp(all[0], len(lines)), clamp(all[2], len(lines))
	if from > to {
		return ""
	}
	first, last := fromEnd(all[1], len(line(from))), clamp(all[3], len(line(to)))
	tail := line(to)[:min(last+1, len(line(to)))]
	if from == to {
		return string(tail[min(first, len(tail)):])
	}
	parts := slices.Clone(lines[from : to+1])
	parts[0] = string(line(from)[min(first, len(line(from))):])
	parts[len(parts)-1] = string(tail)
	return strings.Join(parts, "\n")
}

func TestRangeAgainstNaive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	scope := newScope(t, core.Config{}, dir)
	tool, _ := scope.Tools().Tool("readFile")
	for i, text := range []string{"", "\n", "ab", "ab\n", "é😀x\n\nzz\r\n", "a\nbc\n日本語"} {
		for _, utf16le := range []bool{false, true} {
			name, data, text := fmt.Sprint(i, utf16le), []byte(text), text
			if utf16le {
				text = "\uFEFF" + text
				data = nil
				for _, u := range utf16.Encode([]rune(text)) {
					data = append(data, byte(u), byte(u>>8))
				}
			}
			write(t, filepath.Join(dir, name), data)
			for n := range 5 * 5 * 5 * 5 {
				given := []int{n%5 - 2, n/5%5 - 2, n/25%5 - 2, n/125%5 - 2}
				res, err := tool.Run(t.Context(), &core.Call{Arguments: mustJSON(t, map[string]any{"path": name, "range": given})})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := res.Text(), naiveExtent(text, given); got != want {
					t.Fatalf("%q %v: %q, want %q", text, given, got, want)
				}
			}
		}
	}
}

// Three lines of a big file are three lines (decision 12). Not parallel, since
// it looks at the memory of the whole process.
func TestRangeIsStreamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "big")
	write(t, file, bytes.Repeat([]byte("0123456789\n"), 1000))
	if err := os.Truncate(file, 1<<28); err != nil { // sparse
		t.Fatal(err)
	}
	scope := newScope(t, core.Config{}, dir)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for args, want := range map[string]string{
		`{"path":"big","range":[1,0,3,-1]}`: "0123456789\n0123456789\n0123456789",
		`{"path":"big","range":[-1,0,0,0]}`: "",
	} {
		if got, failed := callTool(t, t.Context(), scope, "readFile", json.RawMessage(args)); failed || got != want {
			t.Errorf("%s: %.200q, want %q", args, got, want)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("reading took %d bytes of memory", used)
	}
}

// A range that gives too much says where to go on, and that leads to the end.
func TestRangeGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := strings.Repeat("0123456789é\n", 40_000) + strings.Repeat("x", 400_000)
	write(t, filepath.Join(dir, "a"), []byte(text))
	scope := newScope(t, core.Config{MaxToolOutput: new(1 << 20)}, dir)
	tool, _ := scope.Tools().Tool("readFile")
	var got strings.Builder
	for from, pages := []int{0, 0}, 0; ; pages++ {
		res, err := tool.Run(t.Context(), &core.Call{Arguments: mustJSON(t, map[string]any{"path": "a", "range": from})})
		if err != nil || pages > 10 {
			t.Fatalf("page %d: %v", pages, err)
		}
		got.WriteString(string(res.Blocks[0].(core.Text)))
		if len(res.Blocks) == 1 {
			break
		}
		note := string(res.Blocks[1].(core.Text))
		if _, err := fmt.Sscanf(note[strings.Index(note, "begins with"):], "begins with %d, %d", &from[0], &from[1]); err != nil {
			t.Fatalf("%q: %v", note, err)
		}
	}
	if got.String() != text {
		t.Errorf("the pages give %d bytes, want %d", got.Len(), len(text))
	}
}
