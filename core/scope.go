package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
)

// An Env is what all scopes of one process share: the configuration and the
// catalog, which a reload replaces, and what must be one for the whole process,
// such as the locks of files.
type Env struct {
	// Log gets what an operator wants to know; nil discards.
	Log *slog.Logger
	// StateDir is a private folder for what outlives a call: outputs over the
	// budget, transcripts. Empty means that nothing may be kept.
	StateDir string
	// Commands says how far commands reach where roots confine the file tools.
	Commands CommandReach
	// Models finds the chat model of an agent: the one that it names, else the
	// default one. Its error says what is missing. Nil means that there are no
	// models. It must be cheap: it runs whenever tools are listed.
	Models func(Config, AgentDefinition) (Model, error)

	current atomic.Pointer[snapshot]
	files   keyedLocks
	swept   atomic.Int64 // when old outputs were removed last, in Unix seconds
}

// CommandReach is how far commands reach where there are roots. The zero value
// confines them to the roots; where that cannot be done, they are not offered.
type CommandReach struct {
	Unconfined bool     // as far as the server
	Read       []string // further files and folders that they may read and run
}

type snapshot struct {
	config  Config
	catalog Catalog
}

// Update replaces configuration and catalog for all scopes, at once.
func (e *Env) Update(config Config, catalog Catalog) {
	e.current.Store(&snapshot{config, catalog})
	for _, p := range catalog.parts {
		if o, ok := p.offer.(Superseding); ok {
			o.Supersede()
		}
	}
}

// Config is the current configuration.
func (e *Env) Config() Config { return e.load().config }

// Catalog is what there is now, before any filter.
func (e *Env) Catalog() Catalog { return e.load().catalog }

func (e *Env) load() *snapshot {
	if s := e.current.Load(); s != nil {
		return s
	}
	return &snapshot{}
}

// A Scope is one client of the system: the process on stdio, a session or a
// credential over HTTP, one run of a sub-agent. It holds what that client may
// use and reach, what it has loaded, and what must end with it.
type Scope struct {
	env    *Env
	agent  AgentDefinition
	given  reach  // before the agent's own roots narrowed it
	reach         // after that
	parent *Scope // of a sub-agent's run; nil for a client
	// without is excluded in this run. Skills and sub-agents among it, which are
	// running, are excluded in the runs below as well.
	without []Capability

	*life
}

// A reach is where a scope works and what it may get at.
type reach struct {
	dir   string
	roots *Roots
}

// A life is what a scope has gathered and what must end with it. It goes on when
// the scope is redefined.
type life struct {
	mu      sync.Mutex
	locals  map[reflect.Type]func() any
	closers []func() error
	closed  bool
	// own are the roots of the agent's, of its last definition. Those of a definition before
	// close when the last call that works with them has ended: [os.Root] does that
	// by itself when nobody holds it any more.
	own atomic.Pointer[Roots]
}

// NewScope makes the scope of a client. dir is the working directory, absolute.
// roots confine the file tools; nil confines nothing. Roots may serve many
// scopes; the scope does not close them. An agent that names roots of its own is
// confined to what both have in common, and works in the first of them if dir is
// not inside.
func NewScope(env *Env, agent AgentDefinition, dir string, roots *Roots) (*Scope, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("working directory %q must be absolute", dir)
	}
	dir = filepath.Clean(dir)
	if roots != nil {
		inside, err := roots.spell(dir)
		if err != nil {
			return nil, fmt.Errorf("working directory: %w", err)
		}
		dir = inside
	}
	return (&Scope{env: env, given: reach{dir, roots}, life: &life{}}).As(agent)
}

// As is the scope of the same client under another definition of its agent, as
// after a change of the agent's file. The two share what was loaded, what runs, and
// their end; calls that have begun go on in the scope that they began in.
func (s *Scope) As(agent AgentDefinition) (*Scope, error) {
	next := *s
	next.agent = agent
	if s.dir != "" && slices.Equal(s.agent.Roots, agent.Roots) {
		return &next, nil // roots are not opened again
	}
	next.reach = s.given
	if err := next.narrow(); err != nil {
		return nil, err
	}
	return &next, nil
}

// narrow applies the agent's own roots.
func (s *Scope) narrow() error {
	if len(s.agent.Roots) == 0 {
		return nil
	}
	roots, err := s.roots.narrow(s.agent.Roots, s.dir)
	if err != nil {
		return fmt.Errorf("the agent's own %w", err)
	}
	s.roots = roots
	s.own.Store(roots)
	if dir, err := roots.spell(s.dir); err == nil {
		s.dir = dir
	} else {
		s.dir = roots.List()[0]
	}
	return nil
}

// Child makes the scope of one run of a sub-agent: its own permissions and its
// own conversation, in the same place and on the client's connections, without
// what is excluded. An agent that names no model has that of its caller; one that
// names roots is confined to what they and the caller's have in common. Whoever
// makes the scope closes it when the run ends. See [RunAgent].
func (s *Scope) Child(agent AgentDefinition, exclude ...Capability) (*Scope, error) {
	return (&Scope{env: s.env, given: s.reach, parent: s, without: exclude, life: &life{}}).As(s.withModel(agent))
}

// withModel is the agent as this scope would call it: contract §6.
func (s *Scope) withModel(agent AgentDefinition) AgentDefinition {
	if agent.ModelID == nil {
		agent.ModelID = s.agent.ModelID
	}
	return agent
}

// Model is the chat model of an agent that this scope would call: its own, else
// that of the scope's agent, else the default one. The error says why there is
// none; a tool that cannot run without a model is not published then.
func (s *Scope) Model(agent AgentDefinition) (Model, error) {
	if s.env.Models == nil {
		return nil, errors.New("this program has no access to models")
	}
	return s.env.Models(s.Config(), s.withModel(agent))
}

// Client is the scope at the top of the chain of runs: the client itself.
func (s *Scope) Client() *Scope {
	for s.parent != nil {
		s = s.parent
	}
	return s
}

// Ancestors lists the agents above this run, the nearest first.
func (s *Scope) Ancestors() []AgentDefinition {
	var all []AgentDefinition
	for p := s.parent; p != nil; p = p.parent {
		all = append(all, p.agent)
	}
	return all
}

// Dir is the working directory: absolute, as it was given, inside a root.
func (s *Scope) Dir() string { return s.dir }

// Roots lists the folders that the file tools are confined to; none means that
// nothing is confined.
func (s *Scope) Roots() []string { return s.roots.List() }

// OpenRoots opens the folders that confine the scope, for what has to name them to
// the system. Whoever opens closes.
func (s *Scope) OpenRoots() ([]*os.File, error) { return s.roots.open() }

// Commands says how far commands reach.
func (s *Scope) Commands() CommandReach { return s.env.Commands }

// Agent is the definition that says what the scope may use.
func (s *Scope) Agent() AgentDefinition { return s.agent }

// Config is the current configuration.
func (s *Scope) Config() Config { return s.env.Config() }

// StateDir is a private folder for what outlives a call, or "".
func (s *Scope) StateDir() string { return s.env.StateDir }

// Log is where an operator reads.
func (s *Scope) Log() *slog.Logger {
	if s.env.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.env.Log
}

// Tools runs phases two and three for this scope: what it may use now. The
// functions of the scope's own agent and of its ancestors are excluded, so that
// no agent can come back to itself (contract §5, decision 27), and so is what the
// scope was made without.
func (s *Scope) Tools() Published {
	exclude := slices.Clone(s.without)
	for a := s; a != nil; a = a.parent {
		if f := a.agent.Function; f != nil {
			exclude = append(exclude, Capability{KindSubagent, f.Name})
		}
		for _, c := range a.without {
			if c.Kind != KindTool {
				exclude = append(exclude, c)
			}
		}
	}
	now := s.env.load()
	return now.catalog.Filter(now.config, s.agent, exclude...).Instantiate(s)
}

// Local returns the scope's own T, made by init when it is first asked for. It
// is how tools that belong together share state of one client, and how that
// state outlives a reload. T is the key, so it should be a type of the caller's.
// init may use the scope, [Scope.OnClose] above all.
func Local[T any](s *Scope, init func() *T) *T {
	key := reflect.TypeFor[T]()
	s.mu.Lock()
	get, ok := s.locals[key]
	if !ok {
		if s.locals == nil {
			s.locals = map[reflect.Type]func() any{}
		}
		get = sync.OnceValue(func() any { return init() })
		s.locals[key] = get
	}
	s.mu.Unlock()
	return get().(*T) // outside of the lock, which init may need
}

// OnClose has f called when the scope ends, the last one given first. On a scope
// that has ended f is called at once.
func (s *Scope) OnClose(f func() error) {
	s.mu.Lock()
	late := s.closed
	if !late {
		s.closers = append(s.closers, f)
	}
	s.mu.Unlock()
	if late {
		if err := f(); err != nil {
			s.Log().Warn("closing late", "error", err)
		}
	}
}

// Close ends what lives with the scope: processes, connections. A second call
// does nothing.
func (s *Scope) Close() error {
	s.mu.Lock()
	closers := s.closers
	s.closers, s.closed = nil, true
	s.mu.Unlock()
	var errs []error
	for _, f := range slices.Backward(closers) {
		errs = append(errs, f())
	}
	errs = append(errs, s.own.Swap(nil).Close())
	return errors.Join(errs...)
}

// keyedLocks are mutexes by name that exist while somebody wants them.
type keyedLocks struct {
	mu    sync.Mutex
	locks map[string]*keyedLock
}

type keyedLock struct {
	held    chan struct{} // holds one token while locked
	waiters int
}

// lock takes the lock of key, or gives up when ctx ends.
func (k *keyedLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*keyedLock{}
	}
	l := k.locks[key]
	if l == nil {
		l = &keyedLock{held: make(chan struct{}, 1)}
		k.locks[key] = l
	}
	l.waiters++
	k.mu.Unlock()

	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.waiters--; l.waiters == 0 {
			delete(k.locks, key)
		}
	}
	unlock = func() { <-l.held; leave() }
	select {
	case l.held <- struct{}{}:
		return unlock, nil
	default:
		Waits(ctx)
	}
	select {
	case l.held <- struct{}{}:
		return unlock, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
