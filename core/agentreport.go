package core

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"zenmcp/core/rawjson"
)

// stepsHeartbeat is how long a run may say nothing before it repeats what it is
// doing: clients give up on calls that are silent for a minute.
const stepsHeartbeat = 5 * time.Second

// steps report the progress of a run: a line for each thing that it does.
type steps struct {
	report func(Progress) // nil when nobody asked

	mu     sync.Mutex
	done   float64
	line   string
	since  time.Time // when the line was said first
	timer  *time.Timer
	closed bool
}

func newSteps(call *Call) *steps {
	s := &steps{report: call.Progress}
	if s.report != nil {
		s.timer = time.AfterFunc(stepsHeartbeat, s.beat)
	}
	return s
}

func (s *steps) say(format string, args ...any) {
	if s.report == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line, s.since = fmt.Sprintf(format, args...), time.Now()
	s.send(s.line)
}

func (s *steps) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send(fmt.Sprintf("%s (%v)", s.line, time.Since(s.since).Round(time.Second)))
}

func (s *steps) send(message string) {
	if s.closed {
		return
	}
	s.done++
	s.report(Progress{Done: s.done, Message: message})
	s.timer.Reset(stepsHeartbeat)
}

// close ends the reports: none is sent once it has returned.
func (s *steps) close() {
	if s.report == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.timer.Stop()
}

// A transcript is the file that a run's messages are written to as they come, or
// nil when there is none.
type transcript struct {
	file   *os.File
	scope  *Scope
	failed bool
}

func (s *Scope) newTranscript(agent string) *transcript {
	if s.StateDir() == "" {
		return nil
	}
	file, err := s.OutputFile(plainName(agent) + ".jsonl")
	if err != nil {
		s.Log().Warn("no transcript", "agent", agent, "error", err)
		return nil
	}
	return &transcript{file: file, scope: s}
}

// plainName keeps what may be in the name of a file on every system.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, Clip(name, 64))
}

func (t *transcript) write(v any) {
	if t == nil || t.failed {
		return
	}
	line, err := rawjson.Marshal(v)
	if err == nil {
		_, err = t.file.Write(append(line, '\n'))
	}
	if err != nil {
		t.failed = true // once is enough to know
		t.scope.Log().Warn("the transcript ends early", "file", t.path(), "error", err)
	}
}

func (t *transcript) path() string {
	if t == nil {
		return ""
	}
	return t.file.Name()
}

func (t *transcript) close() {
	if t == nil {
		return
	}
	if err := t.file.Close(); err != nil {
		t.scope.Log().Warn("closing a transcript", "file", t.path(), "error", err)
	}
}
