package core

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// newScope makes a scope in a fresh folder that may use everything.
func newScope(t *testing.T, env *Env) *Scope {
	t.Helper()
	s, err := NewScope(env, AgentDefinition{ID: "a", Permissions: AllowAll()}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// child makes the scope of a sub-agent's run.
func child(t *testing.T, s *Scope, agent AgentDefinition, exclude ...Capability) *Scope {
	t.Helper()
	run, err := s.Child(agent, exclude...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	return run
}

func TestNewScopeDirectory(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	roots := openRoots(t, base)
	if _, err := NewScope(&Env{}, AgentDefinition{}, "relative", nil); err == nil {
		t.Error("a relative working directory was taken")
	}
	if _, err := NewScope(&Env{}, AgentDefinition{}, filepath.Dir(base), roots); err == nil || !strings.Contains(err.Error(), base) {
		t.Errorf("a working directory outside of the roots gave %v, want an error that names the roots", err)
	}
	s, err := NewScope(&Env{}, AgentDefinition{}, base+"/x/..", roots)
	if err != nil {
		t.Fatal(err)
	}
	if s.Dir() != base || !slices.Equal(s.Roots(), []string{base}) {
		t.Errorf("Dir %q, Roots %q, want %q for both", s.Dir(), s.Roots(), base)
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	type state struct{ n int }
	s := newScope(t, &Env{})
	closed := 0
	init := func() *state {
		s.OnClose(func() error { closed++; return nil })
		return &state{n: 1}
	}
	var wg sync.WaitGroup
	got := make([]*state, 8)
	for i := range got {
		wg.Go(func() { got[i] = Local(s, init) })
	}
	wg.Wait()
	for _, g := range got {
		if g != got[0] {
			t.Fatal("two callers got two states")
		}
	}
	if other := Local(child(t, s, AgentDefinition{}), init); other == got[0] {
		t.Error("a child shares its parent's state")
	}
	if s.Close(); closed != 2 {
		t.Errorf("closed %d times, want 2: init ran once for the scope and once for its child", closed)
	}
}

func TestCloseOrder(t *testing.T) {
	t.Parallel()
	s := newScope(t, &Env{})
	var order []string
	closer := func(name string, err error) func() error {
		return func() error { order = append(order, name); return err }
	}
	bang := errors.New("bang")
	s.OnClose(closer("first", nil))
	s.OnClose(closer("second", bang))
	s.OnClose(closer("third", nil))
	if err := s.Close(); !errors.Is(err, bang) {
		t.Errorf("Close gave %v, want the closer's error", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("the second Close gave %v, want nothing", err)
	}
	s.OnClose(closer("late", bang))
	if want := []string{"third", "second", "first", "late"}; !slices.Equal(order, want) {
		t.Errorf("closed %q, want %q", order, want)
	}
}

// TestCloseRace registers closers while the scope ends: each must run once.
func TestCloseRace(t *testing.T) {
	t.Parallel()
	s := newScope(t, &Env{})
	var mu sync.Mutex
	var wg sync.WaitGroup
	ran := make([]int, 64)
	for i := range ran {
		wg.Go(func() {
			s.OnClose(func() error { mu.Lock(); defer mu.Unlock(); ran[i]++; return nil })
		})
	}
	wg.Go(func() { s.Close() })
	wg.Wait()
	s.Close()
	for i, n := range ran {
		if n != 1 {
			t.Errorf("closer %d ran %d times", i, n)
		}
	}
}

func TestChild(t *testing.T) {
	t.Parallel()
	agent := func(id string) AgentDefinition {
		return AgentDefinition{ID: id, Function: &FunctionSpec{Name: "ask_" + id}, Permissions: AllowAll()}
	}
	source := fake{caps: []Capability{
		{KindSubagent, "ask_top"}, {KindSubagent, "ask_mid"}, {KindSubagent, "ask_low"}, {KindSubagent, "ask_other"},
	}}
	catalog, err := Discover(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{}
	env.Update(Config{}, catalog)
	top, err := NewScope(env, agent("top"), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	mid := child(t, top, agent("mid"))
	low := child(t, mid, agent("low"))
	if low.Client() != top || top.Client() != top {
		t.Error("Client is not the scope at the top")
	}
	var ids []string
	for _, a := range low.Ancestors() {
		ids = append(ids, a.ID)
	}
	if want := []string{"mid", "top"}; !slices.Equal(ids, want) {
		t.Errorf("ancestors %q, want %q", ids, want)
	}
	for scope, want := range map[*Scope][]string{
		top: {"ask_mid", "ask_low", "ask_other"},
		mid: {"ask_low", "ask_other"},
		low: {"ask_other"},
	} {
		if got := scope.Tools().Names(); !slices.Equal(got, want) {
			t.Errorf("%s is offered %q, want %q: neither itself nor an ancestor", scope.Agent().ID, got, want)
		}
	}
	without := child(t, top, agent("mid"), Capability{KindSubagent, "ask_low"})
	for _, scope := range []*Scope{without, child(t, without, AgentDefinition{Permissions: AllowAll()})} {
		if got := scope.Tools().Names(); !slices.Equal(got, []string{"ask_other"}) {
			t.Errorf("with an exclusion: %q", got)
		}
	}
	low.OnClose(func() error { return errors.New("x") })
	if err := top.Close(); err != nil {
		t.Errorf("closing the client closed a child: %v", err)
	}
}

func TestKeyedLocks(t *testing.T) {
	t.Parallel()
	var k keyedLocks
	unlock, err := k.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := k.lock(t.Context(), "b")
	if err != nil {
		t.Fatalf("another key waited: %v", err)
	}
	other()
	why := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := k.lock(ctx, "a"); !errors.Is(err, why) {
		t.Errorf("waiting for a held lock gave %v, want the cause of the cancellation", err)
	}
	unlock()

	var wg sync.WaitGroup
	n := 0
	for range 50 {
		wg.Go(func() {
			unlock, err := k.lock(context.Background(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			n++ // the race detector and the sum see two holders at once
			unlock()
		})
	}
	wg.Wait()
	if n != 50 || len(k.locks) != 0 {
		t.Errorf("%d increments and %d locks left, want 50 and none", n, len(k.locks))
	}
}

// TestScopeAs checks that a scope which is redefined is the same client: what it has
// gathered stays, and ends once.
func TestScopeAs(t *testing.T) {
	t.Parallel()
	type memory struct{ n int }
	ended := 0
	before := newScope(t, &Env{})
	Local(before, func() *memory { return &memory{1} })
	before.OnClose(func() error { ended++; return nil })
	root := t.TempDir()
	now, err := before.As(AgentDefinition{ID: "a", Roots: []string{root}})
	if err != nil {
		t.Fatal(err)
	}
	if got := Local(now, func() *memory { return &memory{2} }).n; got != 1 {
		t.Errorf("what was gathered is %d, want 1", got)
	}
	if len(before.Roots()) != 0 || len(now.Roots()) != 1 || now.Dir() == before.Dir() {
		t.Errorf("roots %q and then %q, in %q and then %q", before.Roots(), now.Roots(), before.Dir(), now.Dir())
	}
	again, err := now.As(AgentDefinition{ID: "a"})
	if err != nil || len(again.Roots()) != 0 || again.Dir() != before.Dir() {
		t.Errorf("without roots again: %v, %q in %q", err, again.Roots(), again.Dir())
	}
	if _, err := again.As(AgentDefinition{ID: "a", Roots: []string{filepath.Join(root, "none")}}); err == nil {
		t.Error("a root that does not exist is taken")
	}
	for _, s := range []*Scope{again, now, before} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if ended != 1 {
		t.Errorf("the scope ended %d times", ended)
	}
}
