// Package usertools offers the user's own tools: files in folders of tools
// (decision 28). There are two forms.
//
// A manifest, NAME.yaml, NAME.yml or NAME.json, declares a function and the command
// that runs it (manifest.go). The command gets the arguments as JSON on its stdin,
// and what it prints is the result. Its working directory is the client's.
//
// A module, NAME.js or NAME.mjs, exports a function and exec or callback, as in the
// TypeScript system. Modules run in one Node process for each client, a worker for
// each module (node.go). To know what a module declares it has to be run: that is
// done at discovery, for modules of folders that are the user's own or trusted, all
// at once, each within [loadLimit]. What they declare is kept in the state directory and
// found again by a digest of the folder's files, so that a start runs Node only
// after a change (cache.go).
//
// User tools are the user's own programs, as MCP servers are. Roots say where they
// start, and do not confine them.
package usertools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"zenmcp/configs"
	"zenmcp/core"
)

// A Source is the user's tools of all places. It outlives reloads.
type Source struct {
	// Inspect is for who wants to know what is wrong: nothing is written, and
	// commands that are not there are reported before somebody calls them.
	Inspect bool

	places *configs.Places
	log    *slog.Logger
	limit  time.Duration          // of loading a module
	good   configs.LastGood[tool] // by file

	mu     sync.Mutex
	loaded map[string]loaded // by folder
}

var _ core.Source = (*Source)(nil)

// New makes a source. It reads nothing yet. The log gets what modules print.
func New(places *configs.Places, log *slog.Logger) *Source {
	return &Source{places: places, log: log, limit: loadLimit, loaded: map[string]loaded{}}
}

// A tool is one file that can be used.
type tool struct {
	core.Definition
	stem, file string
}

// Discover reads the manifests, and what the modules declare. Of files with the
// same stem the first place's wins, and in one folder the manifest's; of functions
// with the same name that of the first place (contract §5, B56). The tools come in
// the order of their files' stems. A file that is wrong counts as it was when it was
// right.
func (s *Source) Discover(ctx context.Context) (core.Offer, error) {
	places, err := s.places.Of(core.KindTool)
	errs := []error{err}
	stems, names := map[string]bool{}, map[string]string{}
	var tools []tool
	round := s.good.Round()
	defer round.End()
	for _, place := range places {
		found, err := s.folder(ctx, place, stems, round)
		errs = append(errs, err)
		for _, t := range found {
			if first := names[t.Name]; first != "" {
				o := core.Omit(core.Capability{Kind: core.KindTool}, t.file, &core.ShadowedError{By: first})
				o.Reason = fmt.Sprintf("there is a tool %q in %q already", t.Name, first)
				errs = append(errs, o)
				continue
			}
			names[t.Name] = t.file
			tools = append(tools, t)
		}
	}
	slices.SortStableFunc(tools, func(a, b tool) int { return strings.Compare(a.stem, b.stem) })
	return offer(tools), errors.Join(errs...)
}

// settle adds what came of reading a file to what there is.
func settle(tools []tool, errs []error, round *configs.Round[tool], file string, t tool, err error) ([]tool, []error) {
	if errors.Is(err, errNoTool) {
		return tools, errs // package.json, for one, or a library of modules
	}
	t, kept := round.Settle(file, t, err)
	found := configs.Problems(err)
	for i, p := range found {
		if p.File == "" {
			found[i] = &configs.Problem{File: file, Err: p.Err} // of a module, which has no lines
		}
	}
	errs = append(errs, configs.Omitted(core.Capability{Kind: core.KindTool}, found, kept)...)
	if err != nil && !kept {
		return tools, errs
	}
	return append(tools, t), errs
}

// folder reads one folder. Stems that it settles are added.
func (s *Source) folder(ctx context.Context, place configs.Place, stems map[string]bool, round *configs.Round[tool]) ([]tool, error) {
	entries, err := os.ReadDir(place.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, core.Omit(core.Capability{Kind: core.KindTool}, place.Path, err)
	}
	settled := map[string]bool{}
	var tools []tool
	var modules []string
	var errs []error
	for _, extensions := range [][]string{{".yaml", ".yml", ".json"}, {".js", ".mjs"}} {
		for _, e := range entries {
			ext := filepath.Ext(e.Name())
			stem := strings.TrimSuffix(e.Name(), ext)
			if !slices.Contains(extensions, ext) || strings.HasPrefix(stem, ".") || stem == "" || stems[stem] || settled[stem] {
				continue
			}
			file := filepath.Join(place.Path, e.Name())
			if ext == ".js" || ext == ".mjs" {
				settled[stem] = true
				modules = append(modules, file)
				continue
			}
			t, warnings, err := s.manifest(file, stem, place)
			if !errors.Is(err, errNoTool) {
				settled[stem] = true
			}
			tools, errs = settle(tools, errs, round, file, t, err)
			if err == nil {
				errs = append(errs, configs.Warned(core.Capability{Kind: core.KindTool, Name: t.Name}, warnings)...)
			}
		}
	}
	loaded, failed := s.modules(ctx, place, modules)
	for i, file := range modules {
		tools, errs = settle(tools, errs, round, file, loaded[i], failed[i])
	}
	for stem := range settled {
		stems[stem] = true
	}
	return tools, errors.Join(errs...)
}

// define makes the tool of a function that somebody declared. run is asked only
// while its place is trusted: it may have changed since.
func (s *Source) define(file, stem string, place configs.Place, f core.FunctionSpec, hints *hints, run runner) (tool, error) {
	t := core.Tool{Name: f.Name, Description: f.Description, Hints: hints.hints(), Output: core.OutputLong}
	d, unchecked, err := core.DefineForeign(t, f.Parameters, func(ctx context.Context, call *core.Call, args json.RawMessage) (*core.Result, error) {
		if err := s.places.Trusts(place); err != nil {
			return nil, fmt.Errorf("%q is not run: %w", file, err)
		}
		return run(ctx, call, args)
	})
	if err != nil {
		return tool{}, core.InField("function", core.InField("parameters", err))
	}
	if unchecked != nil {
		s.log.Warn("the arguments of a user tool are not checked", "tool", f.Name, "file", file, "reason", unchecked)
	}
	return tool{d, stem, file}, nil
}

// A runner runs one call, whose arguments have been checked.
type runner func(context.Context, *core.Call, json.RawMessage) (*core.Result, error)

// An offer is the tools at one time.
type offer []tool

func (o offer) Capabilities() []core.Capability {
	all := make([]core.Capability, len(o))
	for i, t := range o {
		all[i] = core.Capability{Kind: core.KindTool, Name: t.Name}
	}
	return all
}

func (o offer) Instantiate(scope *core.Scope, permitted []core.Capability) ([]core.Tool, error) {
	var tools []core.Tool
	for _, t := range o {
		if slices.Contains(permitted, core.Capability{Kind: core.KindTool, Name: t.Name}) {
			tools = append(tools, t.Bind(scope))
		}
	}
	return tools, nil
}
