package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
)

// options are the flags: those that describe what a command works with, which most
// share, and those of one command. Each has an environment variable: --mcp-config is
// also ZEN_MCP_MCP_CONFIG.
type options struct {
	agents       []string
	home         string
	project      string
	cwd          string
	roots        []string
	execRead     []string
	unconfined   bool // exec
	trustProject bool
	skills       []string
	subAgents    []string
	tools        []string
	mcpConfig    []string
	allow, deny  []string
	logLevel     string
	logFile      string

	json     bool        // tools and doctor only
	forget   bool        // trust only
	http     httpOptions // serve only
	auditLog string      // serve only
	noReload bool        // serve only

	// inspect has the sources look closer and write nothing; doctor only.
	inspect bool
	// signIn reaches a person who can sign in to an MCP server; nil if there is none.
	signIn func(ctx context.Context, server, address string) error
}

// none of the shared flags is of use to some commands.
var none = []string{}

// register is the list of the shared flags.
func (o *options) register(set *pflag.FlagSet) {
	set.StringSliceVar(&o.agents, "agent", nil, "publish the agent with this `ID` (default: config.json's defaultAgent, else \"default\")")
	set.StringVar(&o.home, "home", "", "read agents, skills and configuration from this `DIR` (default: $AI_ZEN_DIR, else ~/.ai-zen)")
	set.StringVar(&o.project, "project", "", "read the project's files from this `DIR` (default: the process's directory)")
	set.StringVar(&o.cwd, "cwd", "", "let relative paths belong to this `DIR` (default: --project, or the first --root)")
	set.StringArrayVar(&o.roots, "root", nil, "confine the file tools and commands to this `DIR`; repeatable, / lifts it")
	set.StringArrayVar(&o.execRead, "exec-read", nil, "with --root, let commands read this `PATH` too; repeatable")
	set.BoolVar(&o.unconfined, "unconfined-exec", false, "with --root, let commands reach everything, or run them where they cannot be confined")
	set.BoolVar(&o.trustProject, "trust-project", false, "run what the project brings: its tools, MCP servers and sub-agents")
	set.StringArrayVar(&o.skills, "skills", nil, "look for skills in this `DIR` first")
	set.StringArrayVar(&o.subAgents, "sub-agents", nil, "look for sub-agents in this `DIR` first")
	set.StringArrayVar(&o.tools, "tools", nil, "look for user tools in this `DIR` first")
	set.StringArrayVar(&o.mcpConfig, "mcp-config", nil, "read MCP servers from this `FILE` first")
	set.StringSliceVar(&o.allow, "allow", nil, "of what the agent permits, keep only these `NAMES`; skills:x, mcps:x and subagents:x name other things than tools")
	set.StringSliceVar(&o.deny, "deny", nil, "of what the agent permits, take these `NAMES` away")
	set.StringVar(&o.logLevel, "log-level", "warn", "log at `LEVEL`: debug, info, warn or error")
	set.StringVar(&o.logFile, "log-file", "", "log to this `FILE` instead of the standard error")
}

// environmentName is the variable that stands for a flag.
func environmentName(f *pflag.Flag) string {
	return "ZEN_MCP_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// fromEnvironment sets the flags that the command line does not from their
// environment variables. Flags that can be repeated take a list, divided as PATH
// is.
func fromEnvironment(set *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var failed error
	set.VisitAll(func(f *pflag.Flag) {
		name := environmentName(f)
		value, ok := lookup(name)
		if !ok || f.Changed || failed != nil {
			return
		}
		values := []string{value}
		if f.Value.Type() == "stringArray" {
			values = filepath.SplitList(value)
		}
		for _, v := range values {
			if err := set.Set(f.Name, v); err != nil {
				failed = fmt.Errorf("%s: %w", name, err)
			}
		}
	})
	return failed
}

// logger makes the log that the flags ask for, and what closes it.
func (o *options) logger(stderr io.Writer) (*slog.Logger, func() error, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, nil, errUsage{fmt.Errorf("--log-level %q: use debug, info, warn or error", o.logLevel)}
	}
	w, done := stderr, func() error { return nil }
	if o.logFile != "" {
		f, err := os.OpenFile(o.logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("--log-file: %w", err)
		}
		w, done = f, f.Close
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), done, nil
}
