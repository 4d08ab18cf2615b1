package mcpserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// heartbeat is how often a call that says nothing itself reports that it is
// still running.
const heartbeat = 2 * time.Second

// heartbeatStep is what such a report adds to the progress. It is small because
// values must increase, and the tool may begin to count from 1 at any time.
const heartbeatStep = 0.001

// A reporter sends the progress of one call to the client that asked for it: with
// the client's own token, with increasing values, and never after the result. A
// nil reporter, of a call whose client did not ask, does nothing.
type reporter struct {
	began time.Time

	mu      sync.Mutex // held while sending, so that close is a barrier
	ctx     context.Context
	session *mcp.ServerSession
	token   any
	last    float64
	spoke   bool // the tool reports itself
	closed  bool
	timer   *time.Timer
}

// newReporter returns nil when the client gave no token.
func newReporter(ctx context.Context, session *mcp.ServerSession, token any) *reporter {
	if token == nil {
		return nil
	}
	r := &reporter{began: time.Now(), ctx: ctx, session: session, token: token}
	r.timer = time.AfterFunc(heartbeat, r.beat)
	return r
}

// report is what the tool calls.
func (r *reporter) report(p core.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spoke = true
	r.send(p)
}

func (r *reporter) beat() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spoke || r.closed {
		return
	}
	r.send(core.Progress{Done: r.last + heartbeatStep, Message: fmt.Sprintf("running for %v", time.Since(r.began).Round(time.Second))})
	r.timer.Reset(heartbeat)
}

func (r *reporter) send(p core.Progress) {
	if r.closed || p.Done <= r.last {
		return
	}
	r.last = p.Done
	// An error means that the client is gone, which the call learns by itself.
	_ = r.session.NotifyProgress(r.ctx, &mcp.ProgressNotificationParams{
		ProgressToken: r.token,
		Progress:      p.Done, Total: p.Total, Message: p.Message,
	})
}

// close ends the reports: none is sent once it has returned.
func (r *reporter) close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.timer.Stop()
}

// move lets a resumed call report to the request that resumed it.
func (r *reporter) move(ctx context.Context, session *mcp.ServerSession, token any) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.session, r.token = ctx, session, token
	r.closed = token == nil
	if !r.closed {
		r.timer.Reset(heartbeat)
	}
}
