package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// An outcome is how a call ended.
type outcome string

const (
	outcomeOK        outcome = "ok"
	outcomeError     outcome = "error"     // the result is one
	outcomeCancelled outcome = "cancelled" // by its client, or because that is gone
	outcomeTimeout   outcome = "timeout"
	outcomeLimited   outcome = "limited" // it was not run
	outcomeUnknown   outcome = "unknown" // there is no such tool
)

// observed is what metrics, traces and the audit log may know of a call.
type observed struct {
	began                  time.Time
	request                string // X-Request-Id; "" on stdio
	principal, agent, tool string
	arguments              json.RawMessage // for their digest only
	over                   atomic.Bool     // it was told how the call ended
}

// headerRequest names a request in the logs of all that it passes through.
const headerRequest = "X-Request-Id"

// observed notes a call that came without any headers.
func (a *agent) observed(tool string, arguments json.RawMessage) *observed {
	return &observed{began: time.Now(), agent: a.id, tool: tool, arguments: arguments}
}

// observe notes who calls what, and takes up the trace that the call belongs to.
func (a *agent) observe(ctx context.Context, req *mcp.CallToolRequest) (context.Context, *observed) {
	c := a.observed(req.Params.Name, req.Params.Arguments)
	c.principal = principalOf(ctx).name
	var header http.Header
	if extra := req.GetExtra(); extra != nil {
		header = extra.Header
	}
	c.request = header.Get(headerRequest)
	return withTrace(ctx, req.Params.GetMeta(), header), c
}

// run runs a call in its limits and tells all that watch how it ended.
func (s *Server) run(ctx context.Context, c *observed, do func(context.Context) *core.Result) *core.Result {
	defer s.metrics.runs()()
	ctx, span := s.span(ctx, c)
	res, end := s.limit(ctx, c, do)
	endSpan(span, end)
	s.ended(c, end)
	return res
}

// ended tells metrics and audit log, once for each call: one that is stuck in a file
// operation has ended for its client, and may come back or not.
func (s *Server) ended(c *observed, end outcome) {
	if !c.over.CompareAndSwap(false, true) {
		return
	}
	took := time.Since(c.began)
	s.metrics.saw(c, end, took)
	s.audit.write(c, end, took)
}

// limit runs a call unless its principal has too many, and no longer than it may.
func (s *Server) limit(ctx context.Context, c *observed, do func(context.Context) *core.Result) (*core.Result, outcome) {
	leave, err := s.limits.enter(c.principal)
	if err != nil {
		return core.ErrorResult(err), outcomeLimited
	}
	defer leave()
	var tooLong error
	if limit := s.limits.Timeout; limit > 0 {
		tooLong = fmt.Errorf("stopped after %v, the longest that one call may take here", limit)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, tooLong)
		defer cancel()
	}
	res := do(ctx)
	switch {
	case ctx.Err() == nil && res.IsError:
		return res, outcomeError
	case ctx.Err() == nil:
		return res, outcomeOK
	case tooLong != nil && errors.Is(context.Cause(ctx), tooLong):
		res.IsError = true
		res.Blocks = append(res.Blocks, core.Text(tooLong.Error()))
		return res, outcomeTimeout
	}
	return res, outcomeCancelled
}
