package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"zenmcp/configs"
	"zenmcp/configs/clients"
	"zenmcp/core"
)

// installOptions are the flags of install alone. Those of serve, which it takes as
// well, go into the client's entry.
type installOptions struct {
	list, print, undo, force bool
	name                     string
	own, all                 *pflag.FlagSet
}

func installCommand() command {
	var i installOptions
	return command{
		name: "install", args: "CLIENT", words: clientNames,
		summary: "add zen-mcp to a client's file, started with the flags of serve that are given here",
		flags:   i.register,
		run:     i.run,
	}
}

func (i *installOptions) register(o *options, set *pflag.FlagSet) {
	i.all, i.own = set, pflag.NewFlagSet("install", pflag.ContinueOnError)
	i.own.SortFlags = false
	i.own.BoolVar(&i.list, "list", false, "list the clients, their files and what is in them")
	i.own.BoolVar(&i.print, "print", false, "only show what would change")
	i.own.BoolVar(&i.undo, "undo", false, "take the entry away again, or bring back the one that it replaced")
	i.own.StringVar(&i.name, "name", "zen", "the entry's `NAME`")
	i.own.BoolVar(&i.force, "force", false, "replace another server of that name")
	set.AddFlagSet(i.own)
	serveCommand().flags(o, set)
	// Those of --http have no use on stdio. They are known, so that plan can say so.
	http := pflag.NewFlagSet("http", pflag.ContinueOnError)
	o.http.register(http)
	http.VisitAll(func(f *pflag.Flag) { set.Lookup(f.Name).Hidden = true })
}

func clientNames() []string {
	var names []string
	for _, c := range clients.All() {
		names = append(names, c.Name)
	}
	return names
}

func (i *installOptions) run(ctx context.Context, o *options, args []string, std streams) error {
	places, err := o.places()
	if err != nil {
		return errUsage{err}
	}
	home := configs.UserHome()
	if home == "" {
		return errors.New("the user has no home directory, where clients have their files")
	}
	installer := clients.Installer{System: clients.Here(home), State: places.State}
	switch {
	case i.list && (len(args) > 0 || i.undo || i.print):
		return errUsage{errors.New("--list lists all clients, and takes nothing else")}
	case i.list:
		return listClients(installer.System, std.out)
	case len(args) != 1:
		return errUsage{fmt.Errorf("install takes one client: %s", strings.Join(clientNames(), ", "))}
	}
	client, err := clients.Lookup(args[0])
	if err != nil {
		return errUsage{err}
	}
	change, err := i.plan(ctx, o, installer, client, std)
	if err != nil {
		return err
	}
	return i.carryOut(ctx, installer, change, std)
}

// plan finds out what is to change. An entry that could not be started is refused.
func (i *installOptions) plan(ctx context.Context, o *options, installer clients.Installer, c clients.Client, std streams) (*clients.Change, error) {
	if i.undo {
		return installer.Undo(c, i.name)
	}
	switch {
	case o.http.addr != "":
		return nil, errUsage{errors.New("clients start what install enters, and talk to it on stdio; a server with --http is entered by its URL")}
	case len(o.agents) > 1:
		return nil, errUsage{errors.New("stdio serves one agent; give --agent once, and install others with another --name")}
	}
	if err := validName(i.name); err != nil {
		return nil, errUsage{err}
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if exe, err = program(exe, os.Args[0]); err != nil {
		return nil, err
	}
	if err := tryStart(ctx, o, std); err != nil {
		return nil, fmt.Errorf("the server would not start: %w", err)
	}
	args, err := i.serveArgs(os.Getenv)
	if err != nil {
		return nil, err
	}
	return installer.Install(c, clients.Server{Name: i.name, Command: exe, Args: args}, i.force)
}

// tryStart does what a server does before it serves.
func tryStart(ctx context.Context, o *options, std streams) error {
	sys, err := assemble(ctx, o, std)
	if err != nil {
		return err
	}
	defer sys.close()
	scope, err := sys.scope(sys.agents[0])
	if err != nil {
		return err
	}
	return scope.Close()
}

// validName insists on what every client takes: the name becomes part of names of
// tools.
func validName(name string) error {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	if name == "" || len(name) > 32 || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("--name %q: use up to 32 letters, digits, - and _", name)
	}
	return nil
}

// program is how a client is to start this program: by the name it was called by
// where that leads to it, since a package manager's link stays when the version
// behind it goes.
func program(exe, called string) (string, error) {
	if found, err := exec.LookPath(called); err == nil {
		a, errA := os.Stat(found)
		b, errB := os.Stat(exe)
		if abs, err := filepath.Abs(found); err == nil && errA == nil && errB == nil && os.SameFile(a, b) {
			exe = abs
		}
	}
	for part := range strings.SplitSeq(filepath.ToSlash(exe), "/") {
		if strings.HasPrefix(part, "go-build") { // the folders of `go run`
			return "", errors.New("`go run` removes this program again; build one that stays, and let that install itself:\n" +
				"  go build -o ~/.local/bin/zen-mcp ./cmd/zen-mcp\n  ~/.local/bin/zen-mcp install CLIENT")
		}
	}
	return exe, nil
}

// serveArgs are the arguments of the entry: the flags of serve that were given,
// on the command line or by the environment, which the client does not share.
func (i *installOptions) serveArgs(getenv func(string) string) ([]string, error) {
	args := []string{"serve"}
	var failed error
	add := func(f *pflag.Flag, value string) {
		if takesPath(f) {
			abs, err := absolute(value)
			failed, value = errors.Join(failed, err), abs
		}
		args = append(args, "--"+f.Name, value)
	}
	i.all.Visit(func(f *pflag.Flag) {
		list, isList := f.Value.(pflag.SliceValue)
		switch {
		case i.own.Lookup(f.Name) != nil:
		case isList:
			for _, value := range list.GetSlice() {
				add(f, value)
			}
		case f.Value.Type() == "bool" && f.Value.String() == "true":
			args = append(args, "--"+f.Name)
		case f.Value.Type() == "bool":
			args = append(args, "--"+f.Name+"=false")
		default:
			add(f, f.Value.String())
		}
	})
	if dir := getenv("AI_ZEN_DIR"); dir != "" && !i.all.Changed("home") {
		add(i.all.Lookup("home"), dir)
	}
	return args, failed
}

// takesPath reports whether a flag's value is a file or a folder, by what its
// usage calls it.
func takesPath(f *pflag.Flag) bool {
	what, _ := pflag.UnquoteUsage(f)
	return slices.Contains([]string{"DIR", "FILE", "PATH"}, what)
}

// absolute makes a path absolute; a leading ~ is the user's home.
func absolute(path string) (string, error) {
	if rest, ok := strings.CutPrefix(filepath.ToSlash(path), "~/"); ok || path == "~" {
		path = filepath.Join(configs.UserHome(), rest)
	}
	return filepath.Abs(path)
}

// carryOut shows a change, writes it, and says what to do next.
func (i *installOptions) carryOut(ctx context.Context, installer clients.Installer, change *clients.Change, std streams) error {
	c, file := change.Client, change.File
	if change.Empty() {
		_, err := fmt.Fprintf(std.out, "nothing to change in %s\n", file.Path)
		return err
	}
	if !file.Present && !i.undo {
		fmt.Fprintf(std.out, "%s does not seem to be installed; this is where it would look\n\n", c.Title)
	}
	fmt.Fprintln(std.out, change.Diff())
	if c.NoFolder && !i.undo && !i.placed() {
		fmt.Fprintf(std.out, "note: %s starts servers in no folder of yours, so relative paths belong to your home; --project DIR names another, --root DIR confines to one\n", c.Title)
	}
	if i.print {
		_, err := fmt.Fprintln(std.out, "nothing was written")
		return err
	}
	backup, err := installer.Apply(ctx, change)
	if err != nil {
		return err
	}
	if change.Removes() {
		fmt.Fprintf(std.out, "removed %s, which was not there before\n", file.Path)
	} else {
		fmt.Fprintf(std.out, "wrote %s\n", file.Path)
	}
	if backup != "" {
		fmt.Fprintf(std.out, "as it was before: %s\n", backup)
	}
	fmt.Fprintf(std.out, "next: %s\n", c.Restart)
	if i.undo {
		return nil
	}
	name := ""
	if i.name != i.own.Lookup("name").DefValue {
		name = " --name " + i.name
	}
	_, err = fmt.Fprintf(std.out, "zen-mcp install %s%s --undo takes it back\n", c.Name, name)
	return err
}

// placed reports whether the flags say where relative paths belong.
func (i *installOptions) placed() bool {
	return slices.ContainsFunc([]string{"project", "cwd", "root"}, i.all.Changed)
}

// listClients says for each client which file it reads and whether zen-mcp is in it.
func listClients(s clients.System, w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range clients.All() {
		f, err := c.Read(s)
		state := "no file yet"
		switch {
		case err != nil:
			state = "cannot be read"
			var p *configs.Problem
			if errors.As(err, &p) {
				f.Path = p.Error()
			}
		case f.Exists:
			state = cmp.Or(ours(f), core.Plural(len(f.Entries), "server")+", not zen-mcp")
		case !f.Present:
			state = "not installed"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.Name, state, f.Path)
	}
	return table.Flush()
}

// ours names the entries of a file that start zen-mcp.
func ours(f clients.File) string {
	var names []string
	for _, e := range f.Entries {
		if e.Ours() {
			names = append(names, fmt.Sprintf("%q", e.Name))
		}
	}
	if names == nil {
		return ""
	}
	return "zen-mcp as " + strings.Join(names, ", ")
}
