package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"zenmcp/configs"
)

// An Installer changes the files of clients, and takes that back.
type Installer struct {
	System System
	State  string           // where backups go, and the record that undo needs
	Now    func() time.Time // nil means time.Now
}

// A record is what undo has to know of an entry.
type record struct {
	// Backup is the file as it was before the first change; "" if there was none.
	Backup string `json:"backup,omitempty"`
	// Wrote is the digest of the file as it was written last. While the file is
	// still the same, undo brings back the bytes of the backup.
	Wrote string `json:"wrote,omitempty"`
}

// records are kept by file and by the entry's name.
type records map[string]map[string]record

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Undo plans the file without the entry, or with the one that was there before
// zen-mcp replaced it. What others have changed since then stays.
func (i Installer) Undo(c Client, name string) (*Change, error) {
	all, err := i.records()
	if err != nil {
		return nil, err
	}
	at, _ := c.locate(i.System)
	known, recorded := all[at.file][name]
	var backup []byte
	if recorded && known.Backup != "" {
		switch backup, err = os.ReadFile(known.Backup); {
		case errors.Is(err, fs.ErrNotExist):
			recorded = false // what is ours can be found without it
		case err != nil:
			return nil, fmt.Errorf("the backup: %w", err)
		}
	}
	f, err := c.open(i.System)
	change := &Change{Client: c, File: f.File, Name: name, before: f.version, undo: true}
	if recorded && f.text != nil && digest(f.text) == known.Wrote {
		change.after.text = backup
		change.after.doc, _ = c.format.parse(at.file, change.after.plain()) // nil hides all of it
		return change, nil
	}
	if err != nil {
		return nil, err
	}
	entry, found := f.find(name)
	switch {
	case !found:
		change.after = f.version
		return change, nil
	case !entry.Ours():
		return nil, f.problem(c, name, fmt.Errorf("is not an entry of zen-mcp%s, and stays", runs(entry)))
	}
	if recorded {
		change.after, err = f.changed(c, name, takeBack(c, name, backup))
	} else {
		change.after, err = f.changed(c, name, func(d document) ([]byte, error) { return d.remove(c.section, name) })
	}
	return change, err
}

// takeBack puts the entry of the backup in the place of ours, or takes ours away,
// and the section with it if there was none and nothing else is in it.
func takeBack(c Client, name string, backup []byte) edit {
	return func(d document) ([]byte, error) {
		text := bytes.TrimPrefix(backup, bom)
		old, err := c.format.parse("", text)
		if err != nil {
			return d.remove(c.section, name)
		}
		if at, ok := old.span(c.section, name); ok {
			return d.set(fragment(text[at.start:at.end]), c.section, name)
		}
		_, had := lookup(old.value(), c.section)
		section, _ := lookup(d.value(), c.section)
		if servers, _ := section.(map[string]any); len(servers) == 1 && !had {
			return d.remove(c.section)
		}
		return d.remove(c.section, name)
	}
}

// Apply writes a change, and tells where the file as it was has been kept; "" if
// there was none. The file keeps its mode, and a link still leads to it.
func (i Installer) Apply(ctx context.Context, c *Change) (backup string, err error) {
	now, err := readFile(c.File.Path)
	switch {
	case err != nil:
		return "", &configs.Problem{File: c.File.Path, Err: err}
	case !bytes.Equal(now, c.before.text):
		return "", &configs.Problem{File: c.File.Path, Err: errors.New("has changed in the meantime; try again")}
	case i.State == "":
		return "", errors.New("there is no folder for a backup: the user has no home directory")
	}
	all, err := i.records()
	if err != nil {
		return "", err
	}
	if c.before.text != nil {
		if backup, err = i.keep(ctx, c); err != nil {
			return "", err
		}
	}
	if c.Removes() {
		err = os.Remove(c.File.Path)
	} else {
		err = configs.WriteFile(ctx, c.File.Path, c.after.text, true)
	}
	if err != nil {
		return "", &configs.Problem{File: c.File.Path, Err: bare(err)}
	}
	return backup, i.note(ctx, all, c, backup)
}

// keep copies the file to the backups, with its mode.
func (i Installer) keep(ctx context.Context, c *Change) (string, error) {
	info, err := os.Stat(c.File.Path)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o200 == 0 {
		return "", &configs.Problem{File: c.File.Path, Err: errors.New("is read-only; make it writable first, since something may keep it that way on purpose")}
	}
	clock := i.Now
	if clock == nil {
		clock = time.Now
	}
	name := filepath.Join(i.State, "backups", c.Client.Name, clock().UTC().Format("20060102-150405.000000")+"-"+filepath.Base(c.File.Path))
	if err := configs.WriteFile(ctx, name, c.before.text, false); err != nil {
		return "", fmt.Errorf("the backup: %w", err)
	}
	return name, os.Chmod(name, info.Mode().Perm())
}

// note updates the record of the entry.
func (i Installer) note(ctx context.Context, all records, c *Change, backup string) error {
	entries := all[c.File.Path]
	known, recorded := entries[c.Name]
	_, found := c.File.find(c.Name)
	switch {
	case c.undo:
		delete(entries, c.Name)
	case recorded && found && known.Wrote == digest(c.before.text):
		known.Wrote = digest(c.after.text)
		entries[c.Name] = known
	case recorded && found: // others have written since; the backup still has the entry of before
		entries[c.Name] = record{Backup: known.Backup}
	default:
		if entries == nil {
			entries = map[string]record{}
			all[c.File.Path] = entries
		}
		entries[c.Name] = record{Backup: backup, Wrote: digest(c.after.text)}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return configs.WriteFile(ctx, i.recordFile(), append(text, '\n'), true)
}

func (i Installer) recordFile() string { return filepath.Join(i.State, "clients.json") }

func (i Installer) records() (records, error) {
	all := records{}
	text, err := os.ReadFile(i.recordFile())
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	doc, err := configs.Parse(i.recordFile(), text)
	if err == nil {
		_, err = doc.Decode(&all)
	}
	return all, err
}
