package mcps

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"zenmcp/configs"
	"zenmcp/core"
)

// conformanceMode is what this binary is started with to be the client under
// test of the conformance suite, which gives it the address of a server.
const conformanceMode = "conformance"

// conformanceClient loads the server, calls every tool it has, and closes. What
// the suite wants to know it sees at the other end.
func conformanceClient(url string) error {
	home, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	var given suiteContext
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	scope, err := conformanceScope(home, url, given)
	if err != nil {
		return err
	}
	defer scope.Close()
	ctx := context.Background()
	call := func(tool string, arguments any) (*core.Result, error) {
		raw, err := json.Marshal(arguments)
		if err != nil {
			return nil, err
		}
		res, err := run(ctx, scope, tool, &core.Call{Arguments: raw, Elicit: acceptDefaults})
		fmt.Fprintln(os.Stderr, tool, string(raw), err)
		return res, err
	}
	res, err := call(loadName, args{"server": "s"})
	if err != nil {
		return err
	}
	for _, c := range given.ToolCalls {
		if _, err := call(callName, args{"server": "s", "tool": c.Name, "arguments": c.Arguments}); err != nil {
			return err
		}
	}
	if given.ToolCalls != nil {
		return nil
	}
	var manifest struct {
		Tools []struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal([]byte(res.Text()), &manifest); err != nil {
		return err
	}
	for _, t := range manifest.Tools {
		// A tool may be there to fail.
		_, _ = call(callName, args{"server": "s", "tool": t.Name, "arguments": sampleArguments(t.InputSchema)})
	}
	return nil
}

// A suiteContext is what the suite tells a client about a scenario.
type suiteContext struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ToolCalls    []struct {
		Name      string
		Arguments json.RawMessage
	}
}

func conformanceScope(home, url string, given suiteContext) (*core.Scope, error) {
	entry := args{"url": url}
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd" {
		entry["oauth"] = args{"clientId": "https://conformance-test.local/client-metadata.json"}
	}
	if given.ClientID != "" {
		entry["oauth"] = args{"clientId": given.ClientID, "clientSecret": given.ClientSecret}
	}
	text, err := json.Marshal(args{"mcpServers": args{"s": entry}})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(home, "mcp.json"), text, 0o600); err != nil {
		return nil, err
	}
	places, err := configs.Find(configs.Options{Home: home, Project: home, UserHome: home})
	if err != nil {
		return nil, err
	}
	source := New(Options{Places: places, Version: "1", SignIn: func(_ context.Context, _, address string) error {
		resp, err := http.Get(address)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}})
	catalog, err := core.Discover(context.Background(), source)
	if err != nil {
		return nil, err
	}
	env := &core.Env{Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	env.Update(core.Config{}, catalog)
	return core.NewScope(env, core.AgentDefinition{ID: "a", Permissions: core.AllowAll()}, home, nil)
}

// acceptDefaults is a user who accepts what a form proposes.
func acceptDefaults(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	var form struct {
		RequestedSchema struct {
			Properties map[string]struct {
				Default json.RawMessage `json:"default"`
				Type    string          `json:"type"`
			} `json:"properties"`
		} `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &form); err != nil {
		return nil, err
	}
	content := map[string]any{}
	for name, p := range form.RequestedSchema.Properties {
		if p.Default != nil {
			content[name] = p.Default
		} else {
			content[name] = sampleValue(p.Type)
		}
	}
	return json.Marshal(map[string]any{"action": "accept", "content": content})
}

func sampleArguments(schema json.RawMessage) map[string]any {
	var s struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	out := map[string]any{}
	if json.Unmarshal(schema, &s) == nil {
		for name, p := range s.Properties {
			out[name] = sampleValue(p.Type)
		}
	}
	return out
}

func sampleValue(kind string) any {
	switch kind {
	case "number", "integer":
		return 5
	case "boolean":
		return true
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "text"
}
