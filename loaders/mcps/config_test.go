package mcps

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"zenmcp/configs"
	"zenmcp/core"
	"zenmcp/core/coretest"
)

// A listed is a server as the vectors write it: what has its default is absent.
type listed struct {
	ID              string            `json:"id"`
	Transport       Transport         `json:"transport"`
	Description     string            `json:"description,omitempty"`
	Command         string            `json:"command,omitempty"`
	Args            []string          `json:"args,omitempty"`
	Env             map[string]string `json:"env,omitempty"`
	Dir             string            `json:"cwd,omitempty"`
	URL             string            `json:"url,omitempty"`
	Headers         map[string]string `json:"headers,omitempty"`
	OAuthClientID   string            `json:"oauthClientId,omitempty"`
	Protocol        Era               `json:"protocol,omitempty"`
	Shared          bool              `json:"shared,omitempty"`
	Timeout         *int64            `json:"timeout,omitempty"`
	MaxTotalTimeout *int64            `json:"maxTotalTimeout,omitempty"`
	ConnectTimeout  *int64            `json:"connectTimeout,omitempty"`
	IdleTimeout     *int64            `json:"idleTimeout,omitempty"`
}

func list(s *Server) listed {
	millis := func(d, otherwise time.Duration) *int64 {
		if d == otherwise {
			return nil
		}
		ms := d.Milliseconds()
		return &ms
	}
	idle := DefaultIdleHTTP
	if s.Transport == Stdio {
		idle = DefaultIdleStdio
	}
	l := listed{ID: s.Name, Transport: s.Transport, Description: s.Description, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir,
		URL: s.URL, Headers: s.Headers, Shared: s.Shared,
		Timeout: millis(s.Timeout, DefaultTimeout), MaxTotalTimeout: millis(s.MaxTimeout, DefaultMaxTimeout),
		ConnectTimeout: millis(s.ConnectTimeout, DefaultConnectTimeout), IdleTimeout: millis(s.IdleTimeout, idle)}
	if s.Protocol != Auto {
		l.Protocol = s.Protocol
	}
	if s.OAuth != nil {
		l.OAuthClientID = s.OAuth.ClientID
	}
	return l
}

type configVector struct {
	ID, Name string
	Files    []*string // nil is a folder
	Env      map[string]string
	Want     []listed
	Problems []string // what each says, its place in front
}

func readVectors[T any](t testing.TB, file string) []T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("no vectors in %s", file)
	}
	return all
}

func TestConfigVectors(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors[configVector](t, "mcpjson.json") {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var paths []string
			for i, text := range v.Files {
				path := filepath.Join(dir, fmt.Sprintf("%d.json", i))
				if text == nil {
					if err := os.Mkdir(path, 0o700); err != nil {
						t.Fatal(err)
					}
				} else {
					writeFile(t, path, *text)
				}
				paths = append(paths, path)
			}
			got, problems := discoverFiles(t, paths, v.Env)
			if !reflect.DeepEqual(got, v.Want) && len(got)+len(v.Want) > 0 {
				t.Errorf("%s\n got %s\nwant %s", v.Name, dump(t, got), dump(t, v.Want))
			}
			for i, p := range problems {
				problems[i] = strings.ReplaceAll(p, dir+string(filepath.Separator), "")
			}
			if !slices.Equal(problems, v.Problems) {
				t.Errorf("%s\nproblems %s\n    want %s", v.Name, dump(t, problems), dump(t, v.Problems))
			}
		})
	}
}

// discoverFiles discovers the servers of files in their order.
func discoverFiles(t testing.TB, paths []string, env map[string]string) (servers []listed, problems []string) {
	t.Helper()
	var o offer
	var errs []error
	reader := filesReader{lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }, offer: &o, taken: map[string]string{},
		round: new(configs.LastGood[fileContent]).Round()}
	o.broken = map[string]string{}
	for _, path := range paths {
		reader.file(path)
	}
	errs = reader.errs
	for _, s := range o.servers {
		servers = append(servers, list(s))
	}
	for _, om := range core.Omissions(errors.Join(errs...)) {
		var shadowed *core.ShadowedError
		if errors.As(om, &shadowed) || errors.Is(om, core.ErrDisabled) {
			continue // which is no problem, but somebody's choice
		}
		reason, _, _ := strings.Cut(om.Reason, "\n")
		problems = append(problems, om.Origin+": "+reason)
	}
	return servers, problems
}

func dump(t testing.TB, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDiscoverPlaces(t *testing.T) {
	t.Parallel()
	home, project := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(home, "mcp.json"), `{"mcpServers":{"mine":{"command":"c"},"both":{"command":"home"}}}`)
	writeFile(t, filepath.Join(project, ".mcp.json"), `{"mcpServers":{"theirs":{"command":"c"},"both":{"command":"project"}}}`)
	for _, trusted := range []bool{false, true} {
		p, err := configs.Find(configs.Options{Home: home, Project: project, UserHome: t.TempDir(), TrustProject: trusted, Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		catalog, err := core.Discover(t.Context(), New(Options{Places: p}))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range catalog.Capabilities() {
			if c.Kind == core.KindMCP {
				names = append(names, c.Name)
			}
		}
		want, left := []string{"mine", "both"}, "--trust-project"
		if trusted {
			want, left = []string{"theirs", "both", "mine"}, "comes first"
		}
		if omitted := catalog.Omitted(); !slices.Equal(names, want) || len(omitted) != 1 || !strings.Contains(omitted[0].Reason, left) {
			t.Errorf("trusted %v: %v, left out %v", trusted, names, catalog.Omitted())
		}
	}
}

// An entry whose values are only written differently is served by the connection that
// is there.
func TestSameEntry(t *testing.T) {
	t.Parallel()
	lookup := func(name string) (string, bool) { return map[string]string{"A": "one", "B": "two"}[name], true }
	parse := func(text string) *Server { return parseEntry("s", json.RawMessage(text), lookup).server }
	first := parse(`{"command": "c", "env": {"X": "${A}", "Y": "${B}"}}`)
	for text, want := range map[string]bool{
		`{"command": "c", "env": {"Y": "${B}", "X": "${A}"}}`: true,
		`{"command": "c", "env": {"X": "one", "Y": "${B}"}}`:  true,
		`{"command": "c", "env": {"X": "${B}", "Y": "${A}"}}`: false,
		`{"command": "c", "env": {"X": "${A}"}}`:              false,
	} {
		if got := first.same(parse(text)); got != want {
			t.Errorf("%s is the same: %v", text, got)
		}
	}
}

// A file with a missing brace is reported with the line and a caret (C52).
func TestBrokenFileShowsTheLine(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	writeFile(t, filepath.Join(home, "mcp.json"), "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"c\"\n}")
	catalog, err := core.Discover(t.Context(), New(Options{Places: places(t, home, t.TempDir())}))
	if err != nil {
		t.Fatal(err)
	}
	all := catalog.Omitted()
	if len(all) != 1 || !strings.HasPrefix(all[0].Origin, filepath.Join(home, "mcp.json")+":") || !strings.Contains(all[0].Reason, "^") {
		t.Errorf("%q", all)
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	writeFile(t, filepath.Join(home, "mcp.json"), `{"mcpServers":{"one":{"command":"c","description":"does one"},"two":{"url":"https://h.example/mcp"}}}`)
	coretest.TestSource(t, New(Options{Places: places(t, home, t.TempDir())}),
		core.Capability{Kind: core.KindTool, Name: "load_mcp"}, core.Capability{Kind: core.KindTool, Name: "call_mcp_tool"},
		core.Capability{Kind: core.KindTool, Name: "read_mcp_resource"},
		core.Capability{Kind: core.KindMCP, Name: "one"}, core.Capability{Kind: core.KindMCP, Name: "two"})
}

func FuzzConfig(f *testing.F) {
	raw, err := os.ReadFile(filepath.Join("testdata", "mcpjson.json"))
	if err != nil {
		f.Fatal(err)
	}
	var all []configVector
	if err := json.Unmarshal(raw, &all); err != nil {
		f.Fatal(err)
	}
	for _, v := range all {
		for _, text := range v.Files {
			if text != nil {
				f.Add(*text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := configs.Parse("f", []byte(text))
		if err != nil {
			return
		}
		content := parseFile(doc, func(string) (string, bool) { return "", false })
		for _, s := range content.servers {
			if s.Name == "" || s.Transport == Stdio && s.Command == "" || s.Transport != Stdio && s.URL == "" || s.Timeout <= 0 {
				t.Errorf("a server that cannot be used: %+v", s)
			}
		}
		for _, p := range content.problems {
			if p.at.Line == 0 || p.at.Error() == "" {
				t.Errorf("a problem without a place: %v", p.at)
			}
		}
	})
}
