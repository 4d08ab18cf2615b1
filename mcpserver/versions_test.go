package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"zenmcp/core/wire"
)

// answer is a JSON-RPC response as it is on the wire.
type answer struct {
	Result map[string]any
	Error  *struct {
		Code    int
		Message string
		Data    map[string]any
	}
}

// asker sends one message and returns the answer to it.
type asker func(t *testing.T, message string) answer

func stdioAsker(t *testing.T) asker {
	t.Helper()
	s := newTestServer(t)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeStdio(context.Background(), &wire.Transport{In: in, Out: out}) }()
	t.Cleanup(func() { toServer.Close(); <-served })
	lines := bufio.NewReader(fromServer)
	return func(t *testing.T, message string) answer {
		t.Helper()
		if _, err := io.WriteString(toServer, message+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		return decodeAnswer(t, line)
	}
}

func httpAsker(t *testing.T) asker {
	t.Helper()
	web := httptest.NewServer(newTestServer(t).Handler())
	t.Cleanup(web.Close)
	return func(t *testing.T, message string) answer {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/mcp", strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		var m struct {
			Method string
			Params struct {
				Meta map[string]any `json:"_meta"`
			}
		}
		if err := json.Unmarshal([]byte(message), &m); err != nil {
			t.Fatal(err)
		}
		if v, ok := m.Params.Meta["io.modelcontextprotocol/protocolVersion"].(string); ok {
			req.Header.Set(headerVersion, v)
			req.Header.Set("Mcp-Method", m.Method)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if _, data, ok := strings.Cut(string(body), "data: "); ok {
			body = []byte(strings.TrimSpace(data))
		}
		return decodeAnswer(t, body)
	}
}

func decodeAnswer(t *testing.T, data []byte) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
	return a
}

// TestVersions: every revision is served as asked, an unknown one is answered
// with what there is.
func TestVersions(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) asker{"stdio": stdioAsker, "http": httpAsker} {
		for asked, want := range map[string]string{
			"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
			"2099-01-01": "2025-11-25", "": "2025-11-25",
		} {
			t.Run(name+" initialize "+asked, func(t *testing.T) {
				t.Parallel()
				a := open(t)(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, asked))
				if a.Result["protocolVersion"] != want {
					t.Errorf("answered %v, want %s", a, want)
				}
			})
		}
		t.Run(name+" modern", func(t *testing.T) {
			t.Parallel()
			testModern(t, open(t))
		})
	}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}`

func testModern(t *testing.T, ask asker) {
	t.Helper()
	message := func(method, version string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{`+modernMeta+`}}`, method, version)
	}
	a := ask(t, message("tools/list", modern))
	if a.Result["resultType"] != "complete" || a.Result["cacheScope"] != "private" || a.Result["ttlMs"] != float64(0) {
		t.Errorf("tools/list = %v", a)
	}
	a = ask(t, message("server/discover", modern))
	versions := fmt.Sprint(a.Result["supportedVersions"])
	if a.Result["resultType"] != "complete" || !strings.Contains(versions, modern) {
		t.Errorf("server/discover = %v", a)
	}
	a = ask(t, message("tools/list", "2099-01-01"))
	if a.Error == nil || a.Error.Code != -32022 || !slices.Contains(anyStrings(a.Error.Data["supported"]), modern) {
		t.Errorf("an unknown version = %+v", a.Error)
	}
}

func anyStrings(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, e := range list {
		s, _ := e.(string)
		out = append(out, s)
	}
	return out
}
