package core

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// outputLifetime is how long a file with a whole output is kept (decision 17).
const outputLifetime = 24 * time.Hour

// outputs is the folder with the whole outputs of one client. It is a root for
// that client: its file tools reach it however they are confined, and no other
// client's do.
type outputs struct {
	mu   sync.Mutex
	root *root // nil until the first file
}

// outputs of a sub-agent's run are its client's.
func (s *Scope) outputs() *outputs {
	s = s.Client()
	return Local(s, func() *outputs {
		o := &outputs{}
		s.OnClose(func() error {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.root == nil {
				return nil
			}
			return o.root.tree.Close()
		})
		return o
	})
}

var errNoState = errors.New("this server keeps no files")

// OutputFile makes a private file (0600, in a folder 0700 below the state
// directory) for an output that is over the budget. Its name ends with the one
// given. It is removed after a day.
func (s *Scope) OutputFile(name string) (*os.File, error) {
	if s.env.StateDir == "" {
		return nil, errNoState
	}
	s.env.sweepOutputs(time.Now())
	o := s.outputs()
	o.mu.Lock()
	defer o.mu.Unlock()
	dir, err := o.folder(s.env.outputDir())
	if err != nil {
		return nil, err
	}
	name = fmt.Sprintf("%s-%s-%s", time.Now().Format("150405"), rand.Text()[:6], name)
	return os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// folder is the client's own folder, made if need be: a sweep may have removed
// it.
func (o *outputs) folder(parent string) (string, error) {
	if o.root != nil {
		if _, err := os.Stat(o.root.dir); err == nil {
			return o.root.dir, nil
		}
		o.root.tree.Close()
		o.root = nil
	}
	dir := filepath.Join(parent, time.Now().Format("20060102-")+rand.Text()[:10])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	handle, err := os.OpenRoot(real)
	if err != nil {
		return "", err
	}
	o.root = &root{dir: dir, real: real, tree: handle}
	return dir, nil
}

// locate finds an absolute path in the folder.
func (o *outputs) locate(abs string) (*root, string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.root == nil || !inside(abs, o.root.dir) {
		return nil, "", false
	}
	return o.root, below(o.root.dir, abs), true
}

// KeepOutput writes an output that is over the budget to a file of
// [Scope.OutputFile] and returns its path.
func (s *Scope) KeepOutput(name string, data []byte) (path string, err error) {
	f, err := s.OutputFile(name)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func (e *Env) outputDir() string { return filepath.Join(e.StateDir, "outputs") }

// sweepOutputs removes what is older than a day, of this server and of others
// before it; at most once an hour. There is nothing to report: what cannot be
// removed now is tried again.
func (e *Env) sweepOutputs(now time.Time) {
	last := e.swept.Load()
	if now.Unix()-last < int64(time.Hour/time.Second) || !e.swept.CompareAndSwap(last, now.Unix()) {
		return
	}
	folders, err := os.ReadDir(e.outputDir())
	if err != nil {
		return
	}
	for _, folder := range folders {
		dir := filepath.Join(e.outputDir(), folder.Name())
		files, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, f := range files {
			removeOld(filepath.Join(dir, f.Name()), f, now)
		}
		removeOld(dir, folder, now) // fails unless it is empty
	}
}

func removeOld(path string, entry fs.DirEntry, now time.Time) {
	if info, err := entry.Info(); err == nil && now.Sub(info.ModTime()) > outputLifetime {
		os.Remove(path)
	}
}
