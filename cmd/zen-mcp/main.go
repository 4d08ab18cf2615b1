// Command zen-mcp publishes an agent system as an MCP server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"zenmcp/core"
)

// version is set when a release is built.
var version = "dev"

// A command is one word behind zen-mcp.
type command struct {
	name, args, summary string
	// shared names those of the shared flags that do something here; nil is all of them,
	// for a command that works with what they describe.
	shared []string
	// flags registers what only this command takes.
	flags func(*options, *pflag.FlagSet)
	// words are the arguments that can be named in advance, for the shell to
	// complete; nil if there are none.
	words func() []string
	run   func(context.Context, *options, []string, streams) error
}

// streams are the standard streams, so that a test can have its own.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// commands lists the commands in the order of the help text.
func commands() []command {
	return []command{
		serveCommand(), toolsCommand(), callCommand(), doctorCommand(), initCommand(), installCommand(), trustCommand(), tokenCommand(),
		schemaCommand(), completionCommand(), healthCommand(), versionCommand(),
	}
}

func main() {
	growHeap()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// errUsage marks errors of use, which exit with 2.
type errUsage struct{ error }

// errResult says that a call's result is an error: it is printed already.
var errResult = errors.New("the result is an error")

// run runs the command that args name, and returns the exit code: 0, 1 for what
// went wrong, 2 for wrong use.
func run(ctx context.Context, args []string, std streams) int {
	err := dispatch(ctx, args, std)
	var usage errUsage
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return 0
	case errors.Is(err, errResult):
		return 1
	case errors.As(err, &usage):
		fmt.Fprintln(std.err, "zen-mcp:", err)
		return 2
	}
	fmt.Fprintln(std.err, "zen-mcp:", err)
	return 1
}

func dispatch(ctx context.Context, args []string, std streams) error {
	if len(args) > 1 && args[0] == "help" {
		args = []string{args[1], "--help"}
	}
	if len(args) == 0 || args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
		printHelp(std.out)
		return nil
	}
	switch args[0] {
	case "--version":
		args = []string{"version"}
	case completing:
		return complete(args[1:], std)
	}
	var names []string
	for _, c := range commands() {
		if c.name == args[0] {
			return c.execute(ctx, args[1:], std)
		}
		names = append(names, c.name)
	}
	return errUsage{fmt.Errorf("unknown command %q%s", args[0], core.DidYouMean(args[0], names))}
}

// execute parses the flags and runs the command.
func (c command) execute(ctx context.Context, args []string, std streams) error {
	var o options
	set := c.flagSet(&o)
	set.SetOutput(std.err)
	set.Usage = func() {
		fmt.Fprintf(std.out, "usage: zen-mcp %s\n\n%s\n\n%s", strings.TrimSpace(c.name+" "+c.args), c.summary, set.FlagUsages())
	}
	if err := set.Parse(args); err != nil {
		return flagError(err, set)
	}
	if err := fromEnvironment(set, os.LookupEnv); err != nil {
		return errUsage{err}
	}
	return c.run(ctx, &o, set.Args(), std)
}

// flagSet is what the command takes; parsed, it fills o.
func (c command) flagSet(o *options) *pflag.FlagSet {
	set := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	set.SortFlags = false
	shared := pflag.NewFlagSet("shared", pflag.ContinueOnError)
	shared.SortFlags = false
	o.register(shared)
	if c.shared == nil {
		set.AddFlagSet(shared)
	}
	for _, name := range c.shared {
		set.AddFlag(shared.Lookup(name))
	}
	if c.flags != nil {
		c.flags(o, set)
	}
	return set
}

// flagError adds the nearest name to the error for an unknown flag.
func flagError(err error, set *pflag.FlagSet) error {
	var unknown *pflag.NotExistError
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if errors.As(err, &unknown) {
		var names []string
		set.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return errUsage{fmt.Errorf("%w%s", err, core.DidYouMean("--"+unknown.GetSpecifiedName(), names))}
	}
	return errUsage{err}
}

func printHelp(w io.Writer) {
	fmt.Fprint(w, "zen-mcp publishes an agent system as an MCP server.\n\nusage: zen-mcp COMMAND [flags]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-28s %s\n", c.name+" "+c.args, c.summary)
	}
	fmt.Fprint(w, "\nzen-mcp COMMAND --help lists the flags of a command.\n")
}

func versionCommand() command {
	return command{name: "version", summary: "print the version", shared: none, run: func(_ context.Context, _ *options, _ []string, std streams) error {
		_, err := fmt.Fprintln(std.out, "zen-mcp", version)
		return err
	}}
}
