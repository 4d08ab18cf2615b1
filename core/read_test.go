package core

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestReading(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("0123456789"), 0o666); err != nil {
		t.Fatal(err)
	}
	scope, err := NewScope(&Env{}, AgentDefinition{}, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	path, err := scope.Path("a")
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]string{0: "", 4: "0123", 10: "0123456789", 11: "0123456789"} {
		data, info, err := path.ReadHead(t.Context(), limit)
		if err != nil || string(data) != want || info.Size() != 10 {
			t.Errorf("ReadHead(%d) = %q, %v", limit, data, err)
		}
	}

	f, _, err := path.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if data, err := io.ReadAll(path.Reader(t.Context(), f)); err != nil || string(data) != "0123456789" {
		t.Errorf("Reader gave %q, %v", data, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller is gone")
	cancel(gone)
	if _, err := path.Reader(ctx, f).Read(make([]byte, 4)); err != nil && !errors.Is(err, gone) {
		t.Errorf("after the end: %v", err)
	}

	real, err := path.Real(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := real.Real(t.Context()); err != nil || again != real {
		t.Errorf("Real(Real) = %v, %v", again, err)
	}
	if child := real.Parent().Join("a"); child.real {
		t.Error("a joined name may be a link, so it is not real")
	}
}
