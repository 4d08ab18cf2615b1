package mcps

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

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
