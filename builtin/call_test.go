package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"zenmcp/core"
)

// newScope is a client that may use every built-in tool in dir; roots confine it.
func newScope(t testing.TB, config core.Config, dir string, roots ...string) *core.Scope {
	t.Helper()
	catalog, err := core.Discover(t.Context(), Source())
	if err != nil {
		t.Fatal(err)
	}
	env := &core.Env{StateDir: t.TempDir()}
	env.Update(config, catalog)
	confined, err := core.OpenRoots(roots)
	if err != nil {
		t.Fatal(err)
	}
	scope, err := core.NewScope(env, core.AgentDefinition{Permissions: core.AllowAll()}, dir, confined)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(scope.Close(), confined.Close()); err != nil {
			t.Error(err)
		}
	})
	return scope
}

// callTool calls a published tool. What a client sees of an error is its text.
func callTool(t testing.TB, ctx context.Context, scope *core.Scope, name string, args json.RawMessage) (answer string, failed bool) {
	t.Helper()
	tool, ok := scope.Tools().Tool(name)
	if !ok {
		t.Fatalf("%s is not published", name)
	}
	res, err := tool.Run(ctx, &core.Call{Arguments: args})
	if err != nil {
		res = core.ErrorResult(err)
	}
	return res.Text(), res.IsError
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}
