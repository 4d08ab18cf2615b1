//go:build unix

package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core"
	"zenmcp/core/proc"
)

// Outside of the roots every file holds secretText and every folder a name with
// secretName. No call names either whole.
const (
	secretText = "SECRET-CONTENT-7f3a"
	secretName = "SECRET-NAME-7f3a"
)

// A farm is a folder base with the roots "in" and "in2" and what is outside of
// them, all full of links to each other.
type farm struct {
	rnd    *rand.Rand
	base   string
	scope  *core.Scope
	server *httptest.Server // serves downloads, and stands for an endpoint

	mu   sync.Mutex
	sent strings.Builder // what the server was sent
}

var farmNames = []string{"a", "b", "d", "e", "l", "m", "n", "x", "é"}

func newFarm(t *testing.T, seed uint64) *farm {
	f := &farm{rnd: rand.New(rand.NewPCG(seed, 7)), base: t.TempDir()}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sent.Write(body)
		fmt.Fprint(w, `{"id":"file-1"}`)
	}))
	t.Cleanup(f.server.Close)
	config := core.Config{
		AllowPrivateNetwork: true,
		Endpoints:           []core.Endpoint{{ID: "deepseek", BaseURL: f.server.URL, APIKey: "k"}},
		Models:              []core.ModelConfig{{ID: "m", EndpointID: "deepseek", Vision: true}},
		DefaultModel:        "m",
		ImageModels:         []core.ImageModel{{ID: "i", EndpointID: "deepseek"}},
		DefaultImageModel:   "i",
		InlineImages:        true,
	}
	lay(t, f.base, "in/d/", "in2/")
	for _, dir := range []string{"out", "out/d", "out/d/e", "."} {
		lay(t, f.base, filepath.Join(dir, secretName)+"/")
		for _, name := range []string{"a", "b", "x.png"} {
			write(t, filepath.Join(f.base, dir, name), []byte("line one\n"+secretText+"\n"))
		}
	}
	for _, name := range []string{"out/l", "out/m", "l", "spelling"} {
		if err := os.Symlink(f.target(), filepath.Join(f.base, name)); err != nil {
			t.Fatal(err)
		}
	}
	f.scope = newScope(t, config, filepath.Join(f.base, "in"), filepath.Join(f.base, "in"), filepath.Join(f.base, "in2"))
	return f
}

// plant makes the roots' content anew.
func (f *farm) plant(t *testing.T) {
	t.Helper()
	for _, root := range []string{"in", "in2"} {
		root = filepath.Join(f.base, root)
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			err = errors.Join(err, os.RemoveAll(filepath.Join(root, e.Name())))
		}
		err = errors.Join(err, os.MkdirAll(filepath.Join(root, "d/e"), 0o777))
		for _, dir := range []string{".", "d", "d/e"} {
			err = errors.Join(err, os.WriteFile(filepath.Join(root, dir, "a"), []byte("line one\ninside\n"), 0o666))
			for range 4 {
				link := filepath.Join(root, dir, f.name())
				if _, e := os.Lstat(link); e != nil {
					err = errors.Join(err, os.Symlink(f.target(), link))
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (f *farm) name() string { return farmNames[f.rnd.IntN(len(farmNames))] }

// target is what a link leads to: in, out, nowhere, in circles.
func (f *farm) target() string {
	place := []string{"in", "in2", "out", "out/d", ".", "in/d", "out/new", "spelling"}[f.rnd.IntN(8)]
	switch f.rnd.IntN(5) {
	case 0:
		return filepath.Join(f.base, place, f.name())
	case 1:
		return strings.Repeat("../", 1+f.rnd.IntN(3)) + place + "/" + f.name()
	case 2:
		return strings.Repeat("../", f.rnd.IntN(3)) + f.name()
	case 3:
		return f.base + "/in/../" + place
	}
	return strings.Repeat("../", 1+f.rnd.IntN(3)) + place
}

// path is a path in one of its spellings.
func (f *farm) path() string {
	var names []string
	for range 1 + f.rnd.IntN(5) {
		names = append(names, append([]string{"..", "..", ".", "in", "in2", "out", "d", "new", "x.png", "l"}, f.name())[f.rnd.IntN(11)])
	}
	path := strings.Join(names, []string{"/", "/", "//"}[f.rnd.IntN(3)])
	switch f.rnd.IntN(6) {
	case 0:
		path = f.base + "/" + path
	case 1:
		path = f.base + "/in/" + path
	case 2:
		path = f.base + "/out/" + path
	case 3:
		path += "/"
	}
	return path
}

// pathArgument recognises arguments that are paths by their names.
var pathArgument = regexp.MustCompile(`(?i)path|src|dest|cwd|file$|dir`)

// fill makes a value for an argument.
func (f *farm) fill(name string, s *jsonschema.Schema) any {
	switch s.Type {
	case "string":
		switch {
		case len(s.Enum) > 0:
			return s.Enum[f.rnd.IntN(len(s.Enum))]
		case pathArgument.MatchString(name):
			return f.path()
		case name == "pattern" || name == "exclude":
			return []string{"**", "*", "**/*", "*/*", f.path(), f.path() + "/*", f.path() + "/**", f.path() + "/*/a"}[f.rnd.IntN(8)]
		case name == "command":
			return f.command()
		case name == "url":
			return f.server.URL + "/" + f.name()
		case name == "oldText" || name == "text":
			return []string{"SECRET", "line", "-7f3a"}[f.rnd.IntN(3)]
		case name == "regex":
			return []string{".", "S.CRET"}[f.rnd.IntN(2)]
		}
		return "changed"
	case "boolean":
		return f.rnd.IntN(4) > 0
	case "integer", "number":
		return 1 + f.rnd.IntN(3)*1000
	case "array":
		values := make([]any, 1+f.rnd.IntN(2))
		for i := range values {
			values[i] = f.fill(name, s.Items)
		}
		return values
	case "object":
		return f.arguments(s)
	}
	return nil
}

// command reads and adds over paths anywhere; [TestExecInLinkFarms] destroys as
// well. It runs only where it is confined.
func (f *farm) command() string {
	lines := []string{
		"cat @1", "cat @1/*", "ls -R @1", "grep -r SECRET @1", "echo changed >> @1", "echo changed > @1/new", "mkdir @1/new",
		"cp -r @1 @2", "ln @1 @2; cat @2", "ln -s @1 @2; cat @2 @2/*; echo changed >> @2", "cd @1 && cat a; echo changed > new",
		"cat /proc/self/root/@1 /proc/self/cwd/@1", "(cat @1; echo changed > @2) & wait", "tar cf - @1 | cat",
	}
	return strings.NewReplacer("@1", "'"+f.path()+"'", "@2", "'"+f.path()+"'").Replace(lines[f.rnd.IntN(len(lines))])
}

func (f *farm) arguments(s *jsonschema.Schema) map[string]any {
	args := map[string]any{}
	for name, property := range s.Properties {
		if slices.Contains(s.Required, name) || pathArgument.MatchString(name) || f.rnd.IntN(3) == 0 {
			args[name] = f.fill(name, property)
		}
	}
	return args
}

// outside describes everything in base but the roots.
func (f *farm) outside(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(f.base, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == filepath.Join(f.base, "in") || path == filepath.Join(f.base, "in2") {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, _ := os.ReadFile(path)
		if d.Type() == fs.ModeSymlink {
			link, _ := os.Readlink(path)
			content = []byte(link)
		}
		all[path] = fmt.Sprint(info.Mode(), info.ModTime(), string(content))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// tools are all built-in tools with a path among their arguments, whether or not
// they would be offered; those that run commands only where they are confined.
func (f *farm) tools(t *testing.T) []core.Tool {
	t.Helper()
	offer, err := Source().Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := offer.Instantiate(f.scope, offer.Capabilities())
	if err != nil && proc.CanConfine() == nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(tool core.Tool) bool {
		for name := range tool.Input.Properties {
			if pathArgument.MatchString(name) {
				return false
			}
		}
		return true
	})
}

// check calls a tool and looks for secrets in whatever came out, and for changes
// outside.
func (f *farm) check(t *testing.T, tool core.Tool, args json.RawMessage, before map[string]string) {
	t.Helper()
	res, err := tool.Run(t.Context(), &core.Call{Arguments: args})
	if err != nil {
		res = core.ErrorResult(err)
	}
	f.mu.Lock()
	out := fmt.Sprintf("%s %v %s", res.Text(), res.Blocks, f.sent.String())
	f.mu.Unlock()
	if strings.Contains(out, secretText) || strings.Contains(out, secretName) {
		t.Errorf("%s %s told a secret: %.500s", tool.Name, args, out)
	}
	after := f.outside(t)
	for path, was := range before {
		if is := after[path]; is != was {
			t.Errorf("%s %s changed %s: %q, was %q; it answered %.300s", tool.Name, args, path, is, was, res.Text())
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s %s made %s", tool.Name, args, path)
		}
	}
}

// TestNothingOutsideRoots throws every tool that takes a path at farms of links,
// with paths in every spelling. Nothing outside of the roots is read or changed.
func TestNothingOutsideRoots(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			f := newFarm(t, seed)
			before := f.outside(t)
			tools := f.tools(t)
			if len(tools) < 10 {
				t.Fatalf("only %d tools take a path", len(tools))
			}
			for range 12 {
				f.plant(t)
				for _, tool := range tools {
					for range 3 {
						f.check(t, tool, mustJSON(t, f.arguments(tool.Input)), before)
						if t.Failed() {
							return
						}
					}
				}
			}
			f.reaches(t)
		})
	}
}

// reaches makes sure that the farm can fail: free of roots the same paths lead to
// secrets.
func (f *farm) reaches(t *testing.T) {
	t.Helper()
	free := newScope(t, core.Config{}, filepath.Join(f.base, "in"))
	for range 2000 {
		if text, _ := callTool(t, t.Context(), free, "ls", mustJSON(t, map[string]any{"path": f.path()})); strings.Contains(text, secretName) {
			return
		}
	}
	t.Error("no path leads outside")
}

// TestSwappedFolders swaps a folder in the root for a link to the outside and
// back, all the time, while tools work in it.
func TestSwappedFolders(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 1)
	f.plant(t)
	before := f.outside(t)
	in := filepath.Join(f.base, "in")
	flip, away := filepath.Join(in, "flip"), filepath.Join(in, "away")
	lay(t, in, "flip/d/a", "flip/d/e/a", "flip/a")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if os.Rename(flip, away) == nil {
				os.Symlink("../out", flip)
			}
			os.Remove(flip)
			os.Rename(away, flip)
		}
	}()
	calls := []struct{ tool, args string }{
		{"glob", `{"pattern":"**"}`},
		{"glob", `{"pattern":"flip/**"}`},
		{"findText", `{"pattern":"**/*","text":"SECRET"}`},
		{"copy", `{"src":"flip","dest":"copied","recursive":true}`},
		{"copy", `{"src":"d","dest":"flip/d","recursive":true}`},
		{"writeFile", `{"path":"flip/d/new","content":"changed","force":true}`},
		{"readFile", `{"path":"flip/a"}`},
		{"mkdir", `{"path":"flip/d/e/n","recursive":true}`},
		{"rm", `{"path":"flip/d","recursive":true}`},
		{"rename", `{"oldPath":"flip/d","newPath":"../in2/d"}`},
	}
	tools := f.tools(t)
	begin := time.Now()
	for round := 0; round < 200 && time.Since(begin) < time.Second && !t.Failed(); round++ {
		for _, c := range calls {
			i := slices.IndexFunc(tools, func(tool core.Tool) bool { return tool.Name == c.tool })
			f.check(t, tools[i], json.RawMessage(c.args), before)
		}
	}
	close(stop)
	<-stopped
}
