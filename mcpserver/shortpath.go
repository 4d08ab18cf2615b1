package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

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
	running map[jsonrpc.ID]context.CancelCauseFunc
}

// errCancelled is why a call ends that its client gives up.
var errCancelled = errors.New("the client cancelled the call")

// intercept is a [wire.Transport]'s Intercept.
func (p *shortPath) intercept(conn *wire.Conn, req *jsonrpc.Request) bool {
	switch req.Method {
	case "tools/call":
		return p.call(conn, req)
	case "notifications/cancelled":
		return p.cancel(req.Params)
	}
	return false
}

// call runs a call if it is plain, and reports whether it is.
func (p *shortPath) call(conn *wire.Conn, req *jsonrpc.Request) bool {
	session := p.session.Load()
	if session == nil {
		return false
	}
	init := session.InitializeParams()
	if init == nil || init.ProtocolVersion >= modern {
		return false
	}
	params, ok := parsePlainCall(req.Params)
	if !ok {
		return false
	}
	c := p.agent.shared
	v, err := c.open()
	if err != nil {
		return false
	}
	tool, ok := v.published.Tool(params.name)
	if !ok {
		return false
	}
	run := &running{agent: p.agent, client: c, tool: tool, seen: p.agent.observed(params.name, params.arguments)}
	if init.Capabilities != nil && init.Capabilities.Elicitation != nil {
		run.elicit = func(ctx context.Context, question json.RawMessage) (json.RawMessage, error) {
			return elicit(ctx, session, question)
		}
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	p.mu.Lock()
	p.running[req.ID] = cancel
	p.mu.Unlock()
	go func() {
		defer cancel(nil)
		res := run.report(ctx, session, params.token)
		p.mu.Lock()
		delete(p.running, req.ID)
		p.mu.Unlock()
		if errors.Is(context.Cause(ctx), errCancelled) {
			conn.Drop(req.ID)
			return
		}
		answer := &jsonrpc.Response{ID: req.ID}
		if members, err := encodeResult(res); err != nil {
			answer.Error = err
		} else if answer.Result, err = (&rawResult{members: members}).MarshalJSON(); err != nil {
			answer.Error = err
		}
		_ = conn.Write(context.Background(), answer) // an error has ended the session
	}()
	return true
}

// cancel ends a call of ours; others are the SDK's to end.
func (p *shortPath) cancel(params json.RawMessage) bool {
	var cancelled struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &cancelled) != nil {
		return false
	}
	id, err := jsonrpc.MakeID(cancelled.RequestID)
	if err != nil {
		return false
	}
	p.mu.Lock()
	cancel, ours := p.running[id]
	p.mu.Unlock()
	if ours {
		cancel(errCancelled)
	}
	return ours
}

type plainCall struct {
	name      string
	arguments json.RawMessage
	token     any // of progress; nil when the client asks for none
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
			var meta map[string]json.RawMessage
			if json.Unmarshal(m.Value, &meta) != nil {
				return c, false
			}
			if meta[mcp.MetaKeyProtocolVersion] != nil || meta[traceParent] != nil {
				return c, false
			}
			if token := meta["progressToken"]; token != nil && json.Unmarshal(token, &c.token) != nil {
				return c, false
			}
		default:
			return c, false
		}
	}
	return c, true
}
