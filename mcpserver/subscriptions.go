package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// pollInterval is how often the files that clients subscribed to are looked at.
const pollInterval = time.Second

// subscriptions are the resources that clients subscribed to.
type subscriptions struct {
	mu   sync.Mutex
	uris map[string]*subscription
	// sessions are those that subscribe; the SDK does not unsubscribe one that
	// ends.
	sessions map[*mcp.ServerSession]bool
	stop     context.CancelFunc // ends the poll; nil while there is none
}

// A subscription is known by the URI that clients subscribed with: they are
// told of it in their own spelling.
type subscription struct {
	subscribers map[*mcp.ServerSession]int // how often each subscribed
	seen        string                     // see shelf.stamp
}

// stamp is what shows that a file changed, and "" while there is none. files
// keeps what was listed, by skill.
func (v shelf) stamp(ctx context.Context, uri string, files map[string][]core.SkillFile) string {
	name, file, ok := parseSkillURI(uri)
	if !ok {
		return ""
	}
	if _, listed := files[name]; !listed {
		if s, ok := v.skill(name); ok {
			files[name], _ = s.Files.List(ctx) // what cannot be listed is not there
		}
	}
	i := slices.IndexFunc(files[name], func(f core.SkillFile) bool { return f.Path == file })
	if i < 0 {
		return ""
	}
	f := files[name][i]
	return fmt.Sprintf("%d %d", f.Size, f.Modified.UnixNano())
}

// subscribe notes a subscription. It takes every URI: clients that listen name
// several at once, and one that does not exist, or no longer, never changes.
func (a *agent) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	uri, w := req.Params.URI, &a.subscribed
	seen := a.skills.Load().stamp(ctx, uri, map[string][]core.SkillFile{})
	w.mu.Lock()
	defer w.mu.Unlock()
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
	if w.stop == nil {
		poll, stop := context.WithCancel(a.server.closing)
		w.stop = stop
		go a.poll(poll)
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

// drop forgets what a session subscribed to, and ends the poll with the last
// subscription. w.mu is held.
func (w *subscriptions) drop(uri string, session *mcp.ServerSession) {
	delete(w.uris[uri].subscribers, session)
	if len(w.uris[uri].subscribers) == 0 {
		delete(w.uris, uri)
	}
	if len(w.uris) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// poll looks for changes while somebody subscribes.
func (a *agent) poll(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.checkFiles(ctx)
		}
	}
}

// checkFiles tells those who subscribed to a file that changed. A file that came
// or went changes the list of resources too.
func (a *agent) checkFiles(ctx context.Context) {
	w, v := &a.subscribed, *a.skills.Load()
	w.mu.Lock()
	before := make(map[string]string, len(w.uris))
	for uri, x := range w.uris {
		before[uri] = x.seen
	}
	w.mu.Unlock()

	files := map[string][]core.SkillFile{}
	listChanged := false
	for uri, seen := range before {
		now := v.stamp(ctx, uri, files)
		if ctx.Err() != nil {
			return
		}
		if now == seen {
			continue
		}
		listChanged = listChanged || now == "" || seen == ""
		w.mu.Lock()
		if x := w.uris[uri]; x != nil {
			x.seen = now
		}
		w.mu.Unlock()
		if err := a.mcp.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
			a.server.log.Warn("telling of a changed resource", "uri", uri, "error", err)
		}
	}
	if listChanged {
		a.announceResources()
	}
}

// RefreshSkills takes over the skills of the current catalog and tells clients
// what changed: lists, and files that they subscribed to. It is for whoever
// updates the catalog or watches the files.
func (s *Server) RefreshSkills(ctx context.Context) {
	for _, a := range s.agents {
		now := shelf(a.shared.scope.Tools().Skills)
		before := *a.skills.Swap(&now)
		same := func(x, y core.Skill) bool {
			return x.Name == y.Name && x.Description == y.Description && x.Files == y.Files
		}
		if !slices.EqualFunc(before, now, same) {
			a.announceResources()
			a.announcePrompts()
		}
		a.checkFiles(ctx)
	}
}

// unlisted is the name of what is never listed. The SDK tells clients that a list
// changed when what is registered with it does, and in no other way.
const unlisted = "unlisted"

func (a *agent) announceResources() {
	a.mcp.AddResource(&mcp.Resource{URI: skillScheme + unlisted, Name: unlisted}, nil)
	a.mcp.RemoveResources(skillScheme + unlisted)
}

func (a *agent) announcePrompts() {
	a.mcp.AddPrompt(&mcp.Prompt{Name: unlisted}, nil)
	a.mcp.RemovePrompts(unlisted)
}
