package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"zenmcp/core/wire"
	"zenmcp/mcpserver"
)

func serveCommand() command {
	return command{
		name: "serve", summary: "publish the agent as an MCP server on stdio, or over HTTP with --http",
		flags: func(o *options, set *pflag.FlagSet) {
			set.StringVar(&o.auditLog, "audit-log", "", "append a line of JSON to this `FILE` for each call: who called what, never with which arguments")
			set.BoolVar(&o.noReload, "no-reload", false, "read the files once: what changes in them counts after the next start")
			o.http.register(set)
		},
		run: runServe,
	}
}

func runServe(ctx context.Context, o *options, args []string, std streams) error {
	if len(args) > 0 {
		return errUsage{fmt.Errorf("serve takes no arguments, but got %q", args)}
	}
	if o.http.addr != "" {
		return serveHTTP(ctx, o, std)
	}
	if len(o.agents) > 1 {
		return errUsage{errors.New("stdio serves one agent; give --agent once, or --http for several")}
	}
	// First of all: whatever prints from here on must not reach the client.
	out, err := mcpserver.CaptureStdout()
	if err != nil {
		return err
	}
	in, err := mcpserver.CaptureStdin()
	if err != nil {
		return err
	}
	sys, err := newSystem(o, std)
	if err != nil {
		return err
	}
	defer sys.close()
	server, err := sys.server(ctx, o)
	if err != nil {
		return err
	}
	return server.ServeStdio(ctx, &wire.Transport{In: in, Out: out, OnBadLine: func(line []byte, err error) {
		sys.log.Warn("refused a line of the client", "error", err, "bytes", len(line))
	}})
}

// server loads the system, makes the server that the flags describe, and says what
// it can reach.
func (s *system) server(ctx context.Context, o *options) (*mcpserver.Server, error) {
	if err := s.load(ctx, o); err != nil {
		return nil, err
	}
	options := mcpserver.Options{Version: version, Env: s.env, Agents: s.agents, Dir: s.dir, Roots: s.roots}
	if err := s.openAudit(o, &options); err != nil {
		return nil, err
	}
	tracer, stop, err := openTelemetry(ctx, os.Getenv)
	if err != nil {
		return nil, err
	}
	s.onClose(stop)
	options.Tracer = tracer
	if o.http.addr != "" {
		if err := o.http.apply(&options, s.log); err != nil {
			return nil, err
		}
	}
	if err := s.logBoundary(ctx); err != nil {
		return nil, err
	}
	server, err := mcpserver.New(options)
	if err == nil && !o.noReload {
		s.watch(o, server)
	}
	shrinkHeap()
	return server, err
}

func (s *system) openAudit(o *options, options *mcpserver.Options) error {
	if o.auditLog == "" {
		return nil
	}
	f, err := os.OpenFile(o.auditLog, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("--audit-log: %w", err)
	}
	s.onClose(f.Close)
	options.Audit = f
	return nil
}
