package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"zenmcp/builtin"
	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/llm"
	"zenmcp/loaders/mcps"
	"zenmcp/loaders/skills"
	"zenmcp/loaders/subagents"
	"zenmcp/loaders/usertools"
)

// A system is everything that the flags describe, ready for scopes.
type system struct {
	env     *core.Env
	agents  []core.AgentDefinition
	dir     string // the working directory of every scope
	roots   *core.Roots
	log     *slog.Logger
	closers []func() error

	// What a reload reads again, and with.
	places  *configs.Places
	sources []core.Source
	files   []string // of the agents; "" is the built-in one
	said    notes
}

// onClose has f called when the system ends, the last one given first.
func (s *system) onClose(f func() error) { s.closers = append(s.closers, f) }

func (s *system) close() {
	for _, f := range slices.Backward(s.closers) {
		if err := f(); err != nil {
			s.log.Warn("at the end", "error", err)
		}
	}
}

// newSystem makes a system that has nothing but its log yet.
func newSystem(o *options, std streams) (*system, error) {
	log, closeLog, err := o.logger(std.err)
	if err != nil {
		return nil, err
	}
	return &system{log: log, closers: []func() error{closeLog}}, nil
}

// assemble reads the configuration and discovers what there is. A file that
// cannot be understood is an error that says where; nothing is written.
func assemble(ctx context.Context, o *options, std streams) (*system, error) {
	s, err := newSystem(o, std)
	if err != nil {
		return nil, err
	}
	if err := s.load(ctx, o); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// places are where the flags say that files are.
func (o *options) places() (*configs.Places, error) { return configs.Find(o.where()) }

func (o *options) where() configs.Options {
	return configs.Options{
		Home: o.home, Project: o.project, TrustProject: o.trustProject,
		Skills: o.skills, SubAgents: o.subAgents, Tools: o.tools, MCPConfig: o.mcpConfig,
	}
}

func (o *options) commandReach() core.CommandReach {
	return core.CommandReach{Unconfined: o.unconfined, Read: o.execRead}
}

func (s *system) load(ctx context.Context, o *options) error {
	var err error
	if s.places, err = o.places(); err != nil {
		return errUsage{err}
	}
	s.warn(s.places.Warnings)
	if s.dir, err = o.workingDir(s.places.Project); err != nil {
		return errUsage{err}
	}
	config, warnings, err := s.places.Config()
	if err != nil {
		return described(err)
	}
	s.warn(warnings)
	if err := s.loadAgents(config, o); err != nil {
		return err
	}
	if s.roots, s.dir, err = o.openRoots(s.dir); err != nil {
		return errUsage{err}
	}
	s.openSources(o)
	catalog, err := core.Discover(ctx, s.sources...)
	if err != nil {
		return err
	}
	s.env = &core.Env{
		Log: s.log, StateDir: s.places.State, Models: new(llm.Service).Model, Commands: o.commandReach(),
	}
	s.env.Update(config, catalog)
	return nil
}

// openSources lists where capabilities come from, in the order of publication.
func (s *system) openSources(o *options) {
	tools := usertools.New(s.places, s.log)
	tools.Inspect = o.inspect
	s.sources = []core.Source{
		builtin.Source(),
		tools,
		skills.New(s.places),
		mcps.New(mcps.Options{Places: s.places, Version: version, SignIn: o.signIn, ReadOnly: o.inspect}),
		subagents.New(s.places),
	}
}

func (s *system) loadAgents(config core.Config, o *options) error {
	ids := o.agents
	if len(ids) == 0 {
		ids = []string{configs.ChooseAgent("", config)}
	}
	for _, id := range ids {
		agent, err := s.places.Agent(id)
		if err != nil {
			return described(err)
		}
		s.warn(agent.Warnings)
		if agent.Permissions, err = narrow(agent.Permissions, o.allow, o.deny); err != nil {
			return err
		}
		s.agents = append(s.agents, agent.AgentDefinition)
		s.files = append(s.files, agent.File)
	}
	return nil
}

func (s *system) warn(problems []*configs.Problem) {
	for _, p := range problems {
		if s.said.note(p.Error()) {
			s.log.Warn(p.Error())
		}
	}
}

// described adds the excerpt of the file to an error that has one.
func described(err error) error {
	var p *configs.Problem
	if errors.As(err, &p) {
		if excerpt := p.Excerpt(); excerpt != "" {
			return fmt.Errorf("%w\n%s", err, excerpt)
		}
	}
	return err
}

// workingDir is where relative paths belong: --cwd, else the project.
func (o *options) workingDir(project string) (string, error) {
	if o.cwd == "" {
		return project, nil
	}
	abs, err := filepath.Abs(o.cwd)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", fmt.Errorf("--cwd %q: no such directory", o.cwd)
	}
	return abs, nil
}

// openRoots opens the roots, and moves the working directory into the first of them
// if nobody chose it: a client has started us in a folder of its own.
func (o *options) openRoots(dir string) (*core.Roots, string, error) {
	roots, err := core.OpenRoots(o.roots)
	if err != nil {
		return nil, dir, fmt.Errorf("--root: %w", err)
	}
	if o.cwd == "" && o.project == "" && !roots.Holds(dir) {
		dir = roots.List()[0]
	}
	return roots, dir, nil
}

// scope makes the scope of one client of an agent.
func (s *system) scope(agent core.AgentDefinition) (*core.Scope, error) {
	return core.NewScope(s.env, agent, s.dir, s.roots)
}
