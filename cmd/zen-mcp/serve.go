package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"zenmcp/core/wire"
	"zenmcp/mcpserver"
)

func serveCommand() command {
	return command{
		name: "serve", summary: "publish the agent as an MCP server on stdio, or over HTTP with --http",
		flags: func(o *options, set *pflag.FlagSet) {
			set.StringVar(&o.http, "http", "", "serve streamable HTTP at `ADDR` instead of stdio; \":8080\" is 127.0.0.1:8080")
			set.DurationVar(&o.sessionTimeout, "session-timeout", 2*time.Hour, "with --http, end a session that nobody used for `TIME`")
			set.IntVar(&o.maxSessions, "max-sessions", 1000, "with --http, keep at most `N` sessions; the one unused for longest makes room")
		},
		run: runServe,
	}
}

func runServe(ctx context.Context, o *options, args []string, std streams) error {
	if len(args) > 0 {
		return errUsage{fmt.Errorf("serve takes no arguments, but got %q", args)}
	}
	if o.http != "" {
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

func serveHTTP(ctx context.Context, o *options, std streams) error {
	if len(o.roots) == 0 {
		return errUsage{errors.New("over HTTP the file tools need --root DIR to stay in; --root / lets them reach everything")}
	}
	addr, err := loopback(o.http)
	if err != nil {
		return errUsage{err}
	}
	sys, server, err := newServer(ctx, o, std)
	if err != nil {
		return err
	}
	defer sys.close()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("--http %q: %w", o.http, err)
	}
	fmt.Fprintf(std.err, "zen-mcp: serving at http://%s/mcp\n", l.Addr())
	return server.ServeHTTP(ctx, l)
}

func newServer(ctx context.Context, o *options, std streams) (*system, *mcpserver.Server, error) {
	sys, err := assemble(ctx, o, std)
	if err != nil {
		return nil, nil, err
	}
	server, err := mcpserver.New(mcpserver.Options{
		Version: version, Env: sys.env, Agents: sys.agents, Dir: sys.dir, Roots: sys.roots,
		SessionTimeout: o.sessionTimeout, MaxSessions: o.maxSessions,
	})
	if err != nil {
		sys.close()
		return nil, nil, err
	}
	return sys, server, nil
}

// loopback completes an address and refuses those that others can reach: there
// is nothing yet that would ask them who they are.
func loopback(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("--http %q: use HOST:PORT, for example 127.0.0.1:8080", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	ip := net.ParseIP(host)
	if !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("--http %q: only loopback addresses can be served", addr)
	}
	return net.JoinHostPort(host, port), nil
}
