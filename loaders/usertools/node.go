package usertools

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"zenmcp/core"
	"zenmcp/core/proc"
)

// The two halves of the JavaScript: what runs on Node's main thread, and what runs
// in the worker of a module.
var (
	//go:embed host.js
	hostSource string
	//go:embed worker.js
	workerSource string
)

const (
	// stopGrace is how long a call in a module has to stop when it is told to,
	// before its module is ended with all its calls.
	stopGrace = 2 * time.Second
	// maxLine is the longest message of Node in bytes.
	maxLine = 4 * maxOutput
)

// A node is the Node process of one client. It is started by the first call, and
// again by the next one when it has ended.
type node struct {
	procs *proc.Set
	dir   string // where it works
	log   *slog.Logger

	mu      sync.Mutex
	current *host
}

// A host is one Node process that runs.
type host struct {
	process *proc.Process
	stdin   *os.File
	stderr  *stream
	mark    []byte
	log     *slog.Logger
	mask    *strings.Replacer // of secrets, which modules read in the environment
	done    chan struct{}     // closed when no answer comes any more

	writing sync.Mutex
	mu      sync.Mutex
	last    int
	pending map[int]chan answer
}

// A request is a message to the host.
type request struct {
	ID   int    `json:"id"`
	Op   string `json:"op"` // load, call or cancel
	File string `json:"file"`
	// Version changes when the module does: a worker serves one version.
	Version string          `json:"version,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Grace   int64           `json:"grace,omitempty"` // milliseconds
}

// An answer is a message of the host: to a request, or what a module printed.
type answer struct {
	ID    int     `json:"id"`
	Value *string `json:"value"`
	Error *string `json:"error"`
	Stack string  `json:"stack"`
	File  string  `json:"file"`
	Log   string  `json:"log"`
}

// ask has the module in a file load or called, and returns the answer; nil when
// the module holds no tool. When ctx ends, so does the call.
func (n *node) ask(ctx context.Context, op string, m moduleFile, args []byte) (*string, error) {
	h, err := n.host()
	if err != nil {
		return nil, err
	}
	id, reply := h.register()
	defer h.forget(id)
	if err := h.send(request{ID: id, Op: op, File: m.file, Version: m.version, Args: args}); err != nil {
		return nil, h.ending()
	}
	select {
	case a := <-reply:
		if a.Error != nil {
			if a.Stack != "" {
				n.log.Debug("a user tool failed", "file", m.file, "stack", core.Clip(h.mask.Replace(a.Stack), 2000))
			}
			return nil, errors.New(h.mask.Replace(*a.Error))
		}
		return a.Value, nil
	case <-h.done:
		return nil, h.ending()
	case <-ctx.Done():
		_ = h.send(request{ID: id, Op: "cancel", File: m.file, Grace: stopGrace.Milliseconds()}) // if it has ended, so has the call
		return nil, context.Cause(ctx)
	}
}

// host is the process, started if there is none.
func (n *node) host() (*host, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current != nil {
		select {
		case <-n.current.done:
		default:
			return n.current, nil
		}
	}
	h, err := startHost(n.procs, n.dir, n.log)
	if err != nil {
		return nil, err
	}
	n.current = h
	return h, nil
}

func startHost(procs *proc.Set, dir string, log *slog.Logger) (*host, error) {
	p, err := newPipes()
	if err != nil {
		return nil, err
	}
	process, err := procs.Start(proc.Command{
		Args: []string{"node", "-e", hostSource}, Dir: dir, Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr,
	})
	p.closeTheirs()
	if err != nil {
		p.closeOurs()
		return nil, fmt.Errorf("%w; the tool is a JavaScript module: install Node.js", err)
	}
	h := &host{
		process: process, stdin: p.in, stderr: follow(p.err, 0), mark: []byte(rand.Text()), log: log, mask: core.Masker(),
		done: make(chan struct{}), pending: map[int]chan answer{},
	}
	go h.read(p.out)
	if err := h.send(map[string]string{"mark": string(h.mark), "source": workerSource}); err != nil {
		return nil, errors.Join(h.ending(), process.Stop())
	}
	return h, nil
}

// read takes the answers. Every other line is what somebody printed.
func (h *host) read(out *os.File) {
	defer close(h.done)
	defer h.stdin.Close()
	defer out.Close()
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		text, ours := bytes.CutPrefix(lines.Bytes(), h.mark)
		var a answer
		switch {
		case !ours || json.Unmarshal(text, &a) != nil:
			h.printed("", string(text))
		case a.Log != "":
			h.printed(a.File, a.Log)
		default:
			h.mu.Lock()
			reply := h.pending[a.ID]
			h.mu.Unlock()
			if reply != nil {
				reply <- a // there is room for one, and one comes
			}
		}
	}
	if lines.Err() != nil {
		h.log.Warn("Node is ended: an answer is too long", "limit", maxLine)
		_ = h.process.Stop() // the next call starts another
	}
}

// printed logs what modules print.
func (h *host) printed(file, text string) {
	for line := range strings.Lines(h.mask.Replace(text)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			h.log.Info("a user tool printed", "module", filepath.Base(file), "text", core.Clip(line, 1000))
		}
	}
}

func (h *host) register() (int, chan answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	reply := make(chan answer, 1)
	h.pending[h.last] = reply
	return h.last, reply
}

func (h *host) forget(id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pending, id)
}

func (h *host) send(message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	_, err = h.stdin.Write(append(text, '\n'))
	return err
}

// ending says how the process ended.
func (h *host) ending() error {
	how := "Node does not answer"
	select {
	case <-h.process.Done():
		how = fmt.Sprintf("Node ended (%s)", h.process.Exit())
	case <-time.After(holdGrace):
	}
	if words := h.stderr.last(); words != "" {
		how += "; it said: " + h.mask.Replace(words)
	}
	return errors.New(how)
}
