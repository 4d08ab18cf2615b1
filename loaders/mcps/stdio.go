package mcps

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"zenmcp/core"
	"zenmcp/core/proc"
	"zenmcp/core/rawjson"
	"zenmcp/core/wire"
)

const (
	// eofGrace is how long a child has to leave once its stdin is closed, as the
	// protocol asks it to, before its group is told to end.
	eofGrace = 500 * time.Millisecond
	// tailLines and tailLine bound what is kept of a child's stderr.
	tailLines = 10
	tailLine  = 500 // code points
	// noiseLines is how many lines on stdout that are no messages are logged.
	noiseLines = 20
)

// A stdioLink is a child process and its pipes.
type stdioLink struct {
	peer    *peer
	conn    *wire.Conn
	process *proc.Process
	stdout  *os.File
	stderr  *tail
}

// openStdio starts the child of a session.
func openStdio(s *session, procs *proc.Set, dir string) error {
	pipes, err := newPipes()
	if err != nil {
		return err
	}
	process, err := procs.Start(proc.Command{
		Args: append([]string{s.server.command(dir)}, s.server.Args...), Dir: dir, Env: s.server.environ(), Bare: s.server.Bare,
		Stdin: pipes[0].r, Stdout: pipes[1].w, Stderr: pipes[2].w,
	})
	// The child has its own copies, or there is none.
	for _, f := range []*os.File{pipes[0].r, pipes[1].w, pipes[2].w} {
		f.Close()
	}
	if err != nil {
		for _, f := range []*os.File{pipes[0].w, pipes[1].r, pipes[2].r} {
			f.Close()
		}
		return err
	}
	l := &stdioLink{peer: s.peer, process: process, stdout: pipes[1].r, stderr: followStderr(pipes[2].r, s)}
	opened := make(chan struct{}) // nothing is delivered before the link can answer
	noise := 0
	transport := wire.Transport{In: pipes[1].r, Out: pipes[0].w, Peer: true,
		Deliver: func(msg jsonrpc.Message) func() {
			<-opened
			return s.peer.deliver(msg, nil)
		},
		OnBadLine: func(line []byte, err error) {
			if noise++; noise <= noiseLines {
				s.log.Info("not a message on the server's stdout", "line", core.Clip(s.mask.Replace(string(line)), tailLine), "error", err)
			}
		},
	}
	l.conn = transport.Open()
	s.peer.link = l
	close(opened)
	go func() {
		<-l.conn.Done()
		s.peer.lose(l.ending())
	}()
	return nil
}

// command is the program, which is one below the child's folder when it is written
// with a slash.
func (s *Server) command(dir string) string {
	if !filepath.IsAbs(s.Command) && strings.ContainsAny(s.Command, `/`+string(filepath.Separator)) {
		return filepath.Join(dir, s.Command)
	}
	return s.Command
}

func (s *Server) environ() []string {
	env := make([]string, 0, len(s.Env))
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	return env
}

type pipe struct{ r, w *os.File }

// newPipes makes the three pipes of a child.
func newPipes() (pipes [3]pipe, err error) {
	for i := range pipes {
		if pipes[i].r, pipes[i].w, err = os.Pipe(); err != nil {
			for _, p := range pipes[:i] {
				p.r.Close()
				p.w.Close()
			}
			return pipes, err
		}
	}
	return pipes, nil
}

// ending says how the child ended, with its last words.
func (l *stdioLink) ending() error {
	how := "the server closed its stdout"
	select {
	case <-l.process.Done():
		how = fmt.Sprintf("the server ended (%s)", l.process.Exit())
	case <-time.After(200 * time.Millisecond):
	}
	if words := l.lastWords(); words != "" {
		return fmt.Errorf("%s; it said: %s", how, words)
	}
	return errors.New(how)
}

// lastWords are the last lines of the child's stderr.
func (l *stdioLink) lastWords() string {
	select {
	case <-l.stderr.done: // all of it is there
	case <-time.After(100 * time.Millisecond):
	}
	return l.stderr.String()
}

func (l *stdioLink) send(ctx context.Context, msg jsonrpc.Message, _ *request) error {
	if err := l.conn.Write(ctx, msg); err != nil && ctx.Err() == nil {
		return errServerEnded
	}
	return nil
}

func (l *stdioLink) post(ctx context.Context, msg jsonrpc.Message, _ *request, failed func(error) func()) {
	l.conn.Post(ctx, msg, func(error) {
		if ctx.Err() != nil {
			return
		}
		then := failed(errServerEnded)
		go func() {
			l.awaitEnd()
			then()
		}()
	})
}

// awaitEnd waits for the end of a child that takes nothing more, so that nobody finds
// it alive. What it said before is read, but not for ever.
func (l *stdioLink) awaitEnd() {
	defer time.AfterFunc(eofGrace, func() { l.conn.Close() }).Stop()
	<-l.peer.done
}

// errServerEnded is why nothing can be written to a child. How it ended, the
// reader finds out.
var errServerEnded = &lostError{cause: errors.New("the server has ended")}

func (l *stdioLink) ready(string) {}

func (l *stdioLink) abandon(ctx context.Context, c *pending, reason string) error {
	return l.send(ctx, cancelled(c.id, reason), nil)
}

// cancelled is the notification that ends a call.
func cancelled(id int64, reason string) *jsonrpc.Request {
	params := strconv.AppendInt([]byte(`{"requestId":`), id, 10)
	params = append(rawjson.AppendString(append(params, `,"reason":`...), core.Clip(reason, 200)), '}')
	return &jsonrpc.Request{Method: "notifications/cancelled", Params: params}
}

// close asks the child to leave, then makes it, and everything it started.
func (l *stdioLink) close() error {
	l.conn.Close()
	timer := time.NewTimer(eofGrace)
	defer timer.Stop()
	select {
	case <-l.process.Done():
	case <-timer.C:
	}
	err := l.process.Stop()
	l.stdout.Close()
	l.stderr.r.Close()
	return err
}

// A tail keeps the last lines of a child's stderr. It is read all the time, or
// the child would block once the pipe is full.
type tail struct {
	r    *os.File
	done chan struct{} // closed when stderr has ended

	mu    sync.Mutex
	lines []string
}

func followStderr(r *os.File, s *session) *tail {
	t := &tail{r: r, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		t.follow(bufio.NewReaderSize(r, 8<<10), s)
	}()
	return t
}

// follow takes lines apart; of a very long one it keeps the beginning. Secrets are
// masked here, before a line is cut, since half of one is one too.
func (t *tail) follow(r *bufio.Reader, s *session) {
	for {
		line, err := r.ReadSlice('\n')
		if text := string(bytes.TrimRight(line, "\r\n")); text != "" {
			text = core.Clip(s.mask.Replace(text), tailLine)
			t.add(text)
			s.log.Debug("the server's stderr", "line", text)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		if err != nil {
			// Until the other end is closed too, nobody may find the pipe full.
			_, _ = io.Copy(io.Discard, r)
			return
		}
	}
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, line)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}
