package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"zenmcp/core/wire"
	"zenmcp/mcpserver"
)

func serveCommand() command {
	return command{
		name: "serve", summary: "publish the agent as an MCP server on stdio, or over HTTP with --http",
		flags: func(o *options, set *pflag.FlagSet) { o.http.register(set) },
		run:   runServe,
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
	sys, server, err := newServer(ctx, o, std)
	if err != nil {
		return err
	}
	defer sys.close()
	return server.ServeStdio(ctx, &wire.Transport{In: in, Out: out, OnBadLine: func(line []byte, err error) {
		sys.log.Warn("refused a line of the client", "error", err, "bytes", len(line))
	}})
}

// newServer makes the server that the flags describe, and says what it can reach.
func newServer(ctx context.Context, o *options, std streams) (*system, *mcpserver.Server, error) {
	sys, err := assemble(ctx, o, std)
	if err != nil {
		return nil, nil, err
	}
	options := mcpserver.Options{Version: version, Env: sys.env, Agents: sys.agents, Dir: sys.dir, Roots: sys.roots}
	if o.http.addr != "" {
		err = o.http.apply(&options, sys.log)
	}
	var server *mcpserver.Server
	if err == nil {
		server, err = mcpserver.New(options)
	}
	if err == nil {
		err = sys.logBoundary(ctx)
	}
	if err != nil {
		sys.close()
		return nil, nil, err
	}
	return sys, server, nil
}
