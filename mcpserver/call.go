package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// callTool runs one call. A name that is not published is a protocol error, in
// the same words whether it is denied or does not exist; all that goes wrong in
// the tool is a result that a model can read.
func (a *agent) callTool(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	c, err := a.client(ctx, req.Session)
	if err != nil {
		return nil, err
	}
	isModern := req.ProtocolVersion() >= modern
	if state := req.Params.RequestState; isModern && state != "" {
		run := a.parked.take(state, c)
		if run == nil {
			return nil, invalidParams("unknown requestState: the call it belongs to has ended; call the tool again")
		}
		return run.resume(ctx, req)
	}
	v, err := c.open()
	if err != nil {
		return nil, err
	}
	ctx, seen := a.observe(ctx, req)
	tool, ok := v.published.Tool(req.Params.Name)
	if !ok {
		a.server.ended(seen, outcomeUnknown)
		return nil, invalidParams("%v", v.published.UnknownTool(req.Params.Name))
	}
	run := &running{agent: a, client: c, tool: tool, modern: isModern, seen: seen}
	caps := req.ClientCapabilities()
	switch canAsk := caps != nil && caps.Elicitation != nil; {
	case canAsk && isModern:
		return run.startDetached(ctx, req)
	case canAsk:
		run.elicit = func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
			return elicit(ctx, req.Session, params)
		}
	}
	return run.inline(ctx, req)
}

// running is one call of a tool.
type running struct {
	agent  *agent
	client *client
	tool   core.Tool
	modern bool
	seen   *observed
	elicit func(context.Context, json.RawMessage) (json.RawMessage, error)

	// The rest serves calls that may ask their client in the revision without
	// sessions. Such a call outlives the request that began it: it is parked
	// while the client's user answers, and goes on in the next request.
	progress *reporter
	cancel   context.CancelCauseFunc
	done     chan *core.Result
	asks     chan question
	pending  question
}

// A question is an elicitation that waits for its answer.
type question struct {
	params json.RawMessage
	answer chan json.RawMessage
}

// inline runs the tool in the request's own goroutine.
func (r *running) inline(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	ctx, cancel := r.client.during(ctx)
	defer cancel(nil)
	return r.result(r.report(ctx, req.Session, req.Params.GetProgressToken()))
}

// report runs the tool with its progress going to the client.
func (r *running) report(ctx context.Context, session *mcp.ServerSession, token any) *core.Result {
	progress := newReporter(ctx, session, token)
	defer progress.close()
	return r.run(ctx, progress)
}

func (r *running) run(ctx context.Context, progress *reporter) *core.Result {
	s := r.agent.server
	defer s.work.begin()()
	defer s.clients.use(r.client, true)()
	call := &core.Call{Arguments: r.seen.arguments, Elicit: r.elicit, Sessionless: r.modern}
	if progress != nil {
		call.Progress = progress.report
	}
	return s.run(ctx, r.seen, func(ctx context.Context) *core.Result { return r.tool.Do(ctx, s.log, call) })
}

func (r *running) result(res *core.Result) (mcp.Result, error) {
	members, err := encodeResult(res)
	if err != nil {
		return nil, err
	}
	return &rawResult{modern: r.modern, members: members}, nil
}

// startDetached runs the tool so that it can outlive the request.
func (r *running) startDetached(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	runCtx, cancel := r.client.during(context.WithoutCancel(ctx))
	r.cancel, r.done, r.asks = cancel, make(chan *core.Result, 1), make(chan question)
	r.elicit = r.ask
	r.progress = newReporter(ctx, req.Session, req.Params.GetProgressToken())
	go func() {
		defer cancel(nil)
		r.done <- r.run(runCtx, r.progress)
	}()
	return r.wait(ctx)
}

// ask is what the tool calls: it hands the question to the request that waits.
func (r *running) ask(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	q := question{params, make(chan json.RawMessage, 1)}
	select {
	case r.asks <- q:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// inputID names the one question that a call asks at a time.
const inputID = "elicitation"

// wait waits for what comes first: the result, a question, or the client's leave.
func (r *running) wait(ctx context.Context) (mcp.Result, error) {
	select {
	case res := <-r.done:
		r.progress.close()
		r.cancel(nil)
		return r.result(res)
	case <-ctx.Done():
		r.progress.close()
		r.cancel(context.Cause(ctx))
		return nil, context.Cause(ctx)
	case r.pending = <-r.asks:
	}
	r.progress.close()
	requests, err := rawjson.Marshal(map[string]any{inputID: map[string]any{"method": "elicitation/create", "params": r.pending.params}})
	if err != nil {
		r.cancel(err)
		return nil, err
	}
	state := r.agent.parked.put(r)
	return &rawResult{modern: true, members: []rawjson.Member{
		{Name: "resultType", Value: json.RawMessage(`"input_required"`)},
		{Name: "inputRequests", Value: requests},
		{Name: "requestState", Value: rawjson.AppendString(nil, state)},
	}}, nil
}

// resume gives the tool its answer and waits on.
func (r *running) resume(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	response, ok := req.Params.InputResponses[inputID]
	if !ok {
		r.cancel(errors.New("the client gave no answer"))
		return nil, invalidParams("inputResponses lacks %q", inputID)
	}
	answer, err := rawjson.Marshal(response)
	if err != nil {
		r.cancel(err)
		return nil, err
	}
	r.progress.move(ctx, req.Session, req.Params.GetProgressToken())
	r.pending.answer <- answer
	return r.wait(ctx)
}

// elicit asks the user of a client of the older revisions.
func elicit(ctx context.Context, session *mcp.ServerSession, params json.RawMessage) (json.RawMessage, error) {
	var p mcp.ElicitParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("elicitation: %w", err)
	}
	res, err := session.Elicit(ctx, &p)
	if err != nil {
		return nil, fmt.Errorf("elicitation: %w", err)
	}
	return rawjson.Marshal(res)
}

// parkLimit is how long a user may take to answer.
const parkLimit = 10 * time.Minute

// parking holds calls that wait for their client's next request.
type parking struct {
	mu   sync.Mutex
	runs map[string]*running
}

// put parks a call and returns the state that fetches it. The state is a random
// name, not a description, so there is nothing in it to forge.
func (p *parking) put(r *running) string {
	state := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs = map[string]*running{}
	}
	p.runs[state] = r
	time.AfterFunc(parkLimit, func() {
		if r := p.take(state, r.client); r != nil {
			r.cancel(fmt.Errorf("nobody answered within %v", parkLimit))
		}
	})
	return state
}

// take fetches a parked call for the client that it belongs to; nil otherwise.
func (p *parking) take(state string, c *client) *running {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[state]
	if r == nil || r.client != c {
		return nil
	}
	delete(p.runs, state)
	return r
}
