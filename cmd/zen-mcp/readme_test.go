package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"zenmcp/cmd/zen-mcp/internal/doctor"
	"zenmcp/configs"
	"zenmcp/configs/clients"
	"zenmcp/core"
)

var update = flag.Bool("update", false, "write README's tables anew")

var readmeFile = filepath.Join(top, "README.md")

// TestREADME: what README says between <!-- NAME --> and <!-- /NAME --> is what
// the program says of itself.
func TestREADME(t *testing.T) {
	t.Parallel()
	old, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(old)
	for name, part := range map[string]func(*testing.T) string{
		"tools": toolTable, "clients": clientBlocks, "places": placeTable, "flags": flagTable, "doctor codes": codeTable,
		"config": schemaTable("config.json"), "server": schemaTable("mcp.json", "definitions", "server"), "tool": schemaTable("tool.json"),
	} {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
		before, rest, ok := strings.Cut(text, begin)
		_, after, okEnd := strings.Cut(rest, end)
		if !ok || !okEnd {
			t.Fatalf("README.md has no %s…%s", begin, end)
		}
		text = before + begin + part(t) + end + after
	}
	if *update {
		if err := os.WriteFile(readmeFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(old) {
		t.Error("README.md is not what the program says; go test ./cmd/zen-mcp -run README -update writes it")
	}
}

// table writes rows of cells as Markdown; the first row is the head.
func table(rows [][]string) string {
	rows = slices.Insert(rows, 1, slices.Repeat([]string{"---"}, len(rows[0])))
	var b strings.Builder
	for _, row := range rows {
		for _, cell := range row {
			b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// everything is a home in which no tool is left out.
var everything = map[string]string{
	"config.json": `{"endpoints": [{"id": "e", "apiKey": "k"}], "models": [{"id": "m", "endpointId": "e", "vision": true}],
		"imageModels": [{"id": "i", "endpointId": "e"}], "defaultModel": "m", "defaultImageModel": "i"}`,
	"mcp.json":          `{"mcpServers": {"s": {"url": "https://s.example/mcp"}}}`,
	"skills/k/SKILL.md": "---\nname: k\ndescription: k\nsub-agent: true\n---\n",
}

func toolTable(t *testing.T) string {
	home := t.TempDir()
	for name, text := range everything {
		file := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"tools", "--json", "--home", home, "--project", t.TempDir()}, streams{nil, &out, os.Stderr}); code != 0 {
		t.Fatalf("exit %d", code)
	}
	var listing struct {
		Tools             []struct{ Name, Description, Effect string }
		LeftOut, Warnings []any
	}
	if err := json.Unmarshal(out.Bytes(), &listing); err != nil || len(listing.LeftOut)+len(listing.Warnings) > 0 {
		t.Fatalf("%v, %s", err, out.Bytes())
	}
	rows := [][]string{{"tool", "effect", "what it does"}}
	for _, tool := range listing.Tools {
		does, _, _ := strings.Cut(tool.Description, "\n")
		rows = append(rows, []string{"`" + tool.Name + "`", tool.Effect, does})
	}
	return table(rows)
}

// clientBlocks shows for each client what install enters, and where.
func clientBlocks(t *testing.T) string {
	var b strings.Builder
	for _, c := range clients.All() {
		var files []string
		for _, s := range []struct{ os, title string }{{"linux", ""}, {"darwin", "macOS: "}, {"windows", "Windows: "}} {
			f, err := c.Read(clients.System{OS: s.os, Home: "~", Getenv: func(string) string { return "" }})
			if err != nil {
				t.Fatal(err)
			}
			if name := fmt.Sprintf("`%s`", filepath.ToSlash(f.Path)); len(files) == 0 || !strings.HasSuffix(files[0], name) {
				files = append(files, s.title+name)
			}
		}
		where := files[0]
		if len(files) > 1 {
			where += " (" + strings.Join(files[1:], ", ") + ")"
		}
		installer := clients.Installer{System: clients.System{OS: "linux", Home: t.TempDir(), Getenv: func(string) string { return "" }}, State: t.TempDir()}
		server := clients.Server{Name: "zen", Command: "/home/you/.local/bin/zen-mcp", Args: []string{"serve", "--root", "/home/you/project"}}
		change, err := installer.Install(c, server, false)
		if err == nil {
			_, err = installer.Apply(t.Context(), change)
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(change.File.Path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "### %s\n\n`zen-mcp install %s`, or by hand in %s:\n\n```%s\n%s\n```\n\nThen %s.\n\n",
			c.Title, c.Name, where, filepath.Ext(change.File.Path)[1:], bytes.TrimSpace(text), c.Restart)
	}
	return b.String()
}

// placeTable says where each kind of definition is looked for, in order.
func placeTable(t *testing.T) string {
	base := t.TempDir()
	at := func(name string) string {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	file := filepath.Join(base, "--mcp-config FILE")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	places, err := configs.Find(configs.Options{
		UserHome: at("~"), Project: at("project"), TrustProject: true, Getenv: func(string) string { return "" },
		Skills: []string{at("--skills DIR")}, SubAgents: []string{at("--sub-agents DIR")}, Tools: []string{at("--tools DIR")}, MCPConfig: []string{file},
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]string{{"what", "where, the first one wins a name"}}
	for _, kind := range []core.Kind{configs.KindAgent, core.KindSubagent, core.KindSkill, core.KindMCP, core.KindTool} {
		all, err := places.Of(kind)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, place := range all {
			name, err := filepath.Rel(base, place.Path)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, "`"+strings.TrimPrefix(filepath.ToSlash(name), "project/")+"`")
		}
		rows = append(rows, []string{string(kind), strings.Join(names, ", ")})
	}
	return table(rows)
}

// flagTable lists each flag once, with the commands that take it.
func flagTable(*testing.T) string {
	type entry struct{ flag, usage string }
	of := map[entry][]string{}
	var entries []entry
	defaults := map[entry]string{}
	for _, c := range commands() {
		c.flagSet(&options{}).VisitAll(func(f *pflag.Flag) {
			what, usage := pflag.UnquoteUsage(f)
			if f.Value.Type() == "bool" {
				what = ""
			}
			e := entry{strings.TrimSpace("--" + f.Name + " " + what), usage}
			if f.Hidden {
				return
			}
			if of[e] == nil {
				entries = append(entries, e)
				if !slices.Contains([]string{"", "[]", "false", "0"}, f.DefValue) {
					defaults[e] = " (default " + f.DefValue + ")"
				}
			}
			of[e] = append(of[e], c.name)
		})
	}
	rows := [][]string{{"flag", "of", "what it does"}}
	for _, e := range entries {
		names := strings.Join(of[e], ", ")
		if len(of[e]) == len(commands()) {
			names = "all"
		}
		rows = append(rows, []string{"`" + e.flag + "`", names, e.usage + defaults[e]})
	}
	return table(rows)
}

func codeTable(*testing.T) string {
	rows := [][]string{{"code", "level", "what is wrong", "what to do"}}
	for _, c := range doctor.Codes() {
		rows = append(rows, []string{"`" + c.ID + "`", string(c.Level), c.Title, c.Advice})
	}
	return table(rows)
}

// schemaTable lists the keys of an object in one of our schemas.
func schemaTable(file string, path ...string) func(*testing.T) string {
	return func(t *testing.T) string {
		text, err := fs.ReadFile(configs.Schemas(), file)
		if err != nil {
			t.Fatal(err)
		}
		var at any
		if err := yaml.UnmarshalWithOptions(text, &at, yaml.UseOrderedMap()); err != nil {
			t.Fatal(err)
		}
		for _, key := range append(path, "properties") {
			at = member(at, key)
		}
		rows := [][]string{{"key", "default", "what it is"}}
		for _, property := range at.(yaml.MapSlice) {
			if name := property.Key.(string); name != "$schema" {
				def := ""
				if v := member(property.Value, "default"); v != nil {
					def = fmt.Sprintf("`%v`", v)
				}
				rows = append(rows, []string{"`" + name + "`", def, fmt.Sprint(member(property.Value, "description"))})
			}
		}
		return table(rows)
	}
}

func member(object any, key string) any {
	for _, item := range object.(yaml.MapSlice) {
		if item.Key == key {
			return item.Value
		}
	}
	return nil
}

// TestREADMECommands types what README shows in its consoles, and compares what
// comes back. Each part of README begins in an empty home, which holds the files
// that the part shows under their names.
func TestREADMECommands(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("README's commands are for a POSIX shell")
	}
	text, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	root, scripts := t.TempDir(), t.TempDir()
	var files []string
	for _, part := range strings.Split("\n"+string(text), "\n## ") {
		title, _, _ := strings.Cut(strings.TrimLeft(part, "\n# "), "\n")
		name := strings.ToLower(strings.Join(regexp.MustCompile("[A-Za-z]+").FindAllString(title, -1), "-"))
		// What differs from one machine to the next.
		part = strings.NewReplacer(
			"/home/you", filepath.Join(root, "script-"+name, "home"), ":8080", freePort(), "~/src/zen-mcp", clone(t),
		).Replace(part)
		if script := scriptOf(part); script != "" {
			files = append(files, filepath.Join(scripts, name+".txt"))
			if err := os.WriteFile(files[len(files)-1], []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	testscript.Run(t, testscript.Params{
		Files: files, WorkdirRoot: root,
		Setup: setReader,
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"console": typeInto},
	})
}

// setReader makes the home of somebody who has Go, and what it has built before.
func setReader(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	e.Setenv("HOME", home)
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return err
		}
		e.Setenv(name, strings.TrimSpace(string(value)))
	}
	e.Setenv("GOFLAGS", "-buildvcs=false") // git may refuse a clone of another user
	return os.MkdirAll(filepath.Join(home, "project"), 0o700)
}

func clone(t *testing.T) string {
	dir, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// freePort is :PORT, where nobody listens on loopback. No system gives ports of
// this range to those who ask for any.
func freePort() string {
	for {
		port := fmt.Sprintf(":%d", 20000+rand.IntN(12000))
		if l, err := net.Listen("tcp", "127.0.0.1"+port); err == nil {
			l.Close()
			return port
		}
	}
}

// block is a fenced block. It is a file where the line before it begins with the
// file's name and ends with a colon.
var block = regexp.MustCompile("(?ms)(?:^`([^`\n]+)`[^\n]*:\n\n)?^```(\\w+)\n(.*?)^```$")

// scriptOf is a part of README as a testscript: its files, and one console. It is
// empty where no command is shown.
func scriptOf(part string) string {
	var consoles, files strings.Builder
	for _, m := range block.FindAllStringSubmatch(part, -1) {
		name, language, text := m[1], m[2], m[3]
		switch {
		case language == "console":
			consoles.WriteString(text)
		case strings.HasPrefix(name, "~/"):
			fmt.Fprintf(&files, "-- home%s --\n%s", name[1:], text)
		case name != "":
			fmt.Fprintf(&files, "-- home/project/%s --\n%s", name, text)
		}
	}
	if consoles.Len() == 0 {
		return ""
	}
	return "cd home/project\nconsole $WORK/typed\n-- typed --\n" + consoles.String() + files.String()
}

// typeInto FILE types the commands of a file into a shell, those behind "$ ", and
// compares what follows them with what is printed. There … stands for the rest of a
// word or a line, and alone on a line for any number of lines; zen_… in a command
// is the token that was printed last.
func typeInto(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: console file")
	}
	sh := openConsole(ts)
	defer sh.close()
	token := regexp.MustCompile("zen_[A-Z2-7]+")
	latest := ""
	for _, step := range strings.Split("\n"+ts.ReadFile(args[0]), "\n$ ")[1:] {
		command, want, _ := strings.Cut(step, "\n")
		got := sh.run(strings.ReplaceAll(command, "zen_…", latest), pattern(want))
		latest = cmp.Or(token.FindString(got), latest)
	}
}

// pattern matches what README says is printed. Blanks count as one: a column is
// as wide as a path of the machine.
func pattern(want string) *regexp.Regexp {
	want = regexp.QuoteMeta(strings.TrimRight(want, "\n"))
	want = regexp.MustCompile(`(?m)(^|\n)…$`).ReplaceAllString(want, `(?s:.*)`)
	want = strings.ReplaceAll(want, "…", ".*")
	return regexp.MustCompile("^" + regexp.MustCompile(" +").ReplaceAllString(want, " +") + "$")
}

// A console is a shell with what it and its programs print.
type console struct {
	ts    *testscript.TestScript
	in    io.WriteCloser
	lines chan string
	wait  func() error
}

func openConsole(ts *testscript.TestScript) *console {
	r, w, err := os.Pipe()
	ts.Check(err)
	cmd := exec.Command("sh")
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), w, w
	for _, name := range []string{"HOME", "PATH", "GOCACHE", "GOMODCACHE", "GOFLAGS"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	in, err := cmd.StdinPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Check(w.Close())
	c := &console{ts, in, make(chan string), cmd.Wait}
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			c.lines <- s.Text()
		}
		r.Close()
		close(c.lines)
	}()
	return c
}

// run types a command and reads what it prints. That may come later when the
// command goes on in the background.
func (c *console) run(command string, want *regexp.Regexp) string {
	const end = "-- end of the command --"
	c.ts.Logf("$ %s", command)
	fmt.Fprintf(c.in, "%s\necho; echo %s\n", command, end)
	timeout := time.After(5 * time.Minute) // go build may have to begin with nothing
	var got []string
	ended := false
	for {
		text := strings.Trim(strings.Join(got, "\n"), "\n")
		if ended && (want.MatchString(text) || !strings.HasSuffix(command, "&")) {
			if !want.MatchString(text) {
				c.ts.Fatalf("it printed\n%s\nREADME has, as a pattern,\n%s", text, want)
			}
			c.ts.Logf("%s", text)
			return text
		}
		select {
		case line, open := <-c.lines:
			switch {
			case !open:
				c.ts.Fatalf("the shell has ended; it printed\n%s", text)
			case line == end:
				ended = true
			default:
				got = append(got, line)
			}
		case <-timeout:
			c.ts.Fatalf("it has not printed what README has, but\n%s\nREADME has, as a pattern,\n%s", text, want)
		}
	}
}

// close ends what goes on in the background, and the shell.
func (c *console) close() {
	fmt.Fprintln(c.in, `[ -z "$!" ] || kill $!; wait`)
	c.in.Close()
	for range c.lines {
	}
	c.ts.Check(c.wait())
}
