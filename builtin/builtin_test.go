package builtin

import (
	"testing"

	"zenmcp/core"
)

func TestSourceFindsEveryTool(t *testing.T) {
	t.Parallel()
	catalog, err := core.Discover(t.Context(), Source())
	if err != nil {
		t.Fatal(err)
	}
	env := &core.Env{}
	env.Update(core.Config{}, catalog)
	scope, err := core.NewScope(env, core.AgentDefinition{Permissions: core.AllowAll()}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	published := scope.Tools()
	for _, d := range definitions() {
		if d.Available != nil {
			continue
		}
		if _, ok := published.Tool(d.Name); !ok {
			t.Errorf("%s is not published", d.Name)
		}
	}
	tool, _ := published.Tool("cwd")
	res, err := tool.Run(t.Context(), &core.Call{})
	if err != nil || res.Text() != scope.Dir() {
		t.Errorf("cwd = %v, %v; want %q", res, err, scope.Dir())
	}
}
