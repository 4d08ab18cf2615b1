package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"zenmcp/cmd/zen-mcp/internal/doctor"
	"zenmcp/configs"
	"zenmcp/configs/clients"
	"zenmcp/core"
)

func doctorCommand() command {
	var strict, online bool
	var clientName string
	return command{
		name: "doctor", summary: "look for what is wrong: files, agents, servers, endpoints, PATH, clients; exit 1 if there is an error",
		flags: func(o *options, set *pflag.FlagSet) {
			set.BoolVar(&o.json, "json", false, "print the report as JSON")
			set.StringVar(&clientName, "client", "", "also start the entry in this client's file as `NAME` would: "+strings.Join(clientNames(), ", "))
			set.BoolVar(&online, "online", false, "ask endpoints whether they accept their keys")
			set.BoolVar(&strict, "strict", false, "exit 1 for warnings too")
			// What is wrong is in the report; the log is about what is behind it.
			set.Lookup("log-level").DefValue, o.logLevel = "error", "error"
		},
		run: func(ctx context.Context, o *options, args []string, std streams) error {
			if len(args) > 0 {
				return errUsage{fmt.Errorf("doctor takes no arguments, but got %q", args)}
			}
			var client *clients.Client
			if clientName != "" {
				found, err := clients.Lookup(clientName)
				if err != nil {
					return errUsage{fmt.Errorf("--client: %w", err)}
				}
				client = &found
			}
			report, err := examine(ctx, o, std, doctor.Options{Online: online, Client: client})
			if err != nil {
				return err
			}
			write := report.Text
			if o.json {
				write = report.JSON
			}
			if err := write(std.out); err != nil {
				return err
			}
			if !report.Healthy(strict) {
				return errResult
			}
			return nil
		},
	}
}

// examine makes a report of what a server with these flags would meet. what says
// what only doctor is asked.
func examine(ctx context.Context, o *options, std streams, what doctor.Options) (*doctor.Report, error) {
	s, err := newSystem(o, std)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if _, err := narrow(nil, o.allow, o.deny); err != nil {
		return nil, err
	}
	o.inspect = true
	what.Version, what.Log = version, s.log
	what.Places, what.Agents, what.Dir = o.where(), o.agents, o.workingDir
	what.Roots, what.Commands, what.Boundary = o.openRoots, o.commandReach(), boundary
	what.Named = map[string][]core.Capability{"--allow": capabilities(o.allow), "--deny": capabilities(o.deny)}
	what.Narrow = func(p core.Permissions) core.Permissions {
		narrowed, _ := narrow(p, o.allow, o.deny) // which was tried above
		return narrowed
	}
	what.Sources = func(places *configs.Places) []core.Source {
		s.places = places
		s.openSources(o)
		return s.sources
	}
	return doctor.Run(ctx, what)
}

// capabilities are what the names of --allow and --deny mean.
func capabilities(names []string) []core.Capability {
	var all []core.Capability
	kinds, _ := byKind(names) // which was tried before
	for _, kind := range core.Kinds() {
		for _, name := range kinds[kind] {
			all = append(all, core.Capability{Kind: kind, Name: name})
		}
	}
	return all
}
