package mcps

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"zenmcp/core"
)

// A fakeLink is a connection that answers everything with {}.
type fakeLink struct {
	peer   *peer
	closed atomic.Bool
}

func (l *fakeLink) send(_ context.Context, msg jsonrpc.Message, _ *request) error {
	if call, ok := msg.(*jsonrpc.Request); ok && call.IsCall() {
		l.peer.deliverApart(&jsonrpc.Response{ID: call.ID, Result: []byte(`{}`)})
	}
	return nil
}
func (l *fakeLink) post(ctx context.Context, msg jsonrpc.Message, r *request, failed func(error) func()) {
	apart(ctx, func(ctx context.Context) error { return l.send(ctx, msg, r) }, failed)
}

func (l *fakeLink) ready(string)                                    {}
func (l *fakeLink) abandon(context.Context, *pending, string) error { return nil }
func (l *fakeLink) close() error                                    { l.closed.Store(true); return nil }

// A fakeWorld dials sessions with fake links.
type fakeWorld struct {
	dials int
	fail  error
	links []*fakeLink
	block chan struct{} // if not nil, a dial waits for it
}

// pool makes a pool for a configuration with these servers, or with testServer.
func (w *fakeWorld) pool(offered ...*Server) *pool {
	if offered == nil {
		offered = []*Server{testServer()}
	}
	p := &pool{source: &Source{offered: offered}, log: slog.New(slog.DiscardHandler), slots: map[string][]*slot{}}
	p.source.pools.Store(p, true)
	p.dial = func(ctx context.Context, server *Server, _ bool) (*session, error) {
		w.dials++
		if w.block != nil {
			select {
			case <-w.block:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		if w.fail != nil {
			return nil, w.fail
		}
		s := newSession(server, "1", p.log)
		l := &fakeLink{peer: s.peer}
		s.peer.link = l
		w.links = append(w.links, l)
		return s, nil
	}
	return p
}

func testServer() *Server {
	return &Server{Name: "x", Transport: Stdio, Command: "c", IdleTimeout: time.Minute}
}

func mustAcquire(t *testing.T, sl *slot) *session {
	t.Helper()
	s, err := sl.acquire(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// B61: the idle time begins when the last call ends.
func TestIdleStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorld{}
		p := w.pool()
		defer p.close()
		sl := p.slot(testServer())
		s := mustAcquire(t, sl)
		time.Sleep(10 * time.Minute) // a long call
		if w.links[0].closed.Load() {
			t.Fatal("stopped during a call")
		}
		sl.release(s)
		time.Sleep(59 * time.Second)
		sl.release(mustAcquire(t, sl))
		time.Sleep(59 * time.Second)
		if w.links[0].closed.Load() {
			t.Fatal("a call did not start the idle time anew")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !w.links[0].closed.Load() {
			t.Fatal("not stopped after its idle time")
		}
		sl.release(mustAcquire(t, sl))
		if w.dials != 2 {
			t.Errorf("%d dials, want 2", w.dials)
		}
	})
}

func TestIdleNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorld{}
		server := testServer()
		server.IdleTimeout = 0
		p := w.pool(server)
		sl := p.slot(server)
		sl.release(mustAcquire(t, sl))
		time.Sleep(1000 * time.Hour)
		if w.links[0].closed.Load() {
			t.Error("stopped")
		}
		if err := p.close(); err != nil || !w.links[0].closed.Load() {
			t.Errorf("not closed with the pool: %v", err)
		}
		if _, err := sl.acquire(t.Context(), false); !errors.Is(err, errEnding) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// A server that does not start is tried three times, then ever more rarely.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("no licence")
		w := &fakeWorld{fail: broken}
		p := w.pool()
		defer p.close()
		sl := p.slot(testServer())
		for range 100 { // a storm, in no time
			if _, err := sl.acquire(t.Context(), false); !errors.Is(err, broken) {
				t.Fatal(err)
			}
		}
		if w.dials != freeTries {
			t.Errorf("%d dials in a storm, want %d", w.dials, freeTries)
		}
		began := time.Now()
		for time.Since(began) < 10*time.Minute {
			sl.acquire(t.Context(), false)
			time.Sleep(100 * time.Millisecond)
		}
		if w.dials < 20 || w.dials > 30 { // 1, 2, 4, 8, 16, 30, 30 ... seconds apart
			t.Errorf("%d dials in ten minutes", w.dials)
		}
		w.fail = nil
		time.Sleep(maxBackoff)
		sl.release(mustAcquire(t, sl))
	})
}

// A server that starts and dies at once is as bad as one that does not start.
func TestBreakerOfShortLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorld{}
		p := w.pool()
		defer p.close()
		sl := p.slot(testServer())
		var last error
		for range 20 {
			s, err := sl.acquire(t.Context(), false)
			if last = err; err != nil {
				continue
			}
			s.peer.lose(errors.New("segmentation fault"))
			sl.release(s)
			synctest.Wait()
		}
		if w.dials != freeTries || last == nil || !strings.Contains(last.Error(), "segmentation fault") {
			t.Errorf("%d dials; %v", w.dials, last)
		}
		time.Sleep(time.Hour)
		s := mustAcquire(t, sl)
		time.Sleep(shortLife)
		s.peer.lose(errors.New("gone"))
		sl.release(s)
		synctest.Wait()
		sl.release(mustAcquire(t, sl)) // a long life has paid for the past
	})
}

// Callers share a start, and it ends when none of them waits any more.
func TestOneStartForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorld{block: make(chan struct{})}
		p := w.pool()
		defer p.close()
		sl := p.slot(testServer())
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var canceled, served atomic.Int32
		for i := range 10 {
			c := t.Context()
			if i < 5 {
				c = ctx
			}
			wg.Go(func() {
				s, err := sl.acquire(c, false)
				if err != nil {
					canceled.Add(1)
					return
				}
				served.Add(1)
				sl.release(s)
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(w.block)
		wg.Wait()
		if canceled.Load() != 5 || served.Load() != 5 || w.dials != 1 {
			t.Errorf("%d gave up, %d were served, %d dials", canceled.Load(), served.Load(), w.dials)
		}
	})
}

func TestStartIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorld{block: make(chan struct{})}
		p := w.pool()
		defer p.close()
		sl := p.slot(testServer())
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := sl.acquire(ctx, false); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
			synctest.Wait()
			if sl.starting != nil {
				t.Fatal("the start goes on without anybody waiting")
			}
		}
		if w.dials != 10 {
			t.Errorf("%d dials: giving up is no failure of the server", w.dials)
		}
	})
}

// An entry that was changed is connected to anew, and its session ends after its calls.
// Who goes on with the entry as it was and who has it as it is do not disturb each other.
func TestChangedEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorld{}
		p := w.pool()
		defer p.close()
		running := mustAcquire(t, p.slot(testServer()))
		changed := testServer()
		changed.Args, changed.IdleTimeout = []string{"-v"}, time.Hour
		p.source.retire([]*Server{changed})
		for range 3 {
			for _, server := range []*Server{testServer(), changed} {
				sl := p.slot(server)
				sl.release(mustAcquire(t, sl))
			}
			p.source.retire([]*Server{changed}) // something else has changed
		}
		open := func(want ...bool) {
			t.Helper()
			synctest.Wait()
			var got []bool
			for _, l := range w.links {
				got = append(got, !l.closed.Load())
			}
			if !slices.Equal(got, want) {
				t.Errorf("open are %v, want %v", got, want)
			}
		}
		open(true, true, true)
		p.slot(testServer()).release(running)
		open(false, true, true)
		time.Sleep(outdatedIdle + time.Second)
		open(false, false, true)
		p.source.retire([]*Server{testServer()})
		open(false, false, false)
	})
}

// What Discover finds ends connections to what is not there any more as it was: when it
// is in force, at once or after the calls.
func TestRetired(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := func(name string) string { return filepath.Join(dir, name) }
	servers := map[string]any{}
	for _, name := range []string{"same", "changed", "gone", "broken"} {
		servers[name] = stubServer(t, "fix", args{"log": log(name)})
	}
	h := newHarness(t, servers)
	for name := range servers {
		h.text(loadName, args{"server": name, "include_manifest": false})
	}
	servers["changed"] = stubServer(t, "fix", args{"log": log("changed"), "timeout": 5000})
	servers["broken"] = args{"type": "pigeon"}
	delete(servers, "gone")
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, h.file, string(text))
	_, _ = h.source.Discover(t.Context()) // which is not in force yet: other sources may take long
	for name := range servers {
		h.text(loadName, args{"server": name, "include_manifest": false})
		if got := strings.Count(readFile(t, log(name)), "start\n"); got != 1 {
			t.Errorf("%s was started %d times before the change is in force", name, got)
		}
	}
	h.reload()
	waitFor(t, log("changed"), "eof")
	waitFor(t, log("gone"), "eof")
	for name, starts := range map[string]int{"same": 1, "changed": 2, "broken": 1} {
		h.text(loadName, args{"server": name, "include_manifest": false})
		if got := strings.Count(readFile(t, log(name)), "start\n"); got != starts {
			t.Errorf("%s was started %d times, want %d", name, got, starts)
		}
	}
	h.fails(loadName, args{"server": "gone"}, `unknown MCP server "gone"`)
	if omitted := h.env.Catalog().Omitted(); len(omitted) != 1 || !omitted[0].Offered || !strings.Contains(omitted[0].Error(), `unknown transport "pigeon"; use stdio, http or sse; what it said before stays in force`) {
		t.Errorf("said %v", omitted)
	}
	writeFile(t, h.file, "{")
	h.reload()
	h.text(loadName, args{"server": "same", "include_manifest": false})
	if omitted := h.env.Catalog().Omitted(); len(omitted) != 1 || !omitted[0].Offered || !strings.Contains(omitted[0].Origin, "mcp.json:1:2") {
		t.Errorf("said %v", omitted)
	}
	if err := os.Remove(h.file); err != nil {
		t.Fatal(err)
	}
	h.reload()
	waitFor(t, log("same"), "eof")
	waitFor(t, log("broken"), "eof")
}

// Scopes have connections of their own, unless the entry is shared among those
// of one agent; the last scope ends it. Runs of sub-agents use their client's.
func TestIsolationAndSharing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logs := map[string]string{"own": filepath.Join(dir, "own"), "shared": filepath.Join(dir, "shared")}
	h := newHarness(t, map[string]any{
		"own":    stubServer(t, "fix", args{"log": logs["own"]}),
		"shared": stubServer(t, "fix", args{"log": logs["shared"], "shared": true}),
	})
	agent := func(id string) core.AgentDefinition {
		return core.AgentDefinition{ID: id, Permissions: core.AllowAll()}
	}
	load := func(scope *core.Scope) {
		t.Helper()
		for name := range logs {
			if _, err := run(t.Context(), scope, loadName, &core.Call{Arguments: []byte(`{"server":"` + name + `"}`)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	newScope := func(id string) *core.Scope {
		s, err := core.NewScope(h.env, agent(id), h.project, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, two, other := newScope("a"), newScope("a"), newScope("b")
	for _, s := range []*core.Scope{one, child(t, one, agent("sub")), two, other} {
		load(s)
	}
	count := func(name, line string) int { return strings.Count(readFile(t, logs[name]), line+"\n") }
	if own, shared := count("own", "start"), count("shared", "start"); own != 3 || shared != 2 {
		t.Errorf("%d own and %d shared processes, want 3 and 2", own, shared)
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if own, shared := count("own", "eof"), count("shared", "eof"); own != 1 || shared != 0 {
		t.Errorf("after one of two ended: %d and %d processes ended, want 1 and 0", own, shared)
	}
	for _, s := range []*core.Scope{two, other} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if own, shared := count("own", "eof"), count("shared", "eof"); own != 3 || shared != 2 {
		t.Errorf("after all: %d and %d processes ended, want 3 and 2", own, shared)
	}
}

// C54, B03: what is not permitted answers as what does not exist, also when
// somebody else has loaded it.
func TestPermissionAtCallTime(t *testing.T) {
	t.Parallel()
	h := newHarness(t, map[string]any{"x": stubServer(t, "fix"), "y": stubServer(t, "fix"),
		"broken": map[string]any{"command": "c", "args": []string{"${ZEN_MCP_NOT_SET_ANYWHERE}"}}})
	allow := func(servers ...string) core.Permissions {
		return core.Permissions{core.KindTool: core.Allow(core.Wildcard), core.KindMCP: core.Allow(servers...)}
	}
	parent := h.newScope(core.AgentDefinition{ID: "b", Permissions: allow("y")})
	if _, err := run(t.Context(), parent, loadName, &core.Call{Arguments: []byte(`{"server":"y"}`)}); err != nil {
		t.Fatal(err)
	}
	// A run of a sub-agent shares the connections, and not the permission.
	scope := child(t, parent, core.AgentDefinition{ID: "a", Permissions: allow("x")})
	for tool, format := range map[string]string{
		loadName: `{"server":"%"}`, callName: `{"server":"%","tool":"echo"}`, readName: `{"server":"%","uri":"mem://a"}`,
	} {
		words := map[string]string{}
		for _, name := range []string{"y", "z", "broken"} {
			_, err := run(t.Context(), scope, tool, &core.Call{Arguments: []byte(strings.ReplaceAll(format, "%", name))})
			if err == nil {
				t.Fatalf("%s reached %q", tool, name)
			}
			words[name] = strings.ReplaceAll(err.Error(), name, "NAME")
		}
		if words["y"] != words["z"] || words["broken"] != words["z"] {
			t.Errorf("%s tells them apart: %q", tool, words)
		}
	}
}

// Decision 26: whoever could not load a server need not have.
func TestCallWithoutLoad(t *testing.T) {
	t.Parallel()
	h := newHarness(t, map[string]any{"fix": stubServer(t, "fix")})
	call := func(permissions core.Permissions, sessionless bool) error {
		scope := h.newScope(core.AgentDefinition{ID: "a", Permissions: permissions})
		_, err := run(t.Context(), scope, callName, &core.Call{Arguments: []byte(`{"server":"fix","tool":"echo"}`), Sessionless: sessionless})
		return err
	}
	if err := call(core.AllowAll(), false); err == nil || !strings.Contains(err.Error(), "call load_mcp") {
		t.Errorf("with a session: %v", err)
	}
	if err := call(core.AllowAll(), true); err != nil {
		t.Errorf("without a session: %v", err)
	}
	if err := call(core.Permissions{core.KindTool: core.Allow(callName), core.KindMCP: core.Allow("fix")}, false); err != nil {
		t.Errorf("without load_mcp: %v", err)
	}
}

// A tool of the list is offered only with a server to use it on.
func TestNoServersNoTools(t *testing.T) {
	t.Parallel()
	h := newHarness(t, map[string]any{"off": args{"command": "c", "disabled": true}})
	published := h.scope.Tools()
	if len(published.Tools) != 0 || len(published.Omitted) != 4 {
		t.Errorf("%v, left out %v", published.Names(), published.Omitted)
	}
}

// child is the scope of a sub-agent's run.
func child(t *testing.T, s *core.Scope, agent core.AgentDefinition) *core.Scope {
	t.Helper()
	run, err := s.Child(agent)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// What a call has sent by a goroutine of its own may wait there as it likes, for the
// file with the tokens, for one.
func TestApartWaits(t *testing.T) {
	t.Parallel()
	parked, done := make(chan struct{}), make(chan struct{})
	core.NewHost(nil).Run(t.Context(), core.PaceParks, func(ctx context.Context) {
		p := core.ParkerOf(ctx)
		apart(ctx, func(ctx context.Context) error {
			<-parked
			core.Waits(ctx)
			return errors.New("refused")
		}, func(error) func() { return p.Unpark })
		p.Park()
		close(done)
	})
	close(parked)
	<-done
}
