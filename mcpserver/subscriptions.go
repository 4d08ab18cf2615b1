package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// subscriptions are the resources that clients subscribed to.
type subscriptions struct {
	mu   sync.Mutex
	uris map[string]*subscription
	// sessions are those that subscribe; the SDK does not unsubscribe one that
	// ends.
	sessions map[*mcp.ServerSession]bool
}

// A subscription is known by the URI that clients subscribed with: they are
// told of it in their own spelling.
type subscription struct {
	subscribers map[*mcp.ServerSession]int // how often each subscribed
	seen        string                     // see shelf.stamp
}

// stamp is what shows that a file changed, and "" while there is none.
func (v shelf) stamp(ctx context.Context, uri string, look listings) string {
	name, file, ok := parseSkillURI(uri)
	if !ok {
		return ""
	}
	s, ok := v.skill(name)
	if !ok {
		return ""
	}
	files := look.files(ctx, s)
	i := slices.IndexFunc(files, func(f core.SkillFile) bool { return f.Path == file })
	if i < 0 {
		return ""
	}
	f := files[i]
	return fmt.Sprintf("%d %d", f.Size, f.Modified.UnixNano())
}

// subscribe notes a subscription. It takes every URI: clients that listen name
// several at once, and one that does not exist, or no longer, never changes.
func (a *agent) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	uri, w := req.Params.URI, &a.subscribed
	w.mu.Lock() // a reload that comes now must find the subscription
	defer w.mu.Unlock()
	seen := a.now.Load().skills.stamp(ctx, uri, listings{})
	if w.uris == nil {
		w.uris, w.sessions = map[string]*subscription{}, map[*mcp.ServerSession]bool{}
	}
	if w.uris[uri] == nil {
		w.uris[uri] = &subscription{subscribers: map[*mcp.ServerSession]int{}, seen: seen}
	}
	w.uris[uri].subscribers[req.Session]++
	if !w.sessions[req.Session] {
		w.sessions[req.Session] = true
		go func() {
			req.Session.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.sessions, req.Session)
			for uri := range w.uris {
				w.drop(uri, req.Session)
			}
		}()
	}
	return nil
}

func (a *agent) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	w := &a.subscribed
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.uris[req.Params.URI]; x != nil {
		if x.subscribers[req.Session]--; x.subscribers[req.Session] <= 0 {
			w.drop(req.Params.URI, req.Session)
		}
	}
	return nil
}

// drop forgets what a session subscribed to. w.mu is held.
func (w *subscriptions) drop(uri string, session *mcp.ServerSession) {
	delete(w.uris[uri].subscribers, session)
	if len(w.uris[uri].subscribers) == 0 {
		delete(w.uris, uri)
	}
}

// checkFiles tells those who subscribed to a file that changed.
func (a *agent) checkFiles(ctx context.Context, look listings) {
	w, v := &a.subscribed, a.now.Load().skills
	w.mu.Lock()
	before := make(map[string]string, len(w.uris))
	for uri, x := range w.uris {
		before[uri] = x.seen
	}
	w.mu.Unlock()

	for uri, seen := range before {
		now := v.stamp(ctx, uri, look)
		if ctx.Err() != nil {
			return
		}
		if now == seen {
			continue
		}
		w.mu.Lock()
		if x := w.uris[uri]; x != nil {
			x.seen = now
		}
		w.mu.Unlock()
		if err := a.mcp.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
			a.server.log.Warn("telling of a changed resource", "uri", uri, "error", err)
		}
	}
}
