package main

import (
	"context"
	"fmt"
	"log/slog"

	"zenmcp/builtin"
	"zenmcp/core"
)

// boundary says in one line what an agent's scope can reach on this machine.
func boundary(scope *core.Scope) string {
	roots := scope.Roots()
	commands, err := builtin.CommandReach(scope)
	if err != nil {
		commands = "exec and exec_async are left out, since " + err.Error()
	}
	if len(roots) == 0 {
		return "file tools and commands reach all that this user may; --root DIR confines them"
	}
	return fmt.Sprintf("file tools reach %q; %s; user tools and MCP servers are the user's own programs, and not confined", roots, commands)
}

// logBoundary tells an operator at the start what each agent can reach. That
// commands get around the roots is a warning.
func (s *system) logBoundary(ctx context.Context) error {
	if s.roots.List() == nil && !s.log.Enabled(ctx, slog.LevelInfo) {
		return nil
	}
	for _, agent := range s.agents {
		scope, err := s.scope(agent)
		if err != nil {
			return err
		}
		level := slog.LevelInfo
		if len(scope.Roots()) > 0 && scope.Commands().Unconfined {
			level = slog.LevelWarn
		}
		s.log.Log(ctx, level, "boundary: "+boundary(scope), "agent", agent.ID)
		if err := scope.Close(); err != nil {
			return err
		}
	}
	return nil
}
