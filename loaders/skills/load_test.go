package skills

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"zenmcp/core"
	"zenmcp/core/coretest"
)

// scopeOf makes a scope of an agent that may use load_skill and the skills that
// the policy permits.
func scopeOf(t testing.TB, s *Source, policy core.Policy) *core.Scope {
	t.Helper()
	catalog, err := core.Discover(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	env := &core.Env{}
	env.Update(core.Config{}, catalog)
	agent := core.AgentDefinition{ID: "test", Permissions: core.Permissions{core.KindTool: core.Allow("*"), core.KindSkill: policy}}
	scope, err := core.NewScope(env, agent, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { scope.Close() })
	return scope
}

// load calls load_skill with JSON arguments.
func load(t testing.TB, scope *core.Scope, format string, args ...any) (string, error) {
	t.Helper()
	tool, ok := scope.Tools().Tool(loadName)
	if !ok {
		t.Fatal("load_skill is not published")
	}
	res, err := tool.Run(t.Context(), &core.Call{Arguments: fmt.Appendf(nil, format, args...)})
	if err != nil {
		return "", err
	}
	return res.Text(), nil
}

func mustLoad(t testing.TB, scope *core.Scope, format string, args ...any) string {
	t.Helper()
	text, err := load(t, scope, format, args...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSource(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"alpha", "beta", "gamma"} {
		write(t, root, name+"/SKILL.md", plain(name))
	}
	write(t, root, "broken/SKILL.md", "no frontmatter")
	coretest.TestSource(t, newSource(t, root, root),
		core.Capability{Kind: core.KindTool, Name: loadName}, core.Capability{Kind: core.KindSkill, Name: "beta"})
	coretest.TestSource(t, newSource(t, root), core.Capability{Kind: core.KindTool, Name: loadName})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "alpha/SKILL.md", "\uFEFF"+plain("alpha"))
	write(t, root, "alpha/references/deep/a.md", "the reference")
	write(t, root, "alpha/image.bin", "\x00\xff\x01")
	write(t, root, "alpha/.git/HEAD", "ref")
	scope := scopeOf(t, newSource(t, root, root), core.Allow("*"))

	text := mustLoad(t, scope, `{"skill_id":"alpha"}`)
	want := fmt.Sprintf("The skill \"alpha\" is in %s, with 3 files:\nSKILL.md\nimage.bin\nreferences/deep/a.md\n\n%s", filepath.Join(root, "alpha"), plain("alpha"))
	if text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	if again := mustLoad(t, scope, `{"skill_id":"alpha"}`); strings.Contains(again, "\n") || !strings.Contains(again, "reload") {
		t.Errorf("a second load says %q", again)
	}
	if again := mustLoad(t, scope, `{"skill_id":"alpha","reload":true}`); again != want {
		t.Errorf("reload says %q", again)
	}
	run, err := scope.Child(scope.Agent())
	if err != nil {
		t.Fatal(err)
	}
	if child := mustLoad(t, run, `{"skill_id":"alpha"}`); child != want {
		t.Errorf("a sub-agent's run, which is a conversation of its own, gets %q", child)
	}
	write(t, root, "alpha/SKILL.md", plain("alpha")+"more\n")
	if changed := mustLoad(t, scope, `{"skill_id":"alpha"}`); !strings.HasSuffix(changed, "more\n") {
		t.Errorf("after a change it says %q", changed)
	}
	if file := mustLoad(t, scope, `{"skill_id":"alpha","file":"references/deep/a.md"}`); file != "the reference" {
		t.Errorf("the file is %q", file)
	}
	if _, err := load(t, scope, `{"skill_id":"alpha","file":"references/deep/b.md"}`); err == nil || !strings.Contains(err.Error(), `did you mean "references/deep/a.md"`) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := load(t, scope, `{"skill_id":"alpha","file":"image.bin"}`); err == nil || !strings.Contains(err.Error(), "3 bytes") {
		t.Errorf("a binary file: %v", err)
	}
}

// TestLoadSessionless checks that a caller without a session gets the text every
// time: what was loaded before may have been another caller's.
func TestLoadSessionless(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "alpha/SKILL.md", plain("alpha"))
	tool, _ := scopeOf(t, newSource(t, root, root), core.Allow("*")).Tools().Tool(loadName)
	for range 2 {
		res, err := tool.Run(t.Context(), &core.Call{Arguments: []byte(`{"skill_id":"alpha"}`), Sessionless: true})
		if err != nil || !strings.Contains(res.Text(), "# alpha") {
			t.Errorf("got %v, %v", res, err)
		}
	}
}

// TestDeniedIsUnknown holds B01 and B02 closed: ids are names, and what is denied
// does not exist.
func TestDeniedIsUnknown(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "s/alpha/SKILL.md", plain("alpha"))
	write(t, root, "s/secret/SKILL.md", plain("secret"))
	write(t, root, "s/hidden/SKILL.md", "no frontmatter")
	write(t, root, "outside/SKILL.md", plain("outside"))
	scope := scopeOf(t, newSource(t, root, filepath.Join(root, "s")), core.Deny("secret", "hidden"))
	unknown := ""
	for _, id := range []string{"nobodys-name", "secret", "hidden", "../outside", "./alpha", "alpha/", "ALPHA_", "*"} {
		_, err := load(t, scope, `{"skill_id":%q}`, id)
		if err == nil {
			t.Errorf("%q was loaded", id)
			continue
		}
		words, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), fmt.Sprintf("%q", id), "NAME"), ";")
		if unknown == "" {
			unknown = words
		}
		if words != unknown {
			t.Errorf("%q: %q, but an unknown name: %q", id, words, unknown)
		}
	}
}

// TestAwkwardFrontmatter is C71: a skill is loaded, or its reason is told to
// whoever asks for it.
func TestAwkwardFrontmatter(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := filepath.Join(root, "s")
	write(t, s, "colon/SKILL.md", "---\nname: colon\ndescription: Use: a, b\n---\n")
	write(t, s, "crlf/SKILL.md", "---\r\nname: crlf\r\ndescription: >\r\n  folded\r\n  text\r\n---\r\n")
	write(t, s, "bom/SKILL.md", "\uFEFF---\nname: bom\ndescription: d\n---\n")
	write(t, s, "nameless/SKILL.md", "---\ndescription: d\n---\n")
	write(t, s, "bare/SKILL.md", "# no frontmatter\n")
	write(t, s, "off/SKILL.md", "---\nname: off\ndescription: d\nenabled: false\n---\n")
	write(t, s, "endless/SKILL.md", "---\nname: endless\n")
	want := []string{"bom", "colon", "crlf"}
	if runtime.GOOS != "windows" {
		write(t, root, "real/linked/SKILL.md", plain("linked"))
		if err := os.Symlink(filepath.Join(root, "real", "linked"), filepath.Join(s, "linked")); err != nil {
			t.Fatal(err)
		}
		want = append(want, "linked")
	}
	source := newSource(t, root, s)
	found, err := source.Discover(t.Context())
	var ids []string
	for _, s := range found.(*offer).skills {
		ids = append(ids, s.id)
	}
	if !slices.Equal(ids, want) {
		t.Errorf("skills %q, want %q", ids, want)
	}
	reasons := map[string]string{}
	for _, o := range core.Omissions(err) {
		if o.Offered != slices.Contains(want, o.Name) {
			t.Errorf("%v: offered %v", o, o.Offered)
		}
		reasons[o.Name] = o.Origin + ": " + o.Reason
	}
	for id, part := range map[string]string{"nameless": "name: is missing", "bare": "no frontmatter", "off": "enabled: false", "endless": "does not end", "colon": "put the value in quotes"} {
		if !strings.Contains(reasons[id], part) || !strings.Contains(reasons[id], filepath.Join(id, manifestName)) {
			t.Errorf("%s: the reason is %q, want %q and the file", id, reasons[id], part)
		}
	}
	scope := scopeOf(t, source, core.Allow("*"))
	for id, part := range map[string]string{"nameless": "name: is missing", "bare": "no frontmatter"} {
		if _, err := load(t, scope, `{"skill_id":%q}`, id); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("load_skill of %s says %v", id, err)
		}
	}
}

func TestDisabledHidesLowerPlaces(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "p/x/SKILL.md", "---\nname: x\ndescription: d\nenabled: false\n---\n")
	write(t, root, "u/x/SKILL.md", plain("x"))
	if o := discover(t, newSource(t, root, filepath.Join(root, "p"), filepath.Join(root, "u"))); len(o.skills) != 0 {
		t.Errorf("%q is offered from %s", o.skills[0].id, o.skills[0].dir)
	}
}

// TestDisclosure checks what a model sees of the skills before it loads one.
func TestDisclosure(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "zeta/SKILL.md", "---\nname: zeta\ndescription: |\n  about\n  zeta\n---\n")
	write(t, root, "alpha/SKILL.md", "---\nname: alpha\ndescription: \"use: when\"\n---\n")
	write(t, root, "long/SKILL.md", "---\nname: long\ndescription: "+strings.Repeat("ü", 1000)+"\n---\n")
	tool, _ := scopeOf(t, newSource(t, root, root), core.Allow("*")).Tools().Tool(loadName)
	in := tool.Input.Properties["skill_id"]
	if want := []any{"alpha", "long", "zeta"}; !slices.Equal(in.Enum, want) {
		t.Errorf("choices %q, want %q", in.Enum, want)
	}
	want := "One of:\n  - alpha: use: when\n  - long: " + strings.Repeat("ü", 199) + "…\n  - zeta: about zeta"
	if in.Description != want {
		t.Errorf("the choices are described as %q, want %q", in.Description, want)
	}
	if _, ok := tool.Input.Properties["query"]; ok || !slices.Equal(tool.Input.Required, []string{"skill_id"}) {
		t.Error("three skills need no query")
	}
	if got := scopeOf(t, newSource(t, root, root), core.Deny("*")).Tools().Names(); len(got) != 0 {
		t.Errorf("without skills there are the tools %q", got)
	}
}

// many makes n skills.
func many(t testing.TB, n int) *Source {
	t.Helper()
	root := t.TempDir()
	for i := range n {
		name := fmt.Sprintf("skill-%04d", i)
		write(t, root, name+"/SKILL.md", fmt.Sprintf("---\nname: %s\ndescription: Handles the documents of department %d. Use it when somebody asks for one.\nlicense: MIT\nmetadata:\n  author: me\n  version: \"1.0\"\n---\n# %s\n\nDo it.\n", name, i, name))
		old := time.Now().Add(-time.Hour) // as files are that nobody edits
		if err := os.Chtimes(filepath.Join(root, name, manifestName), old, old); err != nil {
			t.Fatal(err)
		}
	}
	return newSource(t, root, root)
}

func TestManySkills(t *testing.T) {
	t.Parallel()
	for n, named := range map[int]bool{61: true, 2000: false} {
		scope := scopeOf(t, many(t, n), core.Allow("*"))
		tool, _ := scope.Tools().Tool(loadName)
		definition, err := json.Marshal(map[string]any{"name": tool.Name, "description": tool.Description, "inputSchema": tool.Input})
		if err != nil {
			t.Fatal(err)
		}
		if len(definition) > 2000 || !strings.Contains(tool.Description, fmt.Sprintf("There are %d", n)) {
			t.Errorf("%d skills: %d bytes of definition: %s", n, len(definition), tool.Description)
		}
		if got := len(tool.Input.Properties["skill_id"].Enum) > 0; got != named {
			t.Errorf("%d skills: names in the schema: %v", n, got)
		}
		hits := mustLoad(t, scope, `{"query":"Department 42"}`)
		if first := strings.Split(hits, "\n")[1]; !strings.Contains(first, "skill-0042") {
			t.Errorf("%d skills: the search begins with %q", n, first)
		}
		if hits := mustLoad(t, scope, `{"query":"zebra"}`); !strings.Contains(hits, "None") {
			t.Errorf("a search for nothing says %q", hits)
		}
		if text := mustLoad(t, scope, `{"skill_id":"skill-0042"}`); !strings.Contains(text, "# skill-0042") {
			t.Errorf("load_skill says %q", text)
		}
		if _, err := load(t, scope, `{}`); err == nil {
			t.Error("a call without arguments is answered")
		}
	}
}

// BenchmarkDiscover finds 2,000 skills that were never read before; it should
// take less than 300 ms.
func BenchmarkDiscover(b *testing.B) {
	s := many(b, 2000)
	for b.Loop() {
		fresh := New(s.places)
		if o, err := fresh.Discover(context.Background()); err != nil || len(o.(*offer).skills) != 2000 {
			b.Fatal(err)
		}
	}
}

// BenchmarkRediscover finds them again.
func BenchmarkRediscover(b *testing.B) {
	s := many(b, 2000)
	discover(b, s)
	for b.Loop() {
		if _, err := s.Discover(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
