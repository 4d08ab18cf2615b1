package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "zenmcp"

// top is the folder of the module.
var top = filepath.Join("..", "..")

// arrows says which of our packages a package may import, tests excepted. A
// pattern is that of path.Match below the module.
var arrows = map[string][]string{
	"core/rawjson":      nil,
	"core/proc":         {"core/rawjson"},
	"core/wire":         {"core/rawjson"},
	"core":              {"core/rawjson"},
	"core/llm":          {"core", "core/rawjson"},
	"core/coretest":     {"core", "core/rawjson"},
	"configs":           {"core", "core/rawjson"},
	"configs/clients":   {"core", "core/rawjson", "configs"},
	"builtin":           {"core", "core/rawjson", "core/proc", "core/llm"},
	"loaders/skills":    {"core", "core/rawjson", "configs"},
	"loaders/mcps":      {"core", "core/rawjson", "core/proc", "core/wire", "configs"},
	"loaders/subagents": {"core", "core/rawjson", "core/llm", "configs"},
	"loaders/usertools": {"core", "core/rawjson", "core/proc", "configs"},
	"mcpserver":         {"core", "core/rawjson", "core/wire"},
	"cmd/zen-mcp":       {"core", "core/*", "builtin", "loaders/*", "configs", "configs/*", "mcpserver", "cmd/zen-mcp/internal/*"},

	"cmd/zen-mcp/internal/doctor": {"core", "core/llm", "core/proc", "loaders/mcps", "loaders/usertools", "configs", "configs/clients", "mcpserver"},
}

// homes says which of our packages may import a module of somebody else's. Tests
// may use every module that has a home; one that ends in _test is for the tests
// of that package alone.
var homes = map[string][]string{
	"github.com/bmatcuk/doublestar/v4":       {"builtin"},
	"github.com/dlclark/regexp2":             {"builtin"},
	"github.com/dlclark/regexp2/v2":          {"builtin"},
	"github.com/coreos/go-oidc/v3":           {"mcpserver"},
	"github.com/fsnotify/fsnotify":           {"configs"},
	"github.com/goccy/go-yaml":               {"loaders/*", "mcpserver", "configs/clients"},
	"github.com/google/jsonschema-go":        {"core", "loaders/*", "mcpserver", "cmd/zen-mcp"},
	"github.com/landlock-lsm/go-landlock":    {"core/proc"},
	"github.com/modelcontextprotocol/go-sdk": {"mcpserver", "core/wire", "loaders/mcps"},
	"github.com/openai/openai-go/v3":         {"core/llm"},
	"github.com/prometheus/client_golang":    {"mcpserver"},
	"github.com/pelletier/go-toml/v2":        {"configs/clients"},
	"github.com/rogpeppe/go-internal":        {"configs/clients", "cmd/zen-mcp_test"},
	"github.com/spf13/pflag":                 {"cmd/zen-mcp"},
	"github.com/tailscale/hujson":            {"configs", "configs/clients"},
	"golang.org/x/oauth2":                    {"loaders/mcps"},
	"golang.org/x/image":                     {"builtin"},
	"golang.org/x/sys":                       {"core", "core/proc", "core/wire", "mcpserver"},
	"golang.org/x/time":                      {"mcpserver"},
	"golang.org/x/text":                      {"builtin", "core"},

	"go.opentelemetry.io/otel":                                        {"mcpserver", "loaders/mcps", "cmd/zen-mcp"},
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp": {"cmd/zen-mcp"},
	"go.opentelemetry.io/otel/sdk":                                    {"cmd/zen-mcp"},
	"go.opentelemetry.io/otel/trace":                                  {"mcpserver", "cmd/zen-mcp"},
}

// A listed package is what `go list` tells about one.
type listed struct {
	ImportPath   string
	Doc          string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Standard     bool
	Module       *struct {
		Path string
		Main bool
	}
}

// look lets the go command see what these tests depend on: their results are
// kept until a file changes that the test itself looked at, and what `go list`
// looks at does not count.
func look(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(top, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && name != top && strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// list runs `go list` over the module and everything it is made of, tests
// included, as one operating system would build it.
func list(t *testing.T, goos string) map[string]listed {
	t.Helper()
	look(t)
	cmd := exec.Command("go", "list", "-deps", "-test", "-e",
		"-json=ImportPath,Doc,GoFiles,Imports,TestImports,XTestImports,Standard,Module", module+"/...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	packages := map[string]listed{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		// Those with a blank or a suffix are variants that the tests build.
		if !strings.ContainsAny(p.ImportPath, " ") && !strings.HasSuffix(p.ImportPath, ".test") {
			packages[p.ImportPath] = p
		}
	}
}

// eachOwn calls f for our packages, on every system that we build for.
func eachOwn(t *testing.T, f func(t *testing.T, name string, p listed, all map[string]listed)) {
	for _, goos := range []string{"linux", "windows", "darwin"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			all, own := list(t, goos), 0
			for _, p := range all {
				if p.Module != nil && p.Module.Main {
					own++
					f(t, strings.TrimPrefix(p.ImportPath, module+"/"), p, all)
				}
			}
			if own < 3 {
				t.Errorf("go list knows only %d packages of ours", own)
			}
		})
	}
}

func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

func TestImportDirection(t *testing.T) {
	t.Parallel()
	eachOwn(t, func(t *testing.T, name string, p listed, _ map[string]listed) {
		allowed, known := arrows[name]
		if !known {
			t.Errorf("package %s is not in the list of arrows", name)
		}
		for _, imported := range p.Imports {
			if rest, ours := strings.CutPrefix(imported, module+"/"); ours && !matches(rest, allowed) {
				t.Errorf("%s must not import %s", name, rest)
			}
		}
	})
}

func TestModulesStayInTheirHomes(t *testing.T) {
	t.Parallel()
	eachOwn(t, func(t *testing.T, name string, p listed, all map[string]listed) {
		check := func(imported string, test bool) {
			q, found := all[imported]
			if !found || q.Standard || q.Module == nil || q.Module.Main {
				return
			}
			home, known := homes[q.Module.Path]
			library := slices.ContainsFunc(home, func(h string) bool { return !strings.HasSuffix(h, "_test") })
			switch {
			case !known:
				t.Errorf("%s imports %s, whose module %s has no home", name, imported, q.Module.Path)
			case test && !library && !matches(name+"_test", home), !test && !matches(name, home):
				t.Errorf("%s imports %s, whose module %s is at home in %q", name, imported, q.Module.Path, home)
			}
		}
		for _, imported := range p.Imports {
			check(imported, false)
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			check(imported, true)
		}
	})
}

func TestPackageComments(t *testing.T) {
	t.Parallel()
	eachOwn(t, func(t *testing.T, name string, p listed, _ map[string]listed) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("package %s has no package comment", name)
		}
	})
}

func TestTopLevel(t *testing.T) {
	t.Parallel()
	allowed := []string{".*", "cmd", "mcpserver", "core", "builtin", "loaders", "configs", "go.mod", "go.sum", "README.md", "LICENSE"}
	// What is ignored may lie about: the built program, for one.
	ignored, err := os.ReadFile(filepath.Join(top, ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range strings.Fields(string(ignored)) {
		allowed = append(allowed, strings.Trim(pattern, "/"))
	}
	entries, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !matches(e.Name(), allowed) {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
}
