package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"zenmcp/configs"
	"zenmcp/configs/clients"
	"zenmcp/core"
	"zenmcp/core/proc"
	"zenmcp/loaders/mcps"
	"zenmcp/mcpserver"
)

// bytesPerToken is roughly that of English and JSON.
const bytesPerToken = 4

// usualName is the name of the entry that `zen-mcp install` writes.
const usualName = "zen"

// An installed entry starts zen-mcp in a client.
type installed struct {
	client clients.Client
	file   string
	entry  clients.Entry
}

// clients says what the list of tools costs, which clients have an entry of ours,
// and whether the tools are within their limits. The client that was asked for has
// its entries started.
func (e *exam) clients(ctx context.Context) {
	for _, s := range e.served {
		size, err := mcpserver.ListSize(s.published.Tools)
		if err != nil {
			e.Log.Warn("the list of tools cannot be encoded", "error", err)
		}
		e.fact(s.agent.ID, "%s; the list takes %d bytes of every request, some %d tokens", core.Plural(len(s.published.Tools), "tool"), size, size/bytesPerToken)
	}
	found := e.installed()
	for _, i := range found {
		e.fact(i.client.Name, "%s:%d starts %s", i.file, i.entry.Line, i.entry.Command)
	}
	if e.Client != nil {
		e.client(ctx, *e.Client, found)
		return
	}
	if len(found) == 0 {
		for _, c := range clients.All() {
			found = append(found, installed{client: c, entry: clients.Entry{Name: usualName}})
		}
	}
	for _, s := range e.served {
		e.limits(s.published.Names(), found)
	}
}

// installed lists the entries that start zen-mcp: of the client that was asked for,
// else of all.
func (e *exam) installed() []installed {
	var found []installed
	home := configs.UserHome()
	for _, c := range clients.All() {
		if home == "" || e.Client != nil && e.Client.Name != c.Name {
			continue
		}
		file, err := c.Read(clients.Here(home))
		if err != nil && e.Client != nil {
			e.find("config-syntax", err)
		}
		for _, entry := range file.Entries {
			if entry.Ours() {
				found = append(found, installed{c, file.Path, entry})
			}
		}
	}
	return found
}

// limits says for which clients the names are too many or too long.
func (e *exam) limits(names []string, found []installed) {
	var tooMany []string
	tooLong := map[string][]string{} // the clients, by the tool
	for _, i := range found {
		l := i.client.Limits
		if l.Tools > 0 && len(names) > l.Tools {
			tooMany = append(tooMany, fmt.Sprintf("%s takes %d", i.client.Title, l.Tools))
		}
		for _, name := range names {
			if l.NameLength > 0 && len(l.Shown(i.entry.Name, name)) > l.NameLength {
				tooLong[name] = append(tooLong[name], fmt.Sprintf("%s, where it is %s, takes %d", i.client.Title, l.Shown(i.entry.Name, name), l.NameLength))
			}
		}
	}
	if tooMany != nil {
		e.find("client-tools", fmt.Errorf("%s: %s", core.Plural(len(names), "tool"), strings.Join(tooMany, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(tooLong)) {
		e.find("client-names", fmt.Errorf("the name %q has too many characters: %s", name, strings.Join(tooLong[name], "; ")))
	}
}

// client starts what a client would start.
func (e *exam) client(ctx context.Context, c clients.Client, found []installed) {
	if len(found) == 0 && e.now.Level != Error { // else its file cannot be read
		file, _ := c.Read(clients.Here(configs.UserHome()))
		err := fmt.Errorf("%s has no entry that starts zen-mcp: `zen-mcp install %s` writes one", c.Title, c.Name)
		if !file.Present {
			err = fmt.Errorf("%w; it does not seem to be installed, and this is where it would look", err)
		}
		e.find("client-no-entry", &configs.Problem{File: file.Path, Err: err})
	}
	for _, i := range found {
		if e.program(i) {
			e.start(ctx, i)
		}
	}
}

// program looks for what an entry starts, with the PATH that a desktop gives.
func (e *exam) program(i installed) bool {
	at := func(err error) error { return &configs.Problem{File: i.file, Line: i.entry.Line, Err: err} }
	path, err := proc.FindProgram(i.entry.Command, i.path())
	if err != nil {
		e.find("client-command", at(err))
		return false
	}
	if self, err := os.Executable(); err == nil && !sameFile(self, path) {
		e.find("client-other", at(fmt.Errorf("it starts %q, and this is %q", path, self)))
	}
	return true
}

// path is the PATH on which a client looks for programs, as a variable.
func (i installed) path() string {
	switch own, ok := i.entry.Env["PATH"]; {
	case ok:
		return "PATH=" + own
	case runtime.GOOS == "windows":
		return "" // a desktop gives all of the environment there
	}
	return "PATH=" + proc.BarePath
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// environment is what a client gives to a server: on Windows all, else what the
// protocol's own libraries pass on, with the PATH of a desktop.
func (i installed) environment() map[string]string {
	env := map[string]string{}
	if runtime.GOOS != "windows" {
		for _, name := range []string{"HOME", "LOGNAME", "SHELL", "TERM", "USER"} {
			if value, ok := os.LookupEnv(name); ok {
				env[name] = value
			}
		}
		env["PATH"] = proc.BarePath
	}
	maps.Copy(env, i.entry.Env)
	return env
}

// start starts an entry and lists its tools.
func (e *exam) start(ctx context.Context, i installed) {
	dir := e.dir
	if dir == "" || i.client.NoFolder {
		dir = filepath.VolumeName(dir) + string(filepath.Separator)
	}
	server := &mcps.Server{
		Name: i.entry.Name, Transport: mcps.Stdio, Protocol: mcps.Legacy, ConnectTimeout: serverLimit,
		Command: i.entry.Command, Args: i.entry.Args, Env: i.environment(), Bare: runtime.GOOS != "windows", Dir: dir,
	}
	ctx, cancel := context.WithTimeoutCause(ctx, serverLimit, errSlow)
	defer cancel()
	begin := time.Now()
	said, err := mcps.New(mcps.Options{Version: e.Version, ReadOnly: true}).Try(ctx, server, slog.New(slog.DiscardHandler))
	if err != nil {
		text := core.Masker(slices.AppendSeq(core.SecretsOf(i.entry.Args...), maps.Values(i.entry.Env))...).Replace(err.Error())
		e.find("client-start", &configs.Problem{File: i.file, Line: i.entry.Line, Err: errors.New(text)})
		return
	}
	e.fact(i.entry.Name, "starts with a bare environment in %v, and offers %s", time.Since(begin).Round(time.Millisecond), core.Plural(len(said.Tools), "tool"))
	e.limits(said.Tools, []installed{i})
}
