package mcpserver

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// writeLimit is how long one event may take to leave: a peer that does not read
// must not hold up what is sent to others.
const writeLimit = 30 * time.Second

// A stream is a response that may be an event stream. It keeps such a stream
// alive with comments, tells proxies not to hold it back, and bounds each write.
type stream struct {
	http.ResponseWriter
	control *http.ResponseController

	patience  time.Duration // how long one write may take
	principal string        // for the access line

	mu     sync.Mutex
	begun  bool
	status int         // 0 until it has begun
	timer  *time.Timer // nil unless it is an event stream
}

func newStream(w http.ResponseWriter, patience time.Duration) *stream {
	return &stream{ResponseWriter: w, control: http.NewResponseController(w), patience: patience}
}

// Unwrap is for http.ResponseController.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// begin looks at the headers before they are sent.
func (s *stream) begin(status int) {
	if s.begun {
		return
	}
	s.begun, s.status = true, status
	if strings.HasPrefix(s.Header().Get("Content-Type"), eventStream) {
		s.Header().Set("X-Accel-Buffering", "no")
		s.timer = time.AfterFunc(keepAlive, s.comment)
	}
}

// WriteHeader implements http.ResponseWriter.
func (s *stream) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(status)
	s.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(http.StatusOK)
	if s.timer != nil {
		s.timer.Reset(keepAlive)
	}
	s.limit()
	return s.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController calls.
func (s *stream) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(http.StatusOK)
	s.limit()
	return s.control.Flush()
}

// Flush implements http.Flusher.
func (s *stream) Flush() { _ = s.FlushError() }

// limit gives the next write its deadline. Not every writer has deadlines.
func (s *stream) limit() { _ = s.control.SetWriteDeadline(time.Now().Add(s.patience)) }

// comment writes a line that clients ignore.
func (s *stream) comment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		return
	}
	s.limit()
	if _, err := io.WriteString(s.ResponseWriter, ": still here\n\n"); err != nil || s.control.Flush() != nil {
		return
	}
	s.timer.Reset(keepAlive)
}

// stop ends the comments; the response belongs to the server again.
func (s *stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	_ = s.control.SetWriteDeadline(time.Time{}) // the connection may serve on
}
