package usertools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"zenmcp/core"
	"zenmcp/core/proc"
)

const (
	// maxOutput is how many bytes of an answer are taken. What comes after them is
	// read and dropped.
	maxOutput = 16 << 20
	// maxWords is how many bytes of stderr's end an error has.
	maxWords = 2000
	// holdGrace is how long an answer is waited for that something holds open
	// although the command has ended.
	holdGrace = 500 * time.Millisecond
	// reportEvery is how often a call that takes long says so.
	reportEvery = 2 * time.Second
)

// A program is the command of a manifest, ready to run.
type program struct {
	name    string // of the tool
	dir     string // of the manifest
	args    []string
	env     []string
	timeout time.Duration
}

// run runs one call.
func (c program) run(ctx context.Context, call *core.Call, args json.RawMessage) (*core.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer within %v; it was ended", c.timeout))
	defer cancel()
	r, err := c.start(call.Scope, args)
	if err != nil {
		return nil, err
	}
	if err := await(ctx, call, r.process.Done()); err != nil {
		return nil, errors.Join(c.failure(r, err.Error()), r.process.Stop())
	}
	r.settle()
	if exit := r.process.Exit(); !exit.OK() {
		return nil, c.failure(r, exit.String())
	}
	text, whole := r.stdout.text()
	res, err := resultOf(call.Scope, c.name, text)
	if err == nil && !whole && res.Whole == nil {
		res.Blocks = append(res.Blocks, core.Text(fmt.Sprintf("note: only the first %d MB of the output were taken", maxOutput>>20)))
	}
	return res, err
}

// await waits for done and reports that it waits. The error is why ctx ended.
func await(ctx context.Context, call *core.Call, done <-chan struct{}) error {
	begin := time.Now()
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case now := <-ticker.C:
			call.Report(core.Progress{Done: now.Sub(begin).Seconds(), Message: "running"})
		}
	}
}

// A run is a child with what it prints.
type run struct {
	process        *proc.Process
	stdout, stderr *stream
	stdin          *os.File
}

func (c program) start(scope *core.Scope, args []byte) (*run, error) {
	p, err := newPipes()
	if err != nil {
		return nil, err
	}
	process, err := stateOf(scope).procs.Start(proc.Command{
		Args: c.args, Dir: scope.Dir(), Env: c.env, Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr,
	})
	p.closeTheirs()
	if err != nil {
		p.closeOurs()
		return nil, err
	}
	go func() {
		_, _ = p.in.Write(args) // a command need not read them
		p.in.Close()
	}()
	return &run{process, follow(p.out, maxOutput), follow(p.err, 0), p.in}, nil
}

// settle waits for the rest of the output once the command has ended.
func (r *run) settle() {
	r.stdin.Close()
	timer := time.NewTimer(holdGrace)
	defer timer.Stop()
	for _, s := range []*stream{r.stdout, r.stderr} {
		select {
		case <-s.ended:
		case <-timer.C:
			return
		}
	}
}

// failure is an error with the last words of the command, without what it may have
// repeated of the secrets that it was given.
func (c program) failure(r *run, why string) error {
	words := r.stderr.last()
	if words == "" {
		words = r.stdout.last()
	}
	if words == "" {
		return fmt.Errorf("%s: %s", c.name, why)
	}
	secrets := core.SecretsOf(c.args...)
	for _, variable := range c.env {
		_, value, _ := strings.Cut(variable, "=")
		secrets = append(secrets, value)
	}
	return fmt.Errorf("%s: %s; it said: %s", c.name, why, core.Masker(secrets...).Replace(words))
}

// A stream is what a child writes to one of its outputs: the first bytes up to a
// limit, and the last ones.
type stream struct {
	ended chan struct{}

	mu    sync.Mutex
	limit int
	head  []byte
	tail  []byte
	size  int
}

// follow reads a stream to its end, and closes it.
func follow(f *os.File, limit int) *stream {
	s := &stream{ended: make(chan struct{}), limit: limit}
	go func() {
		defer close(s.ended)
		defer f.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := f.Read(buf)
			s.add(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *stream) add(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size += len(data)
	s.head = append(s.head, data[:min(len(data), s.limit-len(s.head))]...)
	s.tail = append(s.tail, data...)
	if extra := len(s.tail) - maxWords; extra > 0 {
		s.tail = append(s.tail[:0], s.tail[extra:]...)
	}
}

// text is what there is of the stream, and whether that is all of it.
func (s *stream) text() (text string, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proc.Decode(s.head), s.size == len(s.head)
}

// last is the end of the stream, of whole words: half a secret is one too, and would
// not be masked.
func (s *stream) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	tail := s.tail
	if len(tail) < s.size {
		tail = bytes.TrimLeftFunc(tail, func(r rune) bool { return !unicode.IsSpace(r) })
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(tail), ""))
}

// pipes are the three streams of a child, both ends of each.
type pipes struct {
	in, out, err          *os.File // ours
	stdin, stdout, stderr *os.File // the child's
}

func newPipes() (p pipes, err error) {
	for _, ends := range [][2]**os.File{{&p.stdin, &p.in}, {&p.out, &p.stdout}, {&p.err, &p.stderr}} {
		if *ends[0], *ends[1], err = os.Pipe(); err != nil {
			p.closeTheirs()
			p.closeOurs()
			return pipes{}, err
		}
	}
	return p, nil
}

func (p pipes) closeTheirs() { closeAll(p.stdin, p.stdout, p.stderr) }
func (p pipes) closeOurs()   { closeAll(p.in, p.out, p.err) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close() // nil is an error, and nothing to close
	}
}

// state is what one client has running: commands, and Node with the modules.
type state struct {
	procs proc.Set
	node  *node
}

// stateOf is the state of a scope's client, which ends with it.
func stateOf(scope *core.Scope) *state {
	client := scope.Client()
	return core.Local(client, func() *state {
		s := &state{}
		s.node = &node{procs: &s.procs, dir: client.Dir(), log: client.Log()}
		client.OnClose(s.procs.Close)
		return s
	})
}
