package builtin

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"zenmcp/core"
	"zenmcp/core/coretest"
)

var update = flag.Bool("update", false, "write the golden files of the tools' definitions")

func TestSource(t *testing.T) {
	t.Parallel()
	coretest.TestSource(t, Source())
}

// A published tool is one entry of tools/list. Hints that are as the protocol
// assumes them are not sent.
type published struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations struct {
		ReadOnly    bool  `json:"readOnlyHint,omitempty"`
		Destructive *bool `json:"destructiveHint,omitempty"` // default true
		Idempotent  bool  `json:"idempotentHint,omitempty"`
		OpenWorld   *bool `json:"openWorldHint,omitempty"` // default true
	} `json:"annotations"`
	Meta map[string]any `json:"_meta,omitempty"`
}

func publish(t *testing.T, tool core.Tool) published {
	p := published{Name: tool.Name, Title: tool.Title, Description: tool.Description,
		InputSchema: mustJSON(t, tool.Input), Meta: tool.Meta}
	p.Annotations.ReadOnly = tool.Hints.ReadOnly
	p.Annotations.Idempotent = tool.Hints.Idempotent && !tool.Hints.ReadOnly
	no := new(bool)
	if !tool.Hints.Destructive && !tool.Hints.ReadOnly {
		p.Annotations.Destructive = no
	}
	if !tool.Hints.OpenWorld {
		p.Annotations.OpenWorld = no
	}
	return p
}

// A changed definition is a change of behaviour for every model, so it is seen
// in review: testdata/definitions has one file for each tool.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	for _, d := range definitions() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			got, err := json.MarshalIndent(publish(t, d.Tool), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			golden := filepath.Join("testdata", "definitions", d.Name+".json")
			if *update {
				write(t, golden, got)
			}
			want, err := os.ReadFile(golden)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs (go test ./builtin -update writes it): %v\n%s", golden, err, got)
			}
		})
	}
}
