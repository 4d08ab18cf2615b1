package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
	"zenmcp/core/rawjson"
	"zenmcp/core/wire"
)

// A shortPath answers tools/call on stdio before the SDK sees it. A call through
// the SDK costs more than most tools do: its arguments are scanned a dozen times
// and its result passes three encoders. Only the plain case is taken, a call of a
// published tool in a session of one of the older revisions; all else, and every
// error of the protocol, is left to the SDK, which knows the rules.
type shortPath struct {
	agent   *agent
	session atomic.Pointer[mcp.ServerSession] // nil until there is one

	mu      sync.Mutex
	running map[jsonrpc.ID]*shortCall
	clock   *time.Timer // see oversee
	ticking bool
}

func newShortPath(a *agent) *shortPath {
	p := &shortPath{agent: a, running: map[jsonrpc.ID]*shortCall{}}
	p.clock = time.AfterFunc(overseeEvery, p.oversee)
	p.clock.Stop()
	return p
}

// A shortCall is a call that is answered on the short path.
type shortCall struct {
	*running
	path     *shortPath
	conn     *wire.Conn
	id       jsonrpc.ID
	ctx      context.Context
	host     *core.Host // nil if the call has a goroutine of its own
	answered atomic.Bool
}

// errCancelled is why a call ends that its client gives up.
var errCancelled = errors.New("the client cancelled the call")

// intercept is a [wire.Transport]'s Intercept.
func (p *shortPath) intercept(conn *wire.Conn, req *jsonrpc.Request, readOn func(brief bool)) bool {
	switch req.Method {
	case methodCall:
		return p.call(conn, req, readOn)
	case methodCancelled:
		return p.cancel(req.Params)
	}
	return false
}

// call runs a call if it is plain, and reports whether it is.
func (p *shortPath) call(conn *wire.Conn, req *jsonrpc.Request, readOn func(brief bool)) bool {
	session := p.session.Load()
	if session == nil {
		return false
	}
	init := session.InitializeParams()
	if init == nil || init.ProtocolVersion >= modern {
		return false
	}
	params, ok := parsePlainCall(req.Params)
	if !ok || !params.legacy() {
		return false
	}
	run := p.agent.shared.plainRun(params)
	if run == nil {
		return false
	}
	c := &shortCall{running: run, path: p, conn: conn, id: req.ID}
	if init.Capabilities != nil && init.Capabilities.Elicitation != nil {
		c.elicit = func(ctx context.Context, question json.RawMessage) (json.RawMessage, error) {
			return elicit(ctx, session, question)
		}
	}
	c.ctx, c.cancel = context.WithCancelCause(c.client.ctx)
	c.progress = newReporter(c.ctx, session, params.token)
	if c.tool.Pace == core.PaceLong {
		p.begin(c)
		go c.do(c.ctx)
		return true
	}
	c.host = core.NewHost(readOn)
	p.begin(c)
	if readOn != nil {
		c.host.Run(c.ctx, c.tool.Pace, c.do)
	} else {
		go c.host.Run(c.ctx, c.tool.Pace, c.do)
	}
	return true
}

func (p *shortPath) begin(c *shortCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[c.id] = c
	if c.host != nil && !p.ticking {
		p.ticking = true
		p.clock.Reset(overseeEvery)
	}
}

func (c *shortCall) do(ctx context.Context) {
	defer c.cancel(nil)
	defer c.progress.close()
	defer func() { // as protect does for the rest: it costs this call, not the process
		if p := recover(); p != nil {
			if err := c.agent.panicked(methodCall, p); c.settle() {
				_ = c.conn.Write(context.Background(), &jsonrpc.Response{ID: c.id, Error: err})
			}
		}
	}()
	c.finish(c.run(ctx, c.progress))
}

// settle reports whether the call is neither answered nor dropped yet, and that it
// is now. Its id is free from then on.
func (c *shortCall) settle() bool {
	if !c.answered.CompareAndSwap(false, true) {
		return false
	}
	c.path.mu.Lock()
	defer c.path.mu.Unlock()
	delete(c.path.running, c.id)
	return true
}

// finish answers.
func (c *shortCall) finish(res *core.Result) {
	if !c.settle() {
		return
	}
	c.progress.close()
	buf := results.Get().(*[]byte)
	answer := &jsonrpc.Response{ID: c.id}
	if encoded, err := appendResult((*buf)[:0], res); err != nil {
		answer.Error = err
	} else {
		answer.Result = encoded
		*buf = encoded
	}
	_ = c.conn.Write(context.Background(), answer) // an error has ended the session
	if cap(*buf) <= keepResult {
		results.Put(buf)
	}
}

// results are buffers that results are encoded in. Bigger ones than keepResult are
// not kept.
var results = sync.Pool{New: func() any { return new([]byte) }}

const keepResult = 1 << 20

// overseeEvery is how often calls with a host are looked at: a part of the deadline that
// their file operations have.
const overseeEvery = core.PathDeadline / 10

// oversee answers for calls with a host that are stuck in a file operation. One clock
// serves all of them, and ticks only while there are any.
func (p *shortPath) oversee() {
	p.mu.Lock()
	p.ticking = len(p.running) > 0
	if p.ticking {
		p.clock.Reset(overseeEvery)
	}
	calls := slices.Collect(maps.Values(p.running))
	p.mu.Unlock()
	for _, c := range calls {
		if c.host == nil {
			continue
		}
		if err := c.host.Overdue(time.Now()); err != nil {
			c.cancel(err)
			c.agent.server.ended(c.seen, outcomeError)
			c.finish(core.ErrorResult(err))
		}
	}
}

// cancel ends a call of ours; others are the SDK's to end.
func (p *shortPath) cancel(params json.RawMessage) bool {
	id, ok := cancelledID(params)
	if !ok {
		return false
	}
	p.mu.Lock()
	c, ours := p.running[id]
	p.mu.Unlock()
	if ours && c.settle() { // without an answer: the specification asks for silence
		c.cancel(errCancelled)
		c.agent.server.ended(c.seen, outcomeCancelled)
		c.conn.Drop(c.id)
	}
	return ours
}

// cancelledID reads which request a notifications/cancelled is about.
func cancelledID(params json.RawMessage) (jsonrpc.ID, bool) {
	var cancelled struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &cancelled) != nil {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(cancelled.RequestID)
	return id, err == nil
}

type plainCall struct {
	name      string
	arguments json.RawMessage
	meta      map[string]json.RawMessage
	token     any // of progress; nil when the client asks for none
}

// legacy reports whether a call has nothing of the revision without sessions, nor
// the trace that it is a part of.
func (c plainCall) legacy() bool {
	return c.meta[mcp.MetaKeyProtocolVersion] == nil && c.meta[traceParent] == nil
}

// plainRun prepares a plain call; nil if there is no such tool.
func (c *client) plainRun(params plainCall) *running {
	v, err := c.open()
	if err != nil {
		return nil
	}
	tool, ok := v.published.Tool(params.name)
	if !ok {
		return nil
	}
	return &running{agent: c.agent, client: c, tool: tool, seen: c.agent.observed(params.name, params.arguments)}
}

// parsePlainCall reads the params of tools/call if they hold nothing but what
// every revision has.
func parsePlainCall(params json.RawMessage) (plainCall, bool) {
	var c plainCall
	members, err := rawjson.Members(params)
	if err != nil {
		return c, false
	}
	for _, m := range members {
		switch m.Name {
		case "name":
			if json.Unmarshal(m.Value, &c.name) != nil {
				return c, false
			}
		case "arguments":
			c.arguments = m.Value
		case "_meta":
			if json.Unmarshal(m.Value, &c.meta) != nil {
				return c, false
			}
			if token := c.meta["progressToken"]; token != nil && json.Unmarshal(token, &c.token) != nil {
				return c, false
			}
		default:
			return c, false
		}
	}
	return c, true
}
