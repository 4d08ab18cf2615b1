package mcps

import (
	"errors"
	"strings"
	"sync"
	"time"

	"zenmcp/core/rawjson"
)

// listenWait is how long a session over HTTP waits for that stream before it is used.
const listenWait = 500 * time.Millisecond

// follow hears what a server says beside calls, for as long as the session lives.
// A modern one is asked for news of its lists. A legacy one sends them unasked,
// over HTTP on a stream for which it waits. ask says that the server may put
// questions to a user.
func (s *session) follow(ask bool) {
	if l, ok := s.peer.link.(*httpLink); ok && !s.modern {
		opened := make(chan struct{})
		go l.listen(sync.OnceFunc(func() { close(opened) }))
		// Servers exist that put a question to the user on this stream, and lose it if
		// the stream is not there yet.
		if ask {
			s.await(opened, listenWait)
		}
	}
	if !s.modern {
		return
	}
	var wanted []string
	for _, list := range []string{"tools", "prompts", "resources"} {
		if s.announces(list) {
			wanted = append(wanted, `"`+list+`ListChanged":true`)
		}
	}
	if len(wanted) > 0 {
		go s.listen(`"notifications":{` + strings.Join(wanted, ",") + `}`)
	}
}

// await waits for something, for d at most, unless the session ends.
func (s *session) await(done <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

// announces reports whether the server says when a list of it changes.
func (s *session) announces(capability string) bool {
	members, err := rawjson.Members(s.capabilities[capability])
	if err != nil {
		return false
	}
	for _, m := range members {
		if m.Name == "listChanged" {
			return string(m.Value) == "true"
		}
	}
	return false
}

// listen keeps a subscription open. When it ends the lists may have changed
// unnoticed, and it is opened again, unless the server refuses it.
func (s *session) listen(fields string) {
	for delay := time.Second; ; delay = min(2*delay, time.Minute) {
		began := time.Now()
		_, err := s.peer.call(s.ctx, &request{method: "subscriptions/listen", fields: []byte(fields), meta: s.meta(false)})
		var refused *faultError
		if errors.As(err, &refused) {
			s.log.Debug("no news of the server's lists", "error", s.mask.Replace(err.Error()))
			return
		}
		if time.Since(began) > time.Minute {
			delay = time.Second
		}
		if pause(s.ctx, delay) != nil || !s.alive() {
			return
		}
		s.lists.outdate()
	}
}
