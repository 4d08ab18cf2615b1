package builtin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A vectorEntry is a file, dir, symlink, hardlink or fifo.
type vectorEntry struct {
	Path, Type string
	Text       *string
	B64        []byte
	Repeat     *vectorRepeat
	Size       *int64 // with SHA256, the content of a long file
	SHA256     string
	Target     string
	Mode       string // octal; for files without it what the umask leaves of 0666
}

type vectorRepeat struct {
	Prefix, Text, Suffix string
	Count                int
}

func (e vectorEntry) make(t *testing.T, root string) {
	t.Helper()
	path := filepath.Join(root, e.Path)
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if err == nil {
		switch e.Type {
		case "dir":
			err = os.MkdirAll(path, 0o777)
		case "symlink":
			err = os.Symlink(e.Target, path)
		case "hardlink":
			err = os.Link(filepath.Join(root, e.Target), path)
		case "fifo":
			err = mkfifo(path)
		default:
			err = os.WriteFile(path, e.content(), 0o666)
		}
	}
	if err == nil && e.Mode != "" {
		err = os.Chmod(path, e.mode(t))
		t.Cleanup(func() { os.Chmod(path, 0o700) }) // so that it can be removed
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (e vectorEntry) mode(t *testing.T) fs.FileMode {
	n, err := strconv.ParseUint(e.Mode, 8, 32)
	if err != nil {
		t.Fatal(err)
	}
	return fs.FileMode(n)
}

func (e vectorEntry) content() []byte {
	switch {
	case e.Text != nil:
		return []byte(*e.Text)
	case e.Repeat != nil:
		return []byte(e.Repeat.Prefix + strings.Repeat(e.Repeat.Text, e.Repeat.Count) + e.Repeat.Suffix)
	}
	return e.B64
}

// A fileState is what is at one path.
type fileState struct {
	kind fs.FileMode // the type bits
	mode fs.FileMode
	data string // the content, or the target of a link
}

// snapshot reads everything below dir.
func snapshot(t *testing.T, dir string) map[string]fileState {
	t.Helper()
	all := map[string]fileState{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		s := fileState{kind: info.Mode().Type(), mode: info.Mode() &^ fs.ModeType}
		switch {
		case info.Mode().IsRegular():
			var data []byte
			data, err = os.ReadFile(path)
			s.data = string(data)
		case s.kind == fs.ModeSymlink:
			s.data, err = os.Readlink(path)
		}
		all[filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))] = s
		return err
	})
	if err != nil && !os.IsPermission(err) {
		t.Fatal(err)
	}
	return all
}

func (w *vectorWant) checkFS(before, after map[string]fileState, usual fs.FileMode) error {
	if w.FS == nil {
		return nil
	}
	if string(w.FS) == `"unchanged"` {
		if !maps.Equal(before, after) {
			return fmt.Errorf("the files changed: %.500s, before %.500s", describe(after), describe(before))
		}
		return nil
	}
	var entries []vectorEntry
	d := json.NewDecoder(bytes.NewReader(w.FS))
	d.DisallowUnknownFields()
	if err := d.Decode(&entries); err != nil {
		return fmt.Errorf("want.fs: %v", err)
	}
	left := maps.Clone(after)
	for _, e := range entries {
		got, ok := left[e.Path]
		if !ok {
			return fmt.Errorf("%s is missing; there is %.500s", e.Path, describe(after))
		}
		delete(left, e.Path)
		if err := e.compare(got, usual); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("there is also %.500s", describe(left))
	}
	return nil
}

func (e vectorEntry) compare(got fileState, usual fs.FileMode) error {
	kinds := map[string]fs.FileMode{"dir": fs.ModeDir, "symlink": fs.ModeSymlink, "fifo": fs.ModeNamedPipe}
	if got.kind != kinds[e.Type] {
		return fmt.Errorf("is %v, want a %s", got.kind, e.Type)
	}
	want := usual
	if e.Mode != "" {
		n, err := strconv.ParseUint(e.Mode, 8, 32)
		if err != nil {
			return err
		}
		want = fs.FileMode(n)
	}
	if (e.Type == "file" || e.Mode != "") && got.mode.Perm() != want && runtime.GOOS != "windows" {
		return fmt.Errorf("mode %v, want %v", got.mode.Perm(), want)
	}
	switch {
	case e.Type == "symlink" && got.data != e.Target:
		return fmt.Errorf("leads to %q, want %q", got.data, e.Target)
	case e.Type == "file" && e.Size != nil:
		if int64(len(got.data)) != *e.Size || sha(got.data) != e.SHA256 {
			return fmt.Errorf("%d bytes, %.80q; want other %d bytes", len(got.data), got.data, *e.Size)
		}
	case e.Type == "file" && got.data != string(e.content()):
		return fmt.Errorf("holds %.200q, want %.200q", got.data, e.content())
	}
	return nil
}

func describe(files map[string]fileState) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%s %v %.40q; ", path, files[path].kind|files[path].mode, files[path].data)
	}
	return b.String()
}

func sha[T string | []byte](data T) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}
