package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"zenmcp/configs"
)

func trustCommand() command {
	return command{
		name: "trust", args: "[DIR]", summary: "let a project run what it brings as it is now: its tools, MCP servers, sub-agents and agents",
		shared: []string{"home", "project"},
		flags: func(o *options, set *pflag.FlagSet) {
			set.BoolVar(&o.forget, "forget", false, "take the trust back")
		},
		run: runTrust,
	}
}

func runTrust(ctx context.Context, o *options, args []string, std streams) error {
	switch {
	case len(args) > 1:
		return errUsage{fmt.Errorf("trust takes one folder, but got %q", args)}
	case len(args) == 1:
		o.project = args[0]
	}
	places, err := o.places()
	if err != nil {
		return errUsage{err}
	}
	if o.forget {
		if err := places.Forget(ctx); err != nil {
			return described(err)
		}
		fmt.Fprintf(std.out, "%s is not trusted any more\n", places.Project)
		return nil
	}
	trusted, err := places.Trust(ctx)
	if err != nil {
		return described(err)
	}
	if len(trusted) == 0 {
		fmt.Fprintf(std.out, "there is nothing in %s that would run\n", places.Project)
		return nil
	}
	fmt.Fprintf(std.out, "trusted as it is now, in %s:\n", places.Project)
	for _, place := range trusted {
		fmt.Fprintf(std.out, "  %s\n", spelled(place, places))
	}
	return nil
}

// spelled is a place as one would write it in the project.
func spelled(place configs.Place, places *configs.Places) string {
	if rel, err := filepath.Rel(places.Project, place.Path); err == nil {
		return rel
	}
	return place.Path
}
