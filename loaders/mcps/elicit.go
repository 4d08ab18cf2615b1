package mcps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// Servers ask the user in two ways. In the legacy era they send a request of
// their own, elicitation/create, while a call runs; in the modern one the result
// of the call says what input is required, and the call is made again with it.
// Both end in core.Call.Elicit, behind which the same holds for our own client.

// errCannotAsk is what a server gets whose question reaches nobody.
var errCannotAsk = errors.New("the client that made this call cannot ask its user anything")

// questions are the servers' requests that wait for a user.
type questions struct {
	mu   sync.Mutex
	open map[jsonrpc.ID]context.CancelFunc
}

func (q *questions) begin(ctx context.Context, id jsonrpc.ID) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	q.mu.Lock()
	q.open[id] = cancel
	q.mu.Unlock()
	return ctx, func() {
		cancel()
		q.mu.Lock()
		delete(q.open, id)
		q.mu.Unlock()
	}
}

// cancel obeys a notifications/cancelled.
func (q *questions) cancel(params json.RawMessage) {
	var n struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &n) != nil {
		return
	}
	id, err := jsonrpc.MakeID(n.RequestID)
	if err != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if cancel := q.open[id]; cancel != nil {
		cancel()
	}
}

// elicit answers an elicitation/create. ctx ends when the server takes the
// question back.
func (s *session) elicit(ctx context.Context, msg *jsonrpc.Request, call *pending) {
	var err error
	if call == nil {
		call, err = s.peer.asker()
	}
	var answer json.RawMessage
	if err == nil {
		answer, err = call.put(ctx, msg.Params)
	}
	if ctx.Err() != nil {
		return // the server does not want an answer any more
	}
	if err != nil {
		s.log.Info("a question of the server was not answered", "error", err)
		s.peer.respond(s.ctx, msg.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()})
		return
	}
	s.peer.respond(s.ctx, msg.ID, answer, nil)
}

// put puts a question to the user of the call. While it waits, the call's
// silence does not count.
func (c *pending) put(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	if c == nil || c.req.ask == nil {
		return nil, errCannotAsk
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)() // the call may end first

	c.mu.Lock()
	c.waiting++
	c.mu.Unlock()
	answer, err := c.req.ask(ctx, params)
	c.mu.Lock()
	c.waiting--
	c.mu.Unlock()
	c.push(event{}) // a sign of life
	return answer, err
}

const (
	maxRounds = 10 // of questions in one call
	maxBusy   = 3  // answers in a row that ask nothing and only want another try
)

// converse makes a call, in the modern era as often as the server needs input.
func (s *session) converse(ctx context.Context, r *request) (json.RawMessage, error) {
	r.meta = withTrace(ctx, r.meta)
	fields := slices.Clip(r.fields)
	busy := 0
	for range maxRounds {
		result, err := s.peer.call(ctx, r)
		if err != nil || !s.modern {
			return result, err
		}
		need := neededInput(result)
		if need == nil {
			return result, nil
		}
		core.Waits(ctx) // for a user
		if len(need.requests) == 0 {
			if busy++; busy == maxBusy {
				return nil, errors.New("the server is busy; try again later")
			}
			if err := pause(ctx, time.Duration(busy)*500*time.Millisecond); err != nil {
				return nil, err
			}
		}
		answers, err := need.answer(ctx, r)
		if err != nil {
			return nil, err
		}
		r.fields = append(fields, `,"inputResponses":`...)
		r.fields = append(r.fields, answers...)
		if need.state != nil {
			r.fields = append(append(r.fields, `,"requestState":`...), need.state...)
		}
	}
	return nil, fmt.Errorf("the server wanted input %d times and did not come to an end", maxRounds)
}

// inputs are what a result of type input_required asks for.
type inputs struct {
	requests []rawjson.Member
	state    json.RawMessage
}

// neededInput is nil for every other result.
func neededInput(result json.RawMessage) *inputs {
	if !bytes.Contains(result, []byte("input_required")) {
		return nil
	}
	members, err := rawjson.Members(result)
	if err != nil {
		return nil
	}
	need := &inputs{}
	required := false
	for _, m := range members {
		switch m.Name {
		case "resultType":
			required = string(m.Value) == `"input_required"`
		case "inputRequests":
			need.requests, _ = rawjson.Members(m.Value) // none if it is no object
		case "requestState":
			need.state = m.Value
		}
	}
	if !required {
		return nil
	}
	return need
}

// answer asks the user one thing after the other.
func (n *inputs) answer(ctx context.Context, r *request) (json.RawMessage, error) {
	answers := make([]rawjson.Member, 0, len(n.requests))
	for _, m := range n.requests {
		var q struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(m.Value, &q); err != nil {
			return nil, fmt.Errorf("input request %q: %w", core.Clip(m.Name, 80), err)
		}
		if q.Method != "elicitation/create" {
			return nil, fmt.Errorf("the server wants %q, which this client does not serve", core.Clip(q.Method, 80))
		}
		if r.ask == nil {
			return nil, fmt.Errorf("the server has a question, and %w: %s", errCannotAsk, core.Clip(string(q.Params), 1000))
		}
		answer, err := r.ask(ctx, q.Params)
		if err != nil {
			return nil, fmt.Errorf("asking the user: %w", err)
		}
		answers = append(answers, rawjson.Member{Name: m.Name, Value: answer})
	}
	return rawjson.JoinMembers(answers), nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
