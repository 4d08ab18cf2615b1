package builtin

import (
	"fmt"
	"testing"
)

// BenchmarkGrowth shows how glob and findText grow with the tree: the time for a
// file should not.
func BenchmarkGrowth(b *testing.B) {
	for _, files := range []int{2_000, 20_000, 200_000} {
		root := benchTree(b, files)
		perFile := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(files), "ns/file")
		}
		b.Run(fmt.Sprintf("%d/glob", files), func(b *testing.B) {
			benchGlob(b, root, "_needle.go", false)
			perFile(b)
		})
		fillTree(b, root, files<<10)
		b.Run(fmt.Sprintf("%d/findText", files), func(b *testing.B) {
			benchFindText(b, root, "text", "ZENITH_NEEDLE_7f3a")
			perFile(b)
		})
	}
}
