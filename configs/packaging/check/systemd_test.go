package check

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestUnit has systemd read the unit, and rate what the service could reach: from
// 0, nothing, to 10, everything.
func TestUnit(t *testing.T) {
	t.Parallel()
	// verify wants the program to be there.
	text := bytes.Replace(read(t, "systemd/zen-mcp.service"), []byte("/usr/local/bin/zen-mcp"), []byte("/bin/true"), 1)
	unit := filepath.Join(t.TempDir(), "zen-mcp.service")
	analyze := func(text []byte, args ...string) (string, error) {
		if err := os.WriteFile(unit, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("systemd-analyze", append(args, unit)...).CombinedOutput()
		return string(out), err
	}
	// What it only warns of, as of a misspelt key, is wrong too.
	if out, err := analyze(text, "verify"); out != "" || err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if out, err := analyze(bytes.Replace(text, []byte("ProtectHome="), []byte("ProtectHouse="), 1), "verify"); out == "" {
		t.Errorf("verify has nothing against a misspelt key: %v", err)
	}
	if out, err := analyze(text, "security", "--offline=true", "--threshold=20"); err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
}
