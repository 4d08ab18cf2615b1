package mcps

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"zenmcp/core"
)

// A server that repeats what it was given does not tell it to the model, nor to the log.
func TestSecretsAreMasked(t *testing.T) {
	t.Setenv("STUB_WORD", "word-of-a-variable")
	t.Setenv("STUB_KEY", "key-of-the-config")
	secrets := []string{"value-of-the-entry", "word-of-a-variable", "key-of-the-config", "written-in-the-config", "token-of-the-entry", "header-of-the-entry", "key-of-the-url"}
	child := func(options string) map[string]any {
		entry := stubServer(t, options, args{"args": []string{"--name", "${STUB_WORD}", "key-of-the-config", "written-in-the-config", "--token", "token-of-the-entry"}})
		entry["env"].(map[string]any)["STUB_VALUE"] = "Bearer value-of-the-entry"
		return entry
	}
	url := serveScript(t, func(w http.ResponseWriter, r *http.Request, method string, _ json.RawMessage) bool {
		if method == "tools/call" {
			// Where what is shown of it ends, in the middle of a secret.
			http.Error(w, "refused: "+r.Header.Get("X-Api-Key")+" "+r.URL.Query().Get("key")+strings.Repeat(" ...", 36)+" "+r.Header.Get("X-Api-Key"), http.StatusForbidden)
		}
		return method == "tools/call"
	})
	h := newHarness(t, map[string]any{
		"exits": child("exit"),
		"dies":  child(""),
		"web":   args{"url": url + "?key=key-of-the-url", "headers": args{"X-Api-Key": "header-of-the-entry"}},
	})
	h.configure(core.Config{Endpoints: []core.Endpoint{{ID: "a", APIKey: "${STUB_KEY}"}, {ID: "b", APIKey: "written-in-the-config"}}})
	const masked = "[--name *** *** *** --token ***] Bearer ***"
	texts := []string{h.fails(loadName, args{"server": "exits"}, "no licence found "+masked)}
	h.text(loadName, args{"server": "dies"})
	texts = append(texts, h.fails(callName, args{"server": "dies", "tool": "die"}, "out of cheese "+masked))
	h.text(loadName, args{"server": "web"})
	texts = append(texts, h.fails(callName, args{"server": "web", "tool": "x"}, "403", "refused: *** *** ..."))
	// What is written out in config.json is not known where a child's words are logged.
	log := strings.ReplaceAll(h.log.String(), "written-in-the-config", "")
	for _, text := range append(texts, log) {
		for _, secret := range secrets {
			if strings.Contains(text, secret[:8]) {
				t.Errorf("%q is in %s", secret, text)
			}
		}
	}
}

// Nor does one that repeats the token of a sign-in.
func TestTokensAreMasked(t *testing.T) {
	t.Parallel()
	const token = "token-of-a-sign-in"
	for name, answer := range map[string]func(w http.ResponseWriter, id json.RawMessage, got string){
		"status": func(w http.ResponseWriter, _ json.RawMessage, got string) {
			http.Error(w, strings.Repeat(".", 185)+" "+got, http.StatusForbidden)
		},
		"no answer": func(w http.ResponseWriter, _ json.RawMessage, got string) {
			fmt.Fprint(w, strings.Repeat(".", 85)+" "+got)
		},
		"fault": func(w http.ResponseWriter, id json.RawMessage, got string) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":%q}}`, id, got)
		},
		"data": func(w http.ResponseWriter, id json.RawMessage, got string) {
			data, _ := json.Marshal(got + strings.Repeat(".", maxData-45) + " " + got) // the second one is cut
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"no","data":%s}}`, id, data)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serveScript(t, func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
				if method == "tools/call" {
					answer(w, id, r.Header.Get("Authorization"))
				}
				return method == "tools/call"
			})
			h := newHarness(t, map[string]any{"web": args{"url": url}})
			h.source.wallet(&Server{URL: url}).grant = &grant{Server: url, Token: &oauth2.Token{AccessToken: token}}
			h.text(loadName, args{"server": "web"})
			if text := h.fails(callName, args{"server": "web", "tool": "x"}, "Bearer ***"); strings.Contains(text, token[:4]) {
				t.Error(text)
			}
		})
	}
}
