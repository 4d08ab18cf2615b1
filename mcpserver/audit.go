package mcpserver

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// An audit writes one line of JSON per call: who called what and how it ended,
// never what was said. A nil audit writes nothing.
type audit struct {
	log *slog.Logger
	mu  sync.Mutex
	out io.Writer
}

// maxName is the most, in bytes, that the name of a tool can have: the rest of a
// longer one is contents.
const maxName = 64

// auditLine is one call.
type auditLine struct {
	Time      time.Time `json:"time"` // when it began, UTC
	Request   string    `json:"request"`
	Principal string    `json:"principal"` // "" without a credential
	Agent     string    `json:"agent"`
	Tool      string    `json:"tool"`
	Arguments string    `json:"arguments"` // their SHA-256, as they were sent
	Outcome   outcome   `json:"outcome"`
	Seconds   float64   `json:"seconds"`
}

func (a *audit) write(c *observed, end outcome, took time.Duration) {
	if a == nil {
		return
	}
	if end == outcomeUnknown && len(c.tool) > maxName {
		c.tool = c.tool[:maxName]
	}
	line, err := json.Marshal(auditLine{
		Time: c.began.UTC(), Request: c.request, Principal: c.principal, Agent: c.agent, Tool: c.tool,
		Arguments: fmt.Sprintf("sha256:%x", sha256.Sum256(c.arguments)), Outcome: end, Seconds: took.Seconds(),
	})
	if err == nil {
		err = a.append(line)
	}
	if err != nil {
		a.log.Error("the audit log cannot be written", "error", err)
	}
}

// append makes one write of a line: lines stay whole in a file that others append to.
func (a *audit) append(line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.out.Write(append(line, '\n'))
	return err
}
