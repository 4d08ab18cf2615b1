package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"zenmcp/mcpserver"
)

// packaged reads a file of configs/packaging.
func packaged(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(top, "configs", "packaging", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// unmarshal decodes JSON or YAML; a key that v does not have is of no interest.
func unmarshal(t *testing.T, text string, v any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
}

// bundleArgs are the arguments of the MCP bundle, with what its user chose.
func bundleArgs(t *testing.T) []string {
	var manifest struct {
		Server struct {
			Config struct{ Args []string } `yaml:"mcp_config"`
		}
	}
	unmarshal(t, packaged(t, "mcpb/manifest.json"), &manifest)
	chosen := strings.NewReplacer("${user_config.folder}", t.TempDir(), "${user_config.commands}", "false")
	for i, arg := range manifest.Server.Config.Args {
		manifest.Server.Config.Args[i] = chosen.Replace(arg)
	}
	return manifest.Server.Config.Args
}

// registryArgs are the arguments that the registry's entry gives to the image.
func registryArgs(t *testing.T) []string {
	var entry struct {
		Packages []struct {
			PackageArguments []struct{ Value string } `yaml:"packageArguments"`
		}
	}
	unmarshal(t, packaged(t, "server.json"), &entry)
	var args []string
	for _, p := range entry.Packages {
		for _, a := range p.PackageArguments {
			args = append(args, a.Value)
		}
	}
	return args
}

// kubernetes holds what is of interest in the objects of the example.
type kubernetes struct {
	Kind       string
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Image string
					Args  []string
				}
			}
		}
	}
}

func kubernetesObjects(t *testing.T) map[string]kubernetes {
	objects := map[string]kubernetes{}
	for doc := range strings.SplitSeq(packaged(t, "kubernetes/zen-mcp.yaml"), "\n---\n") {
		var o kubernetes
		unmarshal(t, doc, &o)
		objects[o.Kind] = o
	}
	return objects
}

// dockerArgs are the arguments of the program behind an instruction's JSON form.
func dockerArgs(t *testing.T, instruction string) []string {
	m := regexp.MustCompile(`(?m)^ *` + instruction + ` (\[.*\])$`).FindStringSubmatch(packaged(t, "Dockerfile"))
	if m == nil {
		t.Fatalf("the Dockerfile has no %s", instruction)
	}
	var args []string
	if err := json.Unmarshal([]byte(m[1]), &args); err != nil {
		t.Fatal(err)
	}
	return args
}

// TestPackagedCommandLines: what the packages start is what the program takes.
func TestPackagedCommandLines(t *testing.T) {
	t.Parallel()
	unit := regexp.MustCompile(`(?m)^ExecStart=/\S+/zen-mcp (.*)$`).FindStringSubmatch(packaged(t, "systemd/zen-mcp.service"))
	if unit == nil {
		t.Fatal("the unit has no ExecStart")
	}
	health := dockerArgs(t, "CMD")
	for where, args := range map[string][]string{
		"the bundle":         bundleArgs(t),
		"server.json":        registryArgs(t),
		"the Deployment":     kubernetesObjects(t)["Deployment"].Spec.Template.Spec.Containers[0].Args,
		"the image":          dockerArgs(t, `^CMD`),
		"the image's health": health[1:],
		"the unit":           strings.Fields(unit[1]),
	} {
		if len(args) == 0 {
			t.Errorf("%s: no arguments", where)
			continue
		}
		i := slices.IndexFunc(commands(), func(c command) bool { return c.name == args[0] })
		if i < 0 {
			t.Errorf("%s: no command %q", where, args[0])
			continue
		}
		set := commands()[i].flagSet(new(options))
		if err := set.Parse(args[1:]); err != nil || set.NArg() > 0 {
			t.Errorf("%s: %q: %v, left over %q", where, args, err, set.Args())
		}
	}
}

// TestPackagedNames: the flags and variables that the packages' files speak of
// exist, and what several of them name is the same everywhere.
func TestPackagedNames(t *testing.T) {
	t.Parallel()
	flags, variables := map[string]bool{}, map[string]bool{"ZEN_MCP_TOKEN": true}
	for _, c := range commands() {
		c.flagSet(new(options)).VisitAll(func(f *pflag.Flag) {
			flags["--"+f.Name], variables[environmentName(f)] = true, true
		})
	}
	for _, name := range []string{"systemd/zen-mcp.service", "kubernetes/zen-mcp.yaml"} {
		for _, flag := range regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(packaged(t, name), -1) {
			if !flags[flag] {
				t.Errorf("%s: no flag %s", name, flag)
			}
		}
	}
	for _, name := range []string{"Dockerfile", "systemd/zen-mcp.service", "kubernetes/zen-mcp.yaml", "mcpb/manifest.json", "server.json"} {
		for _, v := range regexp.MustCompile(`ZEN_MCP_[A-Z_]+`).FindAllString(packaged(t, name), -1) {
			if !variables[v] {
				t.Errorf("%s: no variable %s", name, v)
			}
		}
	}
	var entry struct {
		Name     string
		Packages []struct{ Identifier string }
	}
	unmarshal(t, packaged(t, "server.json"), &entry)
	// The registry believes an image that carries the entry's name.
	if label := `io.modelcontextprotocol.server.name="` + entry.Name + `"`; !strings.Contains(packaged(t, "Dockerfile"), label) {
		t.Errorf("the Dockerfile has no label %s", label)
	}
	if image := kubernetesObjects(t)["Deployment"].Spec.Template.Spec.Containers[0].Image; image != entry.Packages[1].Identifier {
		t.Errorf("the Deployment's image is %s, the registry's %s", image, entry.Packages[1].Identifier)
	}
}

// TestPackagedBundler: a release packs with what the end-to-end tests pack with.
func TestPackagedBundler(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(top, "mcpserver", "testdata", "e2e", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tested struct{ Dependencies map[string]string }
	unmarshal(t, string(data), &tested)
	const bundler = "@anthropic-ai/mcpb"
	if want := bundler + "@" + tested.Dependencies[bundler]; !strings.Contains(packaged(t, "mcpb/pack.sh"), want+"}") {
		t.Errorf("pack.sh does not use %s", want)
	}
}

// TestPackagedSecret: the example's tokens are what --token-file reads.
func TestPackagedSecret(t *testing.T) {
	t.Parallel()
	if err := mcpserver.CheckTokens([]byte(kubernetesObjects(t)["Secret"].StringData["tokens.yaml"])); err != nil {
		t.Error(err)
	}
}
