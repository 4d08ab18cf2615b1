package configs_test

import (
	"os"
	"path/filepath"
	"testing"

	"zenmcp/configs"
	"zenmcp/core"
)

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// find returns the places of a user who has nothing, and the user's home.
func find(t *testing.T, o configs.Options) *configs.Places {
	t.Helper()
	o.UserHome = t.TempDir()
	o.Getenv = func(string) string { return "" }
	if o.Project == "" {
		o.Project = t.TempDir()
	}
	p, err := configs.Find(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNothingOnDisk(t *testing.T) {
	t.Parallel()
	p := find(t, configs.Options{})
	config, warnings, err := p.Config()
	if err != nil || len(warnings) > 0 || len(config.Endpoints) > 0 {
		t.Errorf("Config() = %v, %v, %v", config, warnings, err)
	}
	agent, err := p.Agent(configs.ChooseAgent("", config))
	if err != nil || agent.ID != "default" || agent.File != "" {
		t.Errorf("Agent() = %+v, %v", agent, err)
	}
	for _, kind := range core.Kinds() {
		if !agent.Permissions.Permits(core.Capability{Kind: kind, Name: "x"}) {
			t.Errorf("the default agent permits no %s", kind)
		}
	}
	if entries, _ := os.ReadDir(p.Home); len(entries) > 0 {
		t.Errorf("reading wrote %v", entries)
	}
}
