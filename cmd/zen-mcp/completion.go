package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/pflag"
)

// The scripts for the shells are short: they ask the program itself what may
// stand next, so that no list of commands and flags exists beside its own.
//
//go:embed completion
var completions embed.FS

// completing is the word before the words that a shell wants completed.
const completing = "__complete"

func completionCommand() command {
	return command{
		name: "completion", args: "SHELL", words: shells, shared: none,
		summary: "print the script that lets a shell complete commands and flags; put it where the shell looks",
		run: func(_ context.Context, _ *options, args []string, std streams) error {
			if len(args) == 1 {
				if script, err := fs.ReadFile(completions, "completion/"+args[0]); err == nil {
					_, err = std.out.Write(script)
					return err
				}
			}
			return errUsage{fmt.Errorf("completion takes the name of a shell: %s", strings.Join(shells(), ", "))}
		},
	}
}

// shells are the names of the scripts.
func shells() []string {
	names, err := fs.Glob(completions, "completion/*")
	if err != nil {
		return nil // the pattern is a constant
	}
	for i, name := range names {
		names[i] = path.Base(name)
	}
	return names
}

// complete answers a shell: the words that may stand in the place of the last one,
// each with a tab and what it means, or :files or :dirs for names of those. The
// word is the first argument, behind a colon since some shells drop empty ones;
// those before it follow.
func complete(args []string, std streams) error {
	if len(args) == 0 || !strings.HasPrefix(args[0], ":") {
		return errUsage{errors.New("this is for the scripts of zen-mcp completion")}
	}
	for _, line := range candidates(args[0][1:], args[1:]) {
		if strings.HasPrefix(line, args[0][1:]) || strings.HasPrefix(line, ":") {
			if _, err := fmt.Fprintln(std.out, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// candidates are what may stand behind some words.
func candidates(word string, before []string) []string {
	var out []string
	if len(before) == 0 {
		for _, c := range commands() {
			out = append(out, c.name+"\t"+c.summary)
		}
		return out
	}
	for _, c := range commands() {
		if c.name != before[0] {
			continue
		}
		set := c.flagSet(&options{})
		if f := awaiting(set, before[len(before)-1]); f != nil {
			return values(f)
		}
		if strings.HasPrefix(word, "-") {
			set.VisitAll(func(f *pflag.Flag) {
				if _, usage := pflag.UnquoteUsage(f); !f.Hidden {
					out = append(out, "--"+f.Name+"\t"+usage)
				}
			})
		} else if c.words != nil {
			out = c.words()
		}
	}
	return out
}

// awaiting is the flag whose value comes next.
func awaiting(set *pflag.FlagSet, word string) *pflag.Flag {
	name, isFlag := strings.CutPrefix(word, "--")
	if f := set.Lookup(name); isFlag && f != nil && f.NoOptDefVal == "" {
		return f
	}
	return nil
}

// values are what can be said about a flag's value, by what its usage calls it.
func values(f *pflag.Flag) []string {
	switch what, _ := pflag.UnquoteUsage(f); what {
	case "DIR":
		return []string{":dirs"}
	case "FILE", "PATH":
		return []string{":files"}
	}
	return nil
}
