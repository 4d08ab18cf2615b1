package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"zenmcp/core"
	"zenmcp/mcpserver"
)

// watchAfter is how long after the start the watch begins. It begins with reading
// everything again, so nothing is missed, and the client that waits for its first
// answer has the machine to itself.
const watchAfter = 500 * time.Millisecond

// watch reads the files again whenever they change, until the system closes.
func (s *system) watch(o *options, server *mcpserver.Server) {
	for _, omission := range s.env.Catalog().Omitted() {
		s.said.note(omission.Error()) // `zen-mcp tools` says it, and it is not new
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-time.After(watchAfter):
		case <-ctx.Done():
		}
		s.places.Watch(ctx, s.log, func(ctx context.Context) { s.reload(ctx, o, server) })
	}()
	s.onClose(func() error { cancel(); <-done; return nil })
}

// reload publishes what the files say now. What is new and wrong is logged once. A
// file that is wrong counts as it was before: somebody is just writing it, and must
// be able to go on with what was there.
func (s *system) reload(ctx context.Context, o *options, server *mcpserver.Server) {
	s.said.next()
	config, warnings, err := s.places.Config()
	if err != nil {
		s.keep("config.json", err)
		config = s.env.Config()
	}
	s.warn(warnings)
	for i := range s.agents {
		if err := s.reloadAgent(i, o); err != nil {
			s.keep(fmt.Sprintf("agent %q", s.agents[i].ID), err)
		}
	}
	catalog, err := core.Discover(ctx, s.sources...)
	if err != nil {
		return // the server ends
	}
	for _, omission := range catalog.Omitted() {
		if s.said.note(omission.Error()) {
			s.tell(omission)
		}
	}
	if err := server.Reload(ctx, config, catalog, s.agents); err != nil && s.said.note(err.Error()) {
		s.log.Error("an agent cannot be used as its file says", "error", err)
	}
	s.log.Debug("read the files again")
}

// reloadAgent reads the definition of an agent. One whose file is gone stays: what
// would take its place, as the built-in agent that permits everything, is not what
// its clients were given.
func (s *system) reloadAgent(i int, o *options) error {
	agent, err := s.places.Agent(s.agents[i].ID)
	if before := s.files[i]; err == nil && before != "" && agent.File != before {
		if _, gone := os.Lstat(before); errors.Is(gone, fs.ErrNotExist) {
			err = fmt.Errorf("%q is gone", before)
		}
	}
	if err != nil {
		return err
	}
	s.warn(agent.Warnings)
	if agent.Permissions, err = narrow(agent.Permissions, o.allow, o.deny); err != nil {
		return err
	}
	s.agents[i], s.files[i] = agent.AgentDefinition, agent.File
	return nil
}

// tell says what a change of files has led to, without an excerpt: it might hold half
// a secret. What somebody wanted is no warning.
func (s *system) tell(o core.Omission) {
	level, happened := slog.LevelWarn, "something is left out, since a file has changed"
	var shadowed *core.ShadowedError
	switch {
	case o.Offered:
		happened = "something is wrong in a file"
	case errors.Is(o, core.ErrDisabled), errors.As(o, &shadowed):
		level = slog.LevelInfo
	}
	reason, _, _ := strings.Cut(o.Reason, "\n")
	s.log.Log(context.Background(), level, happened, "what", o.Capability.String(), "file", o.Origin, "reason", reason)
}

// keep says why something stays as it was.
func (s *system) keep(what string, err error) {
	if s.said.note(what + err.Error()) {
		s.log.Warn("a change is not used; what was there before stays in force", "what", what, "error", err)
	}
}

// notes are what was said, so that it is not said again at the next reload.
type notes struct{ before, now map[string]bool }

// note reports whether a message is new.
func (n *notes) note(message string) bool {
	if n.now == nil {
		n.now = map[string]bool{}
	}
	n.now[message] = true
	return !n.before[message]
}

// next begins another round: what was not said in the last one is new again.
func (n *notes) next() { n.before, n.now = n.now, nil }
