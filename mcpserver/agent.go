package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

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
	server     *Server
	definition core.AgentDefinition
	mcp        *mcp.Server
	tools      json.RawMessage // the tools member of tools/list
	parked     parking

	mu      sync.Mutex
	clients map[string]*client // by the id of their session over HTTP
	shared  *client            // everybody without a session
}

// A client is a scope and what is published in it.
type client struct {
	scope     *core.Scope
	published core.Published
	// ctx ends with the client; its calls end with it. The SDK waits for the
	// calls of a session that is closed, without cancelling them.
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// errSessionEnded is why calls end when their session is closed.
var errSessionEnded = errors.New("the session has ended")

func newAgent(s *Server, definition core.AgentDefinition) (*agent, error) {
	a := &agent{server: s, definition: definition, clients: map[string]*client{}}
	shared, err := a.newClient()
	if err != nil {
		return nil, err
	}
	a.shared = shared
	for _, o := range shared.published.Omitted {
		s.log.Debug("left out", "agent", definition.ID, "what", o.Capability.String(), "origin", o.Origin, "reason", o.Reason)
	}
	if a.tools, err = encodeTools(shared.published.Tools); err != nil {
		return nil, err
	}
	a.mcp = mcp.NewServer(&mcp.Implementation{Name: "zen-mcp", Title: "zen-mcp", Version: s.options.Version}, &mcp.ServerOptions{
		Instructions: s.instructions(shared.published.Tools),
		Logger:       sdkLog(s.log),
		// Declared even when empty: the SDK answers the lists in any case.
		Capabilities: &mcp.ServerCapabilities{
			Tools:     &mcp.ToolCapabilities{ListChanged: true},
			Prompts:   &mcp.PromptCapabilities{},
			Resources: &mcp.ResourceCapabilities{},
			//lint:ignore SA1019 clients of the older revisions set a level, and expect an answer
			Logging: &mcp.LoggingCapabilities{},
		},
		// What a client sees depends on its agent: nobody else may reuse it.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope, c.TTLMs = "private", 0 },
	})
	a.mcp.AddReceivingMiddleware(a.answerTools)
	a.mcp.AddReceivingMiddleware(a.protect)
	return a, nil
}

func (a *agent) newClient() (*client, error) {
	o := a.server.options
	scope, err := core.NewScope(o.Env, a.definition, o.Dir, o.Roots)
	if err != nil {
		return nil, err
	}
	c := &client{scope: scope, published: scope.Tools()}
	c.ctx, c.cancel = context.WithCancelCause(a.server.closing)
	return c, nil
}

// client finds whose request it is: on stdio the process, over HTTP the session,
// and in the revision without sessions everybody who may use this agent.
func (a *agent) client(session *mcp.ServerSession) (*client, error) {
	if session == nil || session.ID() == "" {
		return a.shared, nil
	}
	id := session.ID()
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.clients[id]; c != nil {
		return c, nil
	}
	c, err := a.newClient()
	if err != nil {
		return nil, err
	}
	a.clients[id] = c
	go func() {
		session.Wait()
		a.mu.Lock()
		delete(a.clients, id)
		a.mu.Unlock()
		c.cancel(errSessionEnded)
		if err := c.scope.Close(); err != nil {
			a.server.log.Warn("ending a session", "error", err)
		}
	}()
	return c, nil
}

// endSession cancels the calls of a session that its client closes.
func (a *agent) endSession(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.clients[id]; c != nil {
		c.cancel(errSessionEnded)
	}
}

func (a *agent) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	errs := []error{a.shared.scope.Close()}
	for _, c := range a.clients {
		errs = append(errs, c.scope.Close())
	}
	return errors.Join(errs...)
}

// protect is the outermost middleware: a panic anywhere below costs one request,
// not the process.
func (a *agent) protect(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				a.server.log.Error("panic", "method", method, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("internal error in %s; the server goes on", method)}
			}
		}()
		return next(ctx, method, req)
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
		members: []rawjson.Member{{Name: "tools", Value: a.tools}, {Name: "ttlMs", Value: json.RawMessage("0")}, {Name: "cacheScope", Value: json.RawMessage(`"private"`)}},
	}, nil
}

func invalidParams(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
