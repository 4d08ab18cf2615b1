package core

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkPath compares operations on a path, three folders down, with what the
// os package alone takes.
func BenchmarkPath(b *testing.B) {
	dir := realDir(b)
	name := filepath.Join("some", "folder", "deep", "file.txt")
	full := filepath.Join(dir, name)
	text := []byte(strings.Repeat("0123456789abcdef", 256)) // 4 KB
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(full, text, 0o666); err != nil {
		b.Fatal(err)
	}
	run := func(name string, op func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := op(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("Stat/os", func() error { _, err := os.Stat(full); return err })
	run("ReadFile/os", func() error { _, err := os.ReadFile(full); return err })
	run("WriteFile/os", func() error { return os.WriteFile(full, text, 0o666) })
	run("WriteFile/os with fsync and rename", func() error {
		f, err := os.CreateTemp(filepath.Dir(full), "x")
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.Write(text); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		return os.Rename(f.Name(), full)
	})
	for kind, roots := range map[string]*Roots{"free": nil, "confined": openRoots(b, dir)} {
		s, err := NewScope(&Env{}, AgentDefinition{}, dir, roots)
		if err != nil {
			b.Fatal(err)
		}
		p := mustPath(b, s, name)
		run("Stat/"+kind, func() error { _, err := p.Stat(b.Context()); return err })
		run("Lock/"+kind, func() error {
			unlock, err := p.Lock(b.Context())
			if err == nil {
				unlock()
			}
			return err
		})
		run("ReadFile/"+kind, func() error { _, _, err := p.ReadFile(b.Context()); return err })
		run("WriteFile/"+kind, func() error { _, _, err := p.WriteFile(b.Context(), text); return err })
	}
	run("within", func() error {
		_, err := within(b.Context(), Path{}, PathDeadline, func() (int, error) { return 0, nil })
		return err
	})
}
