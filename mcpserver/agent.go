package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// An agent is one definition as an MCP server. The SDK's server does the
// protocol; tools/list and tools/call are answered here, since the SDK sorts
// tools by name, encodes a result several times, and lets a panic end the
// process.
type agent struct {
	server *Server
	id     string
	mcp    *mcp.Server
	info   *mcp.Implementation // what it says of itself
	parked parking

	now        atomic.Pointer[edition]
	listed     atomic.Pointer[fingerprint] // of the resources, as clients know them
	subscribed subscriptions

	shared *client // everybody without a session or a credential
}

func newAgent(s *Server, definition core.AgentDefinition) (*agent, error) {
	a := &agent{server: s, id: definition.ID}
	a.shared = newClient(a, "", nil)
	if err := a.renew(definition); err != nil {
		return nil, err
	}
	for _, o := range a.shared.view.Load().published.Omitted {
		s.log.Debug("left out", "agent", a.id, "what", o.Capability.String(), "origin", o.Origin, "reason", o.Reason)
	}
	a.info = &mcp.Implementation{Name: "zen-mcp", Title: "zen-mcp", Version: s.options.Version}
	a.mcp = mcp.NewServer(a.info, &mcp.ServerOptions{
		Logger:       sdkLog(s.log),
		Capabilities: capabilities(),
		// What a client sees depends on its agent: nobody else may reuse it.
		SetCacheable:       func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope, c.TTLMs = "private", 0 },
		SubscribeHandler:   a.subscribe,
		UnsubscribeHandler: a.unsubscribe,
	})
	if err := a.addSkillsExtension(); err != nil {
		return nil, err
	}
	a.mcp.AddReceivingMiddleware(a.answerTools)
	a.mcp.AddReceivingMiddleware(a.answerSkills)
	a.mcp.AddReceivingMiddleware(a.instruct)
	a.mcp.AddReceivingMiddleware(a.admit)
	a.mcp.AddReceivingMiddleware(a.protect)
	a.mcp.AddSendingMiddleware(afterGreeting)
	return a, nil
}

// capabilities are declared even where a list is empty: the SDK answers the lists
// in any case.
func capabilities() *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{
		Tools:       &mcp.ToolCapabilities{ListChanged: true},
		Prompts:     &mcp.PromptCapabilities{ListChanged: true},
		Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
		Completions: &mcp.CompletionCapabilities{},
		//lint:ignore SA1019 clients of the older revisions set a level, and expect an answer
		Logging: &mcp.LoggingCapabilities{},
	}
	c.AddExtension(skillsExtension, map[string]any{"directoryRead": true})
	return c
}

// client finds whose request it is.
func (a *agent) client(ctx context.Context, session *mcp.ServerSession) (*client, error) {
	who := principalOf(ctx).name
	switch {
	case session != nil && session.ID() != "":
		if c := a.server.clients.session(session.ID(), who, a); c != nil {
			return c, nil
		}
		return nil, errSessionEnded
	case who != "":
		return a.server.clients.credential(a, who)
	}
	return a.shared, nil
}

// protect is the outermost middleware: a panic anywhere below costs one request,
// not the process.
func (a *agent) protect(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				res, err = nil, a.panicked(method, p)
			}
		}()
		return next(ctx, method, req)
	}
}

// panicked logs a panic that was recovered, and gives the error for the client.
func (a *agent) panicked(method string, p any) error {
	a.server.log.Error("panic", "method", method, "panic", p, "stack", string(debug.Stack()))
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("internal error in %s; the server goes on", method)}
}

// admit registers a session over HTTP when it begins, and lets nobody listen for
// longer than there is a server.
func (a *agent) admit(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if session, ok := req.GetSession().(*mcp.ServerSession); ok && method == "initialize" && session.ID() != "" {
			if err := a.server.clients.open(a, principalOf(ctx).name, session); err != nil {
				return nil, err
			}
		}
		if method == methodListen {
			// It ends with its client, or with the server, and then has a result.
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(a.server.closing, cancel)()
		}
		return next(ctx, method, req)
	}
}

// instruct tells a client that begins what is here now: the SDK's server would
// always say the same.
func (a *agent) instruct(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		switch r := res.(type) {
		case *mcp.InitializeResult:
			r.Instructions = a.now.Load().instructions
		case *mcp.DiscoverResult:
			r.Instructions = a.now.Load().instructions
		}
		return res, err
	}
}

// answerTools answers what is about tools and passes the rest on.
func (a *agent) answerTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch r := req.(type) {
		case *mcp.ListToolsRequest:
			return a.listTools(r)
		case *mcp.CallToolRequest:
			return a.callTool(ctx, r)
		}
		return next(ctx, method, req)
	}
}

// listTools answers with all tools, in the order of publication, on one page.
func (a *agent) listTools(req *mcp.ListToolsRequest) (mcp.Result, error) {
	if req.Params != nil && req.Params.Cursor != "" {
		return nil, invalidParams("unknown cursor: the list has one page")
	}
	return &rawResult{
		modern:  req.ProtocolVersion() >= modern,
		members: []rawjson.Member{{Name: "tools", Value: a.now.Load().tools}, {Name: "ttlMs", Value: json.RawMessage("0")}, {Name: "cacheScope", Value: json.RawMessage(`"private"`)}},
	}, nil
}

func invalidParams(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
