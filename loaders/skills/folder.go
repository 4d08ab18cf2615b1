package skills

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"zenmcp/configs"
	"zenmcp/core"
)

const (
	manifestName = "SKILL.md"

	// maxFile is how many bytes one file may have to be read.
	maxFile = 16 << 20
	// maxListed is how many files of one folder are looked at: a link can lead to
	// the whole disk.
	maxListed = 10_000

	// The limits of the skills extension for one skill (SEP-2640).
	maxFiles = 512
	maxBytes = 16 << 20
)

// A folder is the folder of one skill. It outlives reloads, and keeps what it
// knows about files that do not change.
//
// Nothing but what lies below it is read: os.Root follows no link that leads out
// of it. SKILL.md itself may be such a link, as some installers make it; it is
// read only as long as it is a SKILL.md.
type folder struct {
	id, dir string

	mu       sync.Mutex
	manifest read[*manifest]
	good     *manifest // the last one that could be understood; nil if there was none
	digests  map[string]read[digest]
}

// A read is what came of reading a file at some time.
type read[T any] struct {
	value T
	err   error
	info  fs.FileInfo
	at    time.Time
}

// racy is within what time after a change a file can change again and look the
// same: file systems exist that count in steps of two seconds.
const racy = 2 * time.Second

// isOf reports whether the file is still as it was read.
func (r *read[T]) isOf(info fs.FileInfo) bool {
	return r.info != nil && os.SameFile(r.info, info) && r.info.Size() == info.Size() &&
		r.info.ModTime().Equal(info.ModTime()) && r.at.Sub(info.ModTime()) > racy
}

// current returns what SKILL.md says now.
func (f *folder) current() (*manifest, error) {
	info, err := f.statManifest()
	f.mu.Lock()
	known := f.manifest
	if errors.Is(err, fs.ErrNotExist) {
		f.good = nil // what comes back is another one
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if known.isOf(info) {
		return known.value, known.err
	}
	_, m, err := f.readManifest()
	return m, err
}

func (f *folder) statManifest() (fs.FileInfo, error) {
	info, err := os.Stat(filepath.Join(f.dir, manifestName))
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file: %w", manifestName, fs.ErrNotExist)
	}
	return info, err
}

// readManifest reads SKILL.md and remembers what it says.
func (f *folder) readManifest() ([]byte, *manifest, error) {
	if _, err := f.statManifest(); err != nil {
		return nil, nil, err
	}
	at := time.Now()
	file, err := os.OpenFile(filepath.Join(f.dir, manifestName), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	data, info, err := readAll(file)
	if err != nil {
		return nil, nil, err
	}
	m, err := parseManifest(data, f.id)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.manifest = read[*manifest]{m, err, info, at}
	if err == nil {
		f.good = m
	}
	return data, m, err
}

// manifestText is SKILL.md whole. Of a skill that is offered it is shown also while
// it makes no sense, since somebody is writing in it; but then no link is followed
// out of the folder.
func (f *folder) manifestText() ([]byte, error) {
	data, _, err := f.readManifest()
	if err != nil && f.lastGood() != nil {
		if text, _, e := f.read(manifestName); e == nil {
			return text, nil
		}
	}
	return data, err
}

// lastGood is what SKILL.md said when it could be understood last; nil if it never
// could.
func (f *folder) lastGood() *manifest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.good
}

// readAll reads a regular file whole and closes it.
func readAll(file *os.File) ([]byte, fs.FileInfo, error) {
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fs.ErrNotExist
	case info.Size() > maxFile:
		return nil, nil, fmt.Errorf("has %d bytes; at most %d can be read at once", info.Size(), maxFile)
	}
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	_, err = data.ReadFrom(io.LimitReader(file, maxFile))
	return data.Bytes(), info, err
}

// Text is what load_skill answers: where the skill is, which files it has, and
// its SKILL.md whole.
func (f *folder) Text(ctx context.Context) (string, error) {
	return core.Within(ctx, f.dir, func() (string, error) { return f.text(ctx) })
}

func (f *folder) text(ctx context.Context) (string, error) {
	data, err := f.manifestText()
	if err != nil {
		return "", f.explain(err)
	}
	files, err := f.list(ctx)
	if err != nil {
		return "", f.explain(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The skill %q is in %s, with %s:\n", f.id, f.dir, core.Plural(len(files), "file"))
	for _, file := range files[:min(len(files), maxShown)] {
		b.WriteString(file.Path + "\n")
	}
	if more := len(files) - maxShown; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	b.WriteString("\n")
	b.WriteString(strings.ToValidUTF8(strings.TrimPrefix(string(data), "\uFEFF"), "\uFFFD"))
	return b.String(), nil
}

// maxShown is how many files Text names.
const maxShown = 200

// explain says of which skill an error is, in words that fit what a model asked.
func (f *folder) explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the skill %q is no longer in %s: %w", f.id, f.dir, fs.ErrNotExist)
	}
	return fmt.Errorf("the skill %q cannot be read: %w", f.id, err)
}

func (f *folder) List(ctx context.Context) ([]core.SkillFile, error) {
	return core.Within(ctx, f.dir, func() ([]core.SkillFile, error) { return f.list(ctx) })
}

func (f *folder) list(ctx context.Context) ([]core.SkillFile, error) {
	found, err := f.walk(ctx)
	if err != nil {
		return nil, err
	}
	files := make([]core.SkillFile, len(found))
	for i, x := range found {
		files[i] = core.SkillFile{Path: x.path, Size: x.info.Size(), Modified: x.info.ModTime()}
	}
	return files, nil
}

// A foundFile is a file that a walk found.
type foundFile struct {
	path string
	info fs.FileInfo
}

// walk finds the files of the skill, sorted by path. SKILL.md is always one.
func (f *folder) walk(ctx context.Context) ([]foundFile, error) {
	info, err := f.statManifest()
	if err != nil {
		return nil, err
	}
	found := []foundFile{{manifestName, info}}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case path == "." || path == manifestName:
			return err
		case configs.IsJunk(e.Name()) || !utf8.ValidString(path):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case err != nil || e.IsDir():
			return nil // one folder that cannot be read does not hide the others
		case len(found) == maxListed:
			return fs.SkipAll
		}
		info, err := root.Stat(filepath.FromSlash(path))
		if err == nil && info.Mode().IsRegular() {
			found = append(found, foundFile{path, info})
		}
		return nil
	})
	slices.SortFunc(found, func(a, b foundFile) int { return strings.Compare(a.path, b.path) })
	return found, err
}

func (f *folder) Read(ctx context.Context, path string) ([]byte, error) {
	return core.Within(ctx, f.dir, func() ([]byte, error) {
		if path == manifestName {
			return f.manifestText()
		}
		data, _, err := f.read(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%q of the skill %q: %w", path, f.id, err)
		}
		return data, err
	})
}

// read reads a file that List gives.
func (f *folder) read(path string) ([]byte, fs.FileInfo, error) {
	parts := strings.Split(path, "/")
	if !fs.ValidPath(path) || !filepath.IsLocal(filepath.FromSlash(path)) || slices.ContainsFunc(parts, configs.IsJunk) {
		return nil, nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, nil, fs.ErrNotExist
	}
	defer root.Close()
	for i := range parts[1:] { // links to folders are not part of the skill
		info, err := root.Lstat(filepath.Join(parts[:i+1]...))
		if err != nil || !info.IsDir() {
			return nil, nil, fs.ErrNotExist
		}
	}
	name := filepath.FromSlash(path)
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil, nil, fs.ErrNotExist
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	return readAll(file)
}

func (f *folder) Describe(ctx context.Context) (core.SkillManifest, error) {
	return core.Within(ctx, f.dir, func() (core.SkillManifest, error) { return f.describe(ctx) })
}

func (f *folder) describe(ctx context.Context) (core.SkillManifest, error) {
	m, err := f.current()
	if err == nil {
		err = m.unlisted
	}
	if err != nil {
		return core.SkillManifest{}, err
	}
	found, err := f.walk(ctx)
	switch {
	case err != nil:
		return core.SkillManifest{}, err
	case len(found) > maxFiles:
		return core.SkillManifest{}, fmt.Errorf("it has %d files; hosts take at most %d", len(found), maxFiles)
	}
	out := core.SkillManifest{Frontmatter: m.frontmatter}
	total := int64(0)
	for _, x := range found {
		if total += x.info.Size(); total > maxBytes {
			return core.SkillManifest{}, fmt.Errorf("its files have more than %d bytes, which is the most that hosts take", maxBytes)
		}
		d := m.digest
		if x.path != manifestName {
			if d, err = f.digest(x); err != nil {
				return core.SkillManifest{}, err
			}
		}
		out.Files = append(out.Files, core.SkillFile{Path: x.path, Size: d.size, Modified: x.info.ModTime(), Digest: d.hash})
	}
	return out, nil
}

// A digest is the hash of a file's bytes, and how many there were.
type digest struct {
	hash string
	size int64
}

func digestOf(data []byte) digest {
	sum := sha256.Sum256(data)
	return digest{"sha256:" + hex.EncodeToString(sum[:]), int64(len(data))}
}

// digest hashes a file, unless it is as it was.
func (f *folder) digest(x foundFile) (digest, error) {
	f.mu.Lock()
	known := f.digests[x.path]
	f.mu.Unlock()
	if known.isOf(x.info) {
		return known.value, nil
	}
	at := time.Now()
	data, info, err := f.read(x.path)
	if err != nil {
		return digest{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.digests == nil {
		f.digests = map[string]read[digest]{}
	}
	f.digests[x.path] = read[digest]{value: digestOf(data), info: info, at: at}
	return f.digests[x.path].value, nil
}
