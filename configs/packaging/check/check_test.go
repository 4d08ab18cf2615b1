package check

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/modelcontextprotocol/registry/pkg/model"
	"github.com/opencontainers/go-digest"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// top is where a release is made.
var top = filepath.Join("..", "..", "..")

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// goreleaser itself takes minutes to build. This is how its check reads the file;
// what it goes on to check is defaults and templates.
func TestGoreleaser(t *testing.T) {
	t.Parallel()
	p, err := config.LoadReader(bytes.NewReader(read(t, ".goreleaser.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	b := p.Builds[0]
	if !slices.Equal(b.Goos, []string{"linux", "darwin", "windows"}) || !slices.Equal(b.Goarch, []string{"amd64", "arm64"}) {
		t.Errorf("builds for %q on %q", b.Goos, b.Goarch)
	}
	for _, wants := range [][2]string{
		{strings.Join(b.Env, " "), "CGO_ENABLED=0"},
		{strings.Join(b.Flags, " "), "-trimpath"},
		{strings.Join(b.Ldflags, " "), "-X main.version={{ .Version }}"},
		{b.ModTimestamp, "{{ .CommitTimestamp }}"},
		{p.Checksum.NameTemplate, "checksums.txt"},
	} {
		if !strings.Contains(wants[0], wants[1]) {
			t.Errorf("%q lacks %s", wants[0], wants[1])
		}
	}
	if len(p.SBOMs) == 0 {
		t.Error("no SBOM")
	}
	for _, f := range p.Archives[0].Files {
		if found, err := filepath.Glob(filepath.Join(top, f.Source)); err != nil || len(found) == 0 {
			t.Errorf("archives are to hold %s, which is not there (%v)", f.Source, err)
		}
	}
}

// noImages stands for a registry: of a base image the checks need no more than
// that there is one.
type noImages struct{}

func (noImages) ResolveImageConfig(_ context.Context, ref string, _ sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	return ref, digest.FromString(ref), []byte(`{"architecture":"amd64","os":"linux","config":{}}`), nil
}

// lint gives what `docker build --check` has to say of a Dockerfile.
func lint(t *testing.T, text []byte) (warnings []string) {
	t.Helper()
	_, err := dockerfile2llb.Dockerfile2LLB(t.Context(), text, dockerfile2llb.ConvertOpt{
		MetaResolver: noImages{},
		AllStages:    true,
		Warn: func(rule, _, _, message string, _ []parser.Range) {
			warnings = append(warnings, rule+": "+message)
		},
	})
	if err != nil {
		t.Error(err)
	}
	return warnings
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	text := read(t, "Dockerfile")
	for _, w := range lint(t, text) {
		t.Error(w)
	}
	worse := bytes.Replace(text, []byte("WORKDIR /work"), []byte("WORKDIR $WRK"), 1)
	got := strings.Join(lint(t, append(worse, "CMD zen-mcp\n"...)), "\n")
	for _, rule := range []string{"UndefinedVar", "JSONArgsRecommended", "MultipleInstructionsDisallowed"} {
		if !strings.Contains(got, rule) {
			t.Errorf("no %s about a worse file, but %s", rule, got)
		}
	}
}

// registrySchema is the schema that the registry compiles in.
func registrySchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/modelcontextprotocol/registry").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(strings.TrimSpace(string(dir)), "internal", "validators", "schemas", model.CurrentSchemaVersion+".json")
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestServerJSON(t *testing.T) {
	t.Parallel()
	schema := registrySchema(t)
	text := read(t, "server.json")
	decode := func(text []byte) map[string]any {
		var v map[string]any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	entry := decode(text)
	if err := schema.Validate(entry); err != nil {
		t.Error(err)
	}
	if entry["$schema"] != model.CurrentSchemaURL {
		t.Errorf("$schema is %s, the registry's is %s", entry["$schema"], model.CurrentSchemaURL)
	}
	for name, worse := range map[string]any{"name": "zen-mcp", "description": strings.Repeat("x", 101), "repository": "here"} {
		entry := decode(text)
		entry[name] = worse
		if schema.Validate(entry) == nil {
			t.Errorf("%s = %q is valid", name, worse)
		}
	}
}
