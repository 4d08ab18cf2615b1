package usertools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/proc"
)

const (
	// loadLimit is how long a module may take to say what it is.
	loadLimit = 10 * time.Second
	// loadsAtOnce is how many of them run at the same time.
	loadsAtOnce = 8
)

// A declaration is what a module says about its tool.
type declaration struct {
	Function *core.FunctionSpec `json:"function"`
	Timeout  int64              `json:"timeout,omitempty"` // milliseconds
	Hints    *hints             `json:"hints,omitempty"`
}

// modules makes tools of the modules of one folder, or says why not.
func (s *Source) modules(ctx context.Context, place configs.Place, files []string) ([]tool, []error) {
	if len(files) == 0 {
		return nil, nil
	}
	version := folderDigest(place.Path, files)
	declared, errs := s.declarations(ctx, place.Path, files, version)
	tools := make([]tool, len(files))
	for i, file := range files {
		if errs[i] == nil {
			tools[i], errs[i] = s.module(file, version, place, declared[i])
		}
	}
	return tools, errs
}

func (s *Source) module(file, version string, place configs.Place, text *string) (tool, error) {
	if text == nil {
		return tool{}, errNoTool
	}
	doc, err := configs.Parse(file, []byte(*text))
	if err != nil {
		return tool{}, err
	}
	var d declaration
	if _, err = doc.Decode(&d); err == nil && (d.Function == nil || d.Function.Name == "") {
		err = core.InField("function", core.InField("name", errors.New("is missing or empty")))
	}
	if err != nil {
		return tool{}, moduleError(err)
	}
	stem := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	limit := timeout(d.Timeout)
	return s.define(file, stem, place, *d.Function, d.Hints, func(ctx context.Context, call *core.Call, args json.RawMessage) (*core.Result, error) {
		return callModule(ctx, call, d.Function.Name, moduleFile{file, version}, limit, args)
	})
}

// moduleError is an error in what a module declares, which has no lines.
func moduleError(err error) error {
	var words []string
	for _, p := range configs.Problems(err) {
		words = append(words, strings.TrimPrefix(p.Field+": "+p.Err.Error(), ": "))
	}
	return errors.New(strings.Join(words, "; "))
}

// A moduleFile is a file with JavaScript. What runs of one version does not serve the
// next.
type moduleFile struct{ file, version string }

func callModule(ctx context.Context, call *core.Call, name string, m moduleFile, limit time.Duration, args json.RawMessage) (*core.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v; it was told to stop", limit))
	defer cancel()
	var value *string
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		value, failed = stateOf(call.Scope).node.ask(ctx, "call", m, args)
	}()
	_ = await(context.WithoutCancel(ctx), call, done) // ask ends with ctx
	if failed != nil {
		return nil, fmt.Errorf("%s: %w", name, failed)
	}
	if value == nil {
		return &core.Result{}, nil
	}
	return resultOf(call.Scope, name, *value)
}

// load runs modules to learn what they declare, in a Node process of its own.
func (s *Source) load(ctx context.Context, dir string, files []string) ([]*string, []error) {
	var procs proc.Set
	defer func() {
		if err := procs.Close(); err != nil {
			s.log.Warn("ending Node", "error", err)
		}
	}()
	n := &node{procs: &procs, dir: dir, log: s.log}
	declared, errs := make([]*string, len(files)), make([]error, len(files))
	turns := make(chan struct{}, loadsAtOnce)
	var wg sync.WaitGroup
	for i, file := range files {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("it did not finish loading within %v", s.limit))
			defer cancel()
			declared[i], errs[i] = n.ask(ctx, "load", moduleFile{file: file}, nil)
		})
	}
	wg.Wait()
	return declared, errs
}

// loaded is what came of loading the modules of one folder. Beside the file that is
// kept, it spares a reload the modules that fail, or do not come back.
type loaded struct {
	digest   string
	declared []*string
	errs     []error
}

// declarations is load, by way of what is kept of the last time.
func (s *Source) declarations(ctx context.Context, dir string, files []string, digest string) ([]*string, []error) {
	s.mu.Lock()
	last := s.loaded[dir]
	s.mu.Unlock()
	if last.digest == digest && digest != "" {
		return last.declared, slices.Clone(last.errs)
	}
	file := s.cacheFile(dir)
	kept := readCache(file)
	declared, errs := make([]*string, len(files)), make([]error, len(files))
	var missing []int
	for i, f := range files {
		text, ok := kept.Modules[filepath.Base(f)]
		if declared[i] = text; !ok || kept.Digest != digest || digest == "" {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 && kept.usable() {
		return declared, errs
	}
	path, err := proc.LookPath("node")
	if err != nil {
		for i := range errs {
			errs[i] = fmt.Errorf("%w; the tool is a JavaScript module: install Node.js, or write a manifest", err)
		}
		return declared, errs
	}
	asked := make([]string, len(missing))
	for i, m := range missing {
		asked[i] = files[m]
	}
	if len(asked) > 0 {
		texts, failed := s.load(ctx, dir, asked)
		for i, m := range missing {
			declared[m], errs[m] = texts[i], failed[i]
		}
	}
	if ctx.Err() == nil {
		s.mu.Lock()
		s.loaded[dir] = loaded{digest, declared, slices.Clone(errs)}
		s.mu.Unlock()
	}
	now := cache{Digest: digest, Node: path, Modules: map[string]*string{}}
	for i, f := range files {
		if errs[i] == nil {
			now.Modules[filepath.Base(f)] = declared[i]
		}
	}
	s.keep(ctx, file, now)
	return declared, errs
}
