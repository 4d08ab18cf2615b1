package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"zenmcp/core"
	"zenmcp/core/proc"
)

// CommandReach says in one line how far the commands of exec and exec_async reach
// in a scope. The error says why the two are not offered there.
func CommandReach(scope *core.Scope) (string, error) {
	switch {
	case len(scope.Roots()) == 0:
		return "commands reach everything", nil
	case scope.Commands().Unconfined:
		return "commands reach everything, since --unconfined-exec says so", nil
	}
	if err := proc.CanConfine(); err != nil {
		return "", fmt.Errorf("%w; --unconfined-exec offers exec and exec_async all the same", err)
	}
	return "commands write in the roots and in a private folder, and read these and what programs need", nil
}

// usableCommands leaves the tools out that would undo the roots.
func usableCommands(scope *core.Scope) error {
	_, err := CommandReach(scope)
	return err
}

// confine limits a command as the scope's file tools are limited. A confined
// command has a home and a folder for temporary files of its own, where programs
// may keep their caches: they fail where they find a home that they cannot read.
func confine(scope *core.Scope, c proc.Command) (*proc.Process, error) {
	set := processes(scope)
	if len(scope.Roots()) == 0 || scope.Commands().Unconfined {
		return set.Start(c)
	}
	if err := usableCommands(scope); err != nil {
		return nil, err
	}
	private, err := privateFolder(scope)
	if err != nil {
		return nil, err
	}
	folders, err := scope.OpenRoots()
	if err != nil {
		return nil, err
	}
	own, err := os.Open(private)
	if err != nil {
		return nil, err
	}
	folders = append(folders, own)
	defer func() {
		for _, f := range folders {
			f.Close()
		}
	}()
	c.Confine = &proc.Confinement{Write: folders, Read: slices.Concat(proc.ProgramPaths(), scope.Commands().Read)}
	c.Env = append(c.Env, "TMPDIR="+filepath.Join(private, "tmp"))
	if home, err := os.UserHomeDir(); err == nil {
		if _, err = scope.Path(home); err == nil { // the roots hold it
			return set.Start(c)
		}
	}
	home := filepath.Join(private, "home")
	c.Env = append(c.Env, "HOME="+home, "XDG_CONFIG_HOME="+home+"/.config", "XDG_CACHE_HOME="+home+"/.cache",
		"XDG_DATA_HOME="+home+"/.local/share", "XDG_STATE_HOME="+home+"/.local/state")
	return set.Start(c)
}

// A private folder is for the commands of one client. It goes with the client.
type private struct {
	mu  sync.Mutex
	dir string
}

func privateFolder(scope *core.Scope) (string, error) {
	client := scope.Client()
	p := core.Local(client, func() *private {
		p := &private{}
		client.OnClose(p.remove)
		return p
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir != "" {
		return p.dir, nil
	}
	dir, err := os.MkdirTemp("", "zen-mcp-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	for _, name := range []string{"home", "tmp"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	if err != nil {
		return "", fmt.Errorf("a private folder for commands: %w", err)
	}
	p.dir = dir
	return dir, nil
}

// remove removes the folder. Programs leave folders in it that cannot be written.
func (p *private) remove() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		return nil
	}
	err := os.RemoveAll(p.dir)
	if errors.Is(err, fs.ErrPermission) {
		root, e := os.OpenRoot(p.dir)
		if e != nil {
			return e
		}
		defer root.Close()
		err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				return root.Chmod(name, 0o700)
			}
			return err
		})
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	return err
}
