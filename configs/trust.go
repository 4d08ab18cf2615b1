package configs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// The bounds of what is trusted by its content: more takes too long to read at
// every start.
const (
	maxTrustedFiles = 5000
	maxTrustedBytes = 64 << 20
)

// A trustRecord is trust.json in the state directory: by the real path of a
// project what its places held when the user trusted them, as digests by the path
// below the project.
type trustRecord map[string]map[string]string

// Trusts reports why a place of the project must not be used as if it were the
// user's own; nil if it may. A project is trusted whole with --trust-project, or
// place by place as [Places.Trust] recorded them: what has changed since then, or
// is new, is not trusted.
func (p *Places) Trusts(place Place) error {
	if !place.Project || p.trusted {
		return nil
	}
	how := fmt.Sprintf("`zen-mcp trust %q` or --trust-project uses it", p.Project)
	record, err := p.readTrust()
	if err != nil {
		return err
	}
	known, ok := record[realPath(p.Project)][p.below(place)]
	if !ok {
		return errors.New("it is the project's and would run code; " + how)
	}
	now, err := p.digest(place.Path)
	switch {
	case err != nil:
		return err
	case now != known:
		return errors.New("it has changed since you trusted it; look at it, then " + how)
	}
	return nil
}

// Trust records what the project holds now as trusted, and returns the places. It
// replaces what was recorded of the project before.
func (p *Places) Trust(ctx context.Context) ([]Place, error) {
	digests := map[string]string{}
	var places []Place
	for _, kind := range slices.Sorted(maps.Keys(layout)) {
		if !layout[kind].runs && kind != KindAgent {
			continue
		}
		for _, place := range p.all(kind) {
			if _, err := os.Lstat(place.Path); err != nil || !place.Project {
				continue
			}
			digest, err := p.digest(place.Path)
			if err != nil {
				return nil, err
			}
			digests[p.below(place)] = digest
			places = append(places, place)
		}
	}
	return places, p.changeTrust(ctx, digests)
}

// Forget takes the trust in the project back.
func (p *Places) Forget(ctx context.Context) error { return p.changeTrust(ctx, nil) }

func (p *Places) changeTrust(ctx context.Context, digests map[string]string) error {
	record, err := p.readTrust()
	if err != nil {
		return err
	}
	if p.State == "" {
		return errors.New("there is no place to remember that: the user has no home directory; use --trust-project")
	}
	if len(digests) == 0 {
		delete(record, realPath(p.Project))
	} else {
		record[realPath(p.Project)] = digests
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(ctx, p.trustFile(), append(text, '\n'), true)
}

func (p *Places) trustFile() string { return filepath.Join(p.State, "trust.json") }

func (p *Places) readTrust() (trustRecord, error) {
	record := trustRecord{}
	if p.State == "" {
		return record, nil
	}
	doc, err := ReadFile(p.trustFile())
	if errors.Is(err, fs.ErrNotExist) {
		return record, nil
	}
	if err == nil {
		_, err = doc.Decode(&record)
	}
	return record, err
}

// below is the path of a place below the project, the same on every system.
func (p *Places) below(place Place) string {
	rel, err := filepath.Rel(p.Project, place.Path)
	if err != nil {
		return place.Path
	}
	return filepath.ToSlash(rel)
}

func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// digest is a digest of a place: of every file in a folder, or of a file and of
// the project's files that it names, such as the script that a server runs.
func (p *Places) digest(path string) (string, error) {
	d := digester{hash: sha256.New()}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = d.folder(realPath(path)) // a walk does not begin with a link
	} else if err == nil {
		if err = d.file("", path, info); err == nil {
			err = d.named(path, p.Project)
		}
	}
	if err != nil {
		return "", fmt.Errorf("%q cannot be trusted by its content: %w", path, bare(err))
	}
	return hex.EncodeToString(d.hash.Sum(nil)), nil
}

type digester struct {
	hash interface {
		io.Writer
		Sum([]byte) []byte
	}
	files int
	bytes int64
}

func (d *digester) folder(top string) error {
	return filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		info, err := os.Stat(path) // what a link leads to is what runs
		switch {
		case e.IsDir():
			return nil
		case err != nil:
			return fmt.Errorf("%q: %w", rel, bare(err))
		case info.IsDir():
			return fmt.Errorf("%q is a link to a folder; --trust-project does not look", rel)
		}
		return d.file(filepath.ToSlash(rel), path, info)
	})
}

func (d *digester) file(name, path string, info fs.FileInfo) error {
	d.files++
	d.bytes += info.Size()
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is not a regular file", path)
	case d.files > maxTrustedFiles || d.bytes > maxTrustedBytes:
		return fmt.Errorf("there are more than %d files or %d MB; --trust-project does not look", maxTrustedFiles, maxTrustedBytes>>20)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(d.hash, "%q %v %d\n", name, info.Mode()&0o111 != 0, info.Size())
	n, err := io.Copy(d.hash, io.LimitReader(f, info.Size()+1))
	if err == nil && n != info.Size() {
		return fmt.Errorf("%q changes just now; try again", path)
	}
	return err
}

// named adds the files of the project that the texts of a JSON file name.
func (d *digester) named(file, project string) error {
	for _, name := range namedFiles(file, project) {
		path := filepath.Join(project, name)
		info, err := os.Stat(path)
		if err == nil {
			err = d.file(name, path, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// namedFiles lists the files of the project that the texts of a JSON file name. A
// file that cannot be read names none, and runs nothing.
func namedFiles(file, project string) []string {
	doc, err := ReadFile(file)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(texts(doc), func(text string) bool {
		info, err := os.Stat(filepath.Join(project, text))
		return !filepath.IsLocal(text) || err != nil || !info.Mode().IsRegular()
	})
}

// texts lists all texts in a document.
func texts(doc *Document) []string {
	switch doc.Kind() {
	case rawjson.String:
		var text string
		if json.Unmarshal(doc.JSON(), &text) == nil {
			return []string{text}
		}
	case rawjson.Array:
		var all []string
		for _, e := range doc.Elements() {
			all = append(all, texts(e)...)
		}
		return all
	case rawjson.Object:
		var all []string
		for _, m := range doc.Members() {
			all = append(all, texts(m.Value)...)
		}
		return all
	}
	return nil
}

// limit takes from an agent of a project that is not trusted what the user's own
// agent may not do: a definition that came with somebody's files must not widen
// what the user allows. The user's own is the one with the same id, else the
// user's default agent.
func (p *Places) limit(a *Agent, place Place) error {
	untrusted := p.Trusts(place)
	if untrusted == nil {
		return nil
	}
	own, err := p.ownAgent(a.ID)
	if err != nil {
		return err
	}
	limited := a.AgentDefinition
	limited.Permissions = a.Permissions.Intersect(own.Permissions)
	if len(own.Roots) > 0 {
		limited.Roots = own.Roots
	}
	if samePermissions(limited.Permissions, a.Permissions) && slices.Equal(limited.Roots, a.Roots) {
		return nil
	}
	a.AgentDefinition = limited
	a.Warnings = append(a.Warnings, &Problem{File: a.File, Err: Limited.Of(fmt.Errorf(
		"comes with the project, so it may do no more than your own agent %q; `zen-mcp trust %q` or --trust-project lifts that", own.ID, p.Project))})
	return nil
}

func samePermissions(a, b core.Permissions) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// ownAgent is the user's agent of that id, else the user's default agent.
func (p *Places) ownAgent(id string) (Agent, error) {
	config, _, err := p.Config()
	if err != nil {
		return Agent{}, err
	}
	for _, id := range []string{id, ChooseAgent("", config), DefaultAgent} {
		for _, place := range p.all(KindAgent) {
			if place.Project {
				continue
			}
			a, err := readAgent(filepath.Join(place.Path, id+agentSuffix), false)
			if !errors.Is(err, fs.ErrNotExist) {
				return a, err
			}
		}
		if id == DefaultAgent {
			break
		}
	}
	return builtinAgent()
}
