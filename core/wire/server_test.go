package wire_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core/wire"
)

// A session is a real server of the SDK and the client's end of its streams.
type session struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Reader
}

// serve starts a server with the tools echo, size and wait; wait holds its call
// until release is closed, whatever becomes of the call's context.
func serve(t *testing.T, release <-chan struct{}) *session {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	tool := func(name string, run func(args map[string]any) string) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var args map[string]any
				if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
					return nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: run(args)}}}, nil
			})
	}
	tool("echo", func(args map[string]any) string { return fmt.Sprint(args["text"]) })
	tool("size", func(args map[string]any) string { return fmt.Sprint(len(args["text"].(string))) })
	tool("wait", func(args map[string]any) string { <-release; return fmt.Sprint(args["text"]) })

	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ss, err := server.Connect(t.Context(), &wire.Transport{In: inR, Out: outW, EOFGrace: time.Minute}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
		ss.Wait()
	})
	return &session{t: t, in: inW, out: bufio.NewReaderSize(outR, 1<<16)}
}

func (s *session) send(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// recv returns the next line, decoded, or as it is when it is a batch.
func (s *session) recv() (*jsonrpc.Response, string) {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	if err != nil {
		return nil, err.Error()
	}
	var resp struct {
		ID     any
		Result json.RawMessage
		Error  *jsonrpc.Error
	}
	if json.Unmarshal([]byte(line), &resp) != nil {
		return nil, line
	}
	id, _ := jsonrpc.MakeID(resp.ID)
	msg := &jsonrpc.Response{ID: id, Result: resp.Result}
	if resp.Error != nil {
		msg.Error = resp.Error
	}
	return msg, line
}

func (s *session) initialize(version string) {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if resp, line := s.recv(); resp == nil || resp.Error != nil {
		s.t.Fatal(line)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func call(id int, tool, text string) string {
	args, _ := json.Marshal(map[string]string{"text": text})
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s}}`, id, tool, args)
}

// wantText reads the answer to call id and checks its text.
func (s *session) wantText(id int64, text string) {
	s.t.Helper()
	resp, line := s.recv()
	if resp == nil || resp.ID.Raw() != id || !strings.Contains(string(resp.Result), `"text":"`+text+`"`) {
		s.t.Errorf("got %.200s, want id %d and text %q", line, id, text)
	}
}

func TestServerSurvivesBadFrames(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.initialize("2025-11-25")
	frames := []string{
		`{"jsonrpc":"2.0",`, `nonsense`, `{} {}`, `{"foo":1}`, `[]`, `[{}]`, `null`, `"x"`,
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
	}
	for _, frame := range frames {
		s.send(frame)
	}
	for _, frame := range frames {
		if resp, line := s.recv(); resp == nil || resp.Error == nil {
			t.Errorf("%.50s: answer %s", frame, line)
		}
	}
	s.send(call(1, "echo", "still here"))
	s.wantText(1, "still here")
}

func TestServerTakes20MBArgument(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.initialize("2025-11-25")
	// Sent from a goroutine of its own, since the pipe holds nothing; that it failed
	// shows in the answer.
	go io.WriteString(s.in, call(1, "size", strings.Repeat("0123456789abcde\n", 20<<20/16))+"\n")
	s.wantText(1, fmt.Sprint(20<<20))
	s.send(call(2, "echo", "small again"))
	s.wantText(2, "small again")
}

func TestServerBatches(t *testing.T) {
	t.Parallel()
	for version, allowed := range map[string]bool{
		"2024-11-05": true, "2025-03-26": true, "2025-06-18": false, "2025-11-25": false,
	} {
		s := serve(t, nil)
		s.initialize(version)
		s.send("[" + call(1, "echo", "one") + "," + call(2, "echo", "two") + "]")
		resp, line := s.recv()
		if !allowed {
			if resp == nil || resp.Error == nil || !strings.Contains(line, "-32600") {
				t.Errorf("%s: %s", version, line)
			}
			continue
		}
		var parts []struct {
			ID     int64
			Result *mcp.CallToolResult
		}
		if err := json.Unmarshal([]byte(line), &parts); err != nil || len(parts) != 2 || parts[0].ID+parts[1].ID != 3 || parts[0].Result == nil {
			t.Errorf("%s: %s", version, line)
		}
	}
}

// Calls whose handlers end within the grace are answered, however many they are
// and although the input has ended long before.
func TestServerAnswersAfterEOF(t *testing.T) {
	t.Parallel()
	const calls = 200
	release := make(chan struct{})
	s := serve(t, release)
	s.initialize("2025-06-18")
	for id := 1; id <= calls; id++ {
		s.send(call(id, "wait", "done"))
	}
	s.in.Close()
	close(release)
	seen := make(map[any]bool)
	for {
		resp, line := s.recv()
		if resp == nil {
			if line != "EOF" {
				t.Error(line)
			}
			break
		}
		if resp.Error != nil || seen[resp.ID.Raw()] {
			t.Errorf("got %s", line)
		}
		seen[resp.ID.Raw()] = true
	}
	if len(seen) != calls {
		t.Errorf("%d answers, want %d", len(seen), calls)
	}
}

func TestServerDuplicateID(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := serve(t, release)
	s.initialize("2025-11-25")
	s.send(call(1, "wait", "first"))
	s.send(call(1, "echo", "second"))
	if resp, line := s.recv(); resp == nil || resp.Error == nil || !strings.Contains(line, "-32600") {
		t.Errorf("got %s", line)
	}
	close(release)
	s.wantText(1, "first")
}

// The SDK's client over a peer connection, with a child that prints.
func TestClient(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	noisyR, noisyW := io.Pipe()
	go func() {
		defer noisyW.Close()
		for {
			line, err := s.out.ReadString('\n')
			if err != nil {
				return
			}
			fmt.Fprintf(noisyW, "loading...\n%s{\"progress\":1}\n", line)
		}
	}()
	bad := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &wire.Transport{
		In: noisyR, Out: s.in, Peer: true,
		OnBadLine: func(line []byte, err error) { bad <- string(line) },
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "é<\n"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; text != "é<\n" {
		t.Errorf("got %q", text)
	}
	if got := <-bad; got != "loading..." {
		t.Errorf("told of %q", got)
	}
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
}
