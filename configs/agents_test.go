package configs_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zenmcp/configs"
	"zenmcp/core"
)

func TestAgentsPrecedence(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	p := u.find(t, configs.Options{})
	ofProject, ofHome := filepath.Join(u.project, ".ai-zen", "agents"), filepath.Join(p.Home, "agents")
	write(t, filepath.Join(ofProject, "both.json"), `{"name": "project"}`)
	write(t, filepath.Join(ofHome, "both.json"), `{"name": "home"}`)
	write(t, filepath.Join(ofHome, "only.json"), `{"name": "home"}`)
	write(t, filepath.Join(ofProject, "broken.json"), `{"name": `)
	write(t, filepath.Join(ofHome, "broken.json"), `{"name": "hidden"}`)
	write(t, filepath.Join(ofHome, ".#only.json"), `{`)
	write(t, filepath.Join(ofHome, "notes.txt"), `{`)

	for id, want := range map[string]string{"both": "project", "only": "home", "default": "Default"} {
		a, err := p.Agent(id)
		if err != nil || a.Name != want || a.ID != id || a.Project != (want == "project") {
			t.Errorf("%s: %+v, %v", id, a, err)
		}
	}
	wantErr := filepath.Join(ofProject, "broken.json") + ":1:10: the file ends here, but the { in line 1 is not closed"
	if _, err := p.Agent("broken"); err == nil || err.Error() != wantErr {
		t.Errorf("broken: %v", err)
	}
	agents, err := p.Agents()
	var ids []string
	for _, a := range agents {
		ids = append(ids, a.ID+" "+a.Name)
	}
	if want := []string{"both project", "default Default", "only home"}; !slices.Equal(ids, want) {
		t.Errorf("listed %q", ids)
	}
	if err == nil || err.Error() != wantErr {
		t.Errorf("listed with %v", err)
	}
	if _, err := p.Agent("bohth"); err == nil || err.Error() != `there is no agent "bohth"; did you mean "both"?; there are ["both" "default" "only"]` {
		t.Errorf("unknown: %v", err)
	}
}

func TestADefaultAgentOfOnesOwn(t *testing.T) {
	t.Parallel()
	p := find(t, configs.Options{})
	file := write(t, filepath.Join(p.Home, "agents", "default.json"), `{"permissions": {"tools": {"allow": ["ls"]}}}`)
	a, err := p.Agent(configs.DefaultAgent)
	if err != nil || a.File != file || a.Permissions.Permits(core.Capability{Kind: core.KindTool, Name: "rm"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if agents, err := p.Agents(); err != nil || len(agents) != 1 || agents[0].File != file {
		t.Errorf("listed %+v, %v", agents, err)
	}
}

// The built-in agent, which permits everything, does not stand in for a file
// that cannot be understood.
func TestABrokenDefaultAgent(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{broken`, ``, `null`, `{"permissions": {"tools": {}}}`} {
		p := find(t, configs.Options{})
		file := write(t, filepath.Join(p.Home, "agents", "default.json"), text)
		if a, err := p.Agent(configs.DefaultAgent); err == nil || a.Permissions != nil {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
		if agents, err := p.Agents(); err == nil || len(agents) > 0 {
			t.Errorf("%s: listed %+v, %v", text, agents, err)
		}
		if after, _ := os.ReadFile(file); string(after) != text {
			t.Errorf("%s became %s", text, after)
		}
	}
}

func TestChooseAgent(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"asked":      configs.ChooseAgent("asked", core.Config{DefaultAgent: "configured"}),
		"configured": configs.ChooseAgent("", core.Config{DefaultAgent: "configured"}),
		"default":    configs.ChooseAgent("", core.Config{}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// An id is never a path (B12), also where a file lies at the end of it.
func TestAgentIDsArePlainNames(t *testing.T) {
	t.Parallel()
	p := find(t, configs.Options{})
	write(t, filepath.Join(p.Home, "x.json"), `{}`)
	write(t, filepath.Join(p.Home, "agents", "sub", "x.json"), `{}`)
	write(t, filepath.Join(p.Home, "agents", ".x.json"), `{}`)
	absolute := filepath.Join(p.Home, "x")
	for _, id := range []string{"", ".", "..", "../x", `..\x`, "sub/x", `sub\x`, "/x", absolute, "C:x", ".x", "x\x00", "x\n"} {
		a, err := p.Agent(id)
		if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "id") {
			t.Errorf("%q: %+v, %v", id, a, err)
		}
	}
	if a, err := p.Agent("mine too, äö"); err == nil || !strings.Contains(err.Error(), "there is no agent") {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestFactoryDefaults(t *testing.T) {
	t.Parallel()
	p := find(t, configs.Options{})
	var files []string
	err := fs.WalkDir(configs.Defaults(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files = append(files, name)
		text, err := fs.ReadFile(configs.Defaults(), name)
		if err != nil {
			return err
		}
		return configs.WriteFile(t.Context(), filepath.Join(p.Home, filepath.FromSlash(name)), text, false)
	})
	if want := []string{"agents/default.json", "config.json", "mcp.json", "sub-agents/sub-agent-default.json"}; err != nil || !slices.Equal(files, want) {
		t.Fatalf("%q, %v", files, err)
	}

	config, warnings, err := p.Config()
	if err != nil || len(warnings) > 0 {
		t.Fatalf("config.json: %v, %v", warnings, err)
	}
	var factory core.Config // contract §11
	doc, err := configs.ReadFile("testdata/factory.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := doc.Decode(&factory); err != nil {
		t.Fatal(err)
	}
	if got, want := shape(t, config), shape(t, factory); got != want {
		t.Errorf("config.json\n got %s\nwant %s", got, want)
	}

	agent, err := p.Agent("default")
	builtin := agentOf(t, find(t, configs.Options{}), "default")
	if err != nil || len(agent.Warnings) > 0 || agent.Name != builtin.Name || len(builtin.Messages) != 1 {
		t.Errorf("default agent: %+v, %v", agent, err)
	}
	helper, warnings, err := configs.ReadAgent(filepath.Join(p.Home, "sub-agents", "sub-agent-default.json"))
	if err != nil || len(warnings) > 0 || helper.Function == nil || helper.Function.Name != "sub_agent_default" {
		t.Errorf("sub-agent: %+v, %v, %v", helper, warnings, err)
	}
	for _, kind := range core.Kinds() {
		c := core.Capability{Kind: kind, Name: "x"}
		if !agent.Permissions.Permits(c) || !builtin.Permissions.Permits(c) || helper.Permissions.Permits(c) != (kind != core.KindSubagent) {
			t.Errorf("%s: default %v, sub-agent %v", kind, agent.Permissions, helper.Permissions)
		}
	}
	servers, err := configs.ReadFile(filepath.Join(p.Home, "mcp.json"))
	if err != nil || compact(t, servers.JSON()) != `{"$schema":"./schema/mcp.json","mcpServers":{}}` {
		t.Errorf("mcp.json: %v", err)
	}
}

func agentOf(t *testing.T, p *configs.Places, id string) configs.Agent {
	t.Helper()
	a, err := p.Agent(id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// shape is a configuration without the names, which are our own.
func shape(t *testing.T, c core.Config) string {
	t.Helper()
	for i := range c.Endpoints {
		c.Endpoints[i].Name = ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b ö")
	file := filepath.Join(dir, "x.json")
	for _, step := range []struct {
		text      string
		overwrite bool
		want      string
	}{{"one", false, "one"}, {"two", false, "one"}, {"three", true, "three"}} {
		err := configs.WriteFile(t.Context(), file, []byte(step.text), step.overwrite)
		if refused := step.text != step.want; refused != errors.Is(err, fs.ErrExist) || !refused && err != nil {
			t.Errorf("%s: %v", step.text, err)
		}
		if got, _ := os.ReadFile(file); string(got) != step.want {
			t.Errorf("%s: the file holds %q", step.text, got)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
