package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// chat FILE [PARAMS] starts a chat-completions service that answers with the
// lines of a file, one to a request: JSON objects {"text", "calls": [{"name",
// "args"}]}, or {"status"}; and writes a config.json that names it to the home,
// with more members of the file's model if given. What it is asked goes to the
// file "requests", an array of messages on each line.
func chat(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || len(args) > 2 || neg {
		ts.Fatalf("usage: chat replies [model-members]")
	}
	replies := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	requests := ts.MkAbs("requests")
	var mu sync.Mutex
	served := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if err := keep(requests, r); err != nil || served == len(replies) {
			http.Error(w, fmt.Sprint("the script has ended: ", err), http.StatusBadRequest)
			return
		}
		answer(w, replies[served])
		served++
	}))
	ts.Defer(server.Close)
	more := ""
	if len(args) == 2 {
		more = ", " + args[1]
	}
	config := fmt.Sprintf(`{"endpoints": [{"id": "e", "baseUrl": %q, "apiKey": "${CHAT_KEY}"}],
		"models": [{"id": "m", "endpointId": "e"%s}], "defaultModel": "m"}`, server.URL, more)
	home := filepath.Join(ts.Getenv("HOME"), ".ai-zen")
	ts.Check(os.MkdirAll(home, 0o700))
	ts.Check(os.WriteFile(filepath.Join(home, "config.json"), []byte(config), 0o600))
	ts.Setenv("CHAT_KEY", "sk-the-secret-key")
}

func keep(file string, r *http.Request) error {
	var body struct{ Messages json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s\n", body.Messages)
	return err
}

// answer streams one reply.
func answer(w http.ResponseWriter, line string) {
	var reply struct {
		Status int
		Text   string
		Calls  []struct {
			Name string
			Args json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(line), &reply); err != nil || reply.Status != 0 {
		http.Error(w, fmt.Sprint("it is so: ", err), max(reply.Status, http.StatusBadRequest))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	delta := map[string]any{"content": reply.Text}
	var calls []any
	for i, c := range reply.Calls {
		calls = append(calls, map[string]any{"index": i, "id": fmt.Sprint("c", i), "type": "function",
			"function": map[string]string{"name": c.Name, "arguments": string(c.Args)}})
	}
	if calls != nil {
		delta["tool_calls"] = calls
	}
	for _, event := range []any{
		map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta}}},
		map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": "stop"}}},
	} {
		data, err := json.Marshal(event)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
