package mcps

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The servers of these tests are this test binary itself, started again with the
// name of a mode in its environment. They write JSON by hand, so that they can
// say what no SDK would.
const (
	stubEnv  = "ZEN_MCP_STUB"         // options, separated by commas
	logEnv   = "ZEN_MCP_STUB_LOG"     // a file that gets a line for what happened
	grandEnv = "ZEN_MCP_STUB_SLEEPER" // the grandchild of mode fork
)

func TestMain(m *testing.M) {
	if os.Getenv(grandEnv) != "" {
		time.Sleep(999 * time.Second)
		os.Exit(0)
	}
	if options, ok := os.LookupEnv(stubEnv); ok {
		if options == "sdk" {
			if err := sdkServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
				panic(err)
			}
			os.Exit(0)
		}
		if options == conformanceMode {
			if err := conformanceClient(os.Args[len(os.Args)-1]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
		newStub(strings.Split(options, ",")).serve()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type stub struct {
	options []string
	mu      sync.Mutex
	out     *bufio.Writer
	logFile *os.File
	cancels map[string]chan struct{}
	answers map[string]chan json.RawMessage // to requests of the stub's own
	changed bool
	next    int
}

func newStub(options []string) *stub {
	s := &stub{options: options, out: bufio.NewWriter(os.Stdout), cancels: map[string]chan struct{}{}, answers: map[string]chan json.RawMessage{}}
	if name := os.Getenv(logEnv); name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		s.logFile = f
	}
	return s
}

func (s *stub) is(option string) bool { return slices.Contains(s.options, option) }

func (s *stub) log(format string, args ...any) {
	if s.logFile != nil {
		fmt.Fprintf(s.logFile, format+"\n", args...)
	}
}

func (s *stub) send(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
	if s.is("noise") {
		fmt.Fprintln(s.out, "just another line")
	}
	s.out.Flush()
}

type stubRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string                     `json:"name"`
		URI             string                     `json:"uri"`
		Cursor          *string                    `json:"cursor"`
		Arguments       json.RawMessage            `json:"arguments"`
		ProtocolVersion string                     `json:"protocolVersion"`
		RequestID       json.RawMessage            `json:"requestId"`
		InputResponses  json.RawMessage            `json:"inputResponses"`
		RequestState    string                     `json:"requestState"`
		Capabilities    json.RawMessage            `json:"capabilities"`
		Meta            map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (s *stub) serve() {
	s.log("start")
	if s.is("exit") {
		fmt.Fprintln(os.Stderr, "no licence found", os.Args[1:], os.Getenv("STUB_VALUE"))
		os.Exit(3)
	}
	if s.is("noise") {
		fmt.Println("Welcome!\nlistening on stdio")
		os.Stderr.WriteString(strings.Repeat(strings.Repeat("x", 99)+"\n", 2048))
	}
	if s.is("fork") {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), grandEnv+"=1")
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		s.log("grandchild %d", cmd.Process.Pid)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var r stubRequest
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			panic(err)
		}
		s.take(r)
		if s.is("deaf") && r.Method == "tools/call" {
			os.Stdin.Close()
			s.log("deaf")
			time.Sleep(time.Hour)
		}
	}
	s.log("eof")
	if s.is("stubborn") {
		time.Sleep(time.Hour)
	}
}

// take handles one message; calls run on goroutines of their own.
func (s *stub) take(r stubRequest) {
	switch {
	case s.is("silent"):
	case r.Method == "":
		s.mu.Lock()
		c := s.answers[string(r.ID)]
		s.mu.Unlock()
		if r.Error != nil {
			r.Result = r.Error
		}
		c <- r.Result
	case r.Method == "notifications/cancelled":
		s.mu.Lock()
		c := s.cancels[string(r.Params.RequestID)]
		delete(s.cancels, string(r.Params.RequestID))
		s.mu.Unlock()
		if c != nil {
			close(c)
		}
	case strings.HasPrefix(r.Method, "notifications/"):
	default:
		cancel := make(chan struct{})
		s.mu.Lock()
		s.cancels[string(r.ID)] = cancel
		s.mu.Unlock()
		go func() {
			result, fault := s.answer(r, cancel)
			s.mu.Lock()
			_, open := s.cancels[string(r.ID)]
			delete(s.cancels, string(r.ID))
			s.mu.Unlock()
			switch {
			case !open:
			case fault != "":
				s.send(`{"jsonrpc":"2.0","id":%s,"error":%s}`, r.ID, fault)
			case result != "":
				s.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
			}
		}()
	}
}

const notFound = `{"code":-32601,"message":"Method not found"}`

func (s *stub) answer(r stubRequest, cancel <-chan struct{}) (result, fault string) {
	switch r.Method {
	case "server/discover":
		return s.discover(r)
	case "initialize":
		s.log("initialize %s %s", r.Params.ProtocolVersion, r.Params.Capabilities)
		version := r.Params.ProtocolVersion
		if s.is("old-a") || s.is("old-b") || s.is("old-c") {
			version = "2024-11-05"
		}
		return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"stub","version":"1"}%s}`, version, s.capabilities(), s.instructions()), ""
	case "ping":
		return `{}`, ""
	case "tools/list":
		return s.listTools(r)
	case "resources/list":
		return stubResources, ""
	case "resources/templates/list":
		return `{"resourceTemplates":[{"uriTemplate":"mem://item/{n}","name":"item"}]}`, ""
	case "prompts/list":
		return `{"prompts":[{"name":"p"},{"name":"q"}]}`, ""
	case "resources/read":
		return readStub(r.Params.URI)
	case "tools/call":
		return s.callTool(r, cancel)
	case "subscriptions/listen":
		s.send(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}`)
		<-cancel
		return "", ""
	}
	return "", notFound
}

func (s *stub) discover(r stubRequest) (result, fault string) {
	s.log("discover %s", r.Params.Meta["io.modelcontextprotocol/clientCapabilities"])
	switch {
	case s.is("modern"):
		return fmt.Sprintf(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":%s%s}`, s.capabilities(), s.instructions()), ""
	case s.is("old-a"):
		return "", `{"code":-32602,"message":"Invalid request parameters"}`
	case s.is("old-b"):
		return "", ""
	case s.is("old-c"):
		os.Exit(1)
	}
	return "", notFound
}

func (s *stub) capabilities() string {
	if s.is("nocaps") {
		return `{}`
	}
	return `{"tools":{"listChanged":true},"resources":{},"prompts":{},"logging":{}}`
}

func (s *stub) instructions() string {
	if s.is("instructions") {
		return `,"instructions":"Call echo first."`
	}
	return ""
}

const stubResources = `{"resources":[{"uri":"mem://a","name":"A","description":"da","mimeType":"text/plain"},{"uri":"mem://b","name":"B"}]}`

func readStub(uri string) (result, fault string) {
	switch uri {
	case "mem://a":
		return `{"contents":[{"uri":"mem://a","mimeType":"text/plain","text":"AAA"}]}`, ""
	case "mem://two":
		return `{"contents":[{"uri":"mem://1","text":"one"},{"uri":"mem://2","text":"two"}]}`, ""
	case "mem://mix":
		return `{"contents":[{"uri":"mem://1","text":"one"},{"uri":"mem://2","mimeType":"image/png","blob":"AAAA","x":1}]}`, ""
	case "mem://empty":
		return `{"contents":[{"uri":"mem://empty","text":""}]}`, ""
	case "mem://none":
		return `{"contents":[]}`, ""
	}
	if n, ok := strings.CutPrefix(uri, "mem://item/"); ok {
		return fmt.Sprintf(`{"contents":[{"uri":%q,"text":"item %s"}]}`, uri, n), ""
	}
	return "", fmt.Sprintf(`{"code":-32002,"message":"Resource not found","data":{"uri":%q}}`, uri)
}

// stubTools are the tools of the recorded vectors, and a few more.
var stubTools = []string{
	"echo", "nodesc", "fail", "failempty", "img", "mixed", "two", "struct", "empty", "boom", "env", "slow", "die", "emptytext", "link",
	"work", "mix", "novel", "ask", "big", "secret",
}

func stubTool(name string) string {
	description, extra := `"description":"says x",`, ""
	if name == "nodesc" {
		description = ""
	}
	if name == "slow" {
		extra = `,"annotations":{"readOnlyHint":true}`
	}
	return fmt.Sprintf(`{"name":%q,%s"inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}%s}`, name, description, extra)
}

func (s *stub) listTools(r stubRequest) (result, fault string) {
	const size = 10
	var all []string
	switch {
	case s.is("listfail"):
		return "", `{"code":-32603,"message":"database is down"}`
	case s.is("many"): // 25, in pages
		for i := range 25 {
			all = append(all, fmt.Sprintf("t%02d", i))
		}
	default:
		all = slices.Clone(stubTools)
		all = all[:len(all)-1] // secret is not listed
		s.mu.Lock()
		if s.changed {
			all = append(all, "fresh")
		}
		s.mu.Unlock()
		if s.is("huge") {
			for i := range 400 {
				all = append(all, fmt.Sprintf("generated_tool_%03d", i))
			}
		}
	}
	start := 0
	if r.Params.Cursor != nil && !s.is("loop") {
		start, _ = strconv.Atoi(*r.Params.Cursor)
	}
	next := ""
	if s.is("many") {
		end := min(start+size, len(all))
		if end < len(all) {
			next = fmt.Sprintf(`,"nextCursor":"%d"`, end)
		}
		all = all[start:end]
	}
	tools := make([]string, len(all))
	for i, name := range all {
		tools[i] = stubTool(name)
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]` + next + `}`, ""
}

const mixResult = `{"content":[{"type":"text","text":"a\u003cb"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"},` +
	`{"type":"resource_link","uri":"file:///x","name":"x","priority":0},{"type":"resource","resource":{"uri":"mem://e","text":""}}],` +
	`"structuredContent":{"n":9007199254740993,"z":1,"a":1.0,"a":2},"isError":false,"_meta":{"x/y":1}}`

func (s *stub) callTool(r stubRequest, cancel <-chan struct{}) (result, fault string) {
	var args map[string]any
	if r.Params.Arguments != nil {
		if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
			return "", `{"code":-32602,"message":"Invalid arguments"}`
		}
	}
	number := func(key string) int {
		n, _ := args[key].(float64)
		return int(n)
	}
	text := func(s string) (string, string) {
		b, _ := json.Marshal(s)
		return `{"content":[{"type":"text","text":` + string(b) + `}]}`, ""
	}
	s.log("call %s", r.Params.Name)
	switch r.Params.Name {
	case "echo":
		if s.is("changes") {
			s.mu.Lock()
			s.changed = true
			s.mu.Unlock()
			s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		x, ok := args["x"]
		if !ok {
			x = "undefined"
		}
		return text(fmt.Sprintf("x=%v", x))
	case "fail":
		return `{"content":[{"type":"text","text":"it failed"}],"isError":true}`, ""
	case "failempty":
		return `{"content":[],"isError":true}`, ""
	case "img":
		return `{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}`, ""
	case "mixed":
		return `{"content":[{"type":"text","text":"caption"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"more"}]}`, ""
	case "struct":
		return `{"content":[{"type":"text","text":"see structure"}],"structuredContent":{"n":1}}`, ""
	case "empty":
		return `{"content":[]}`, ""
	case "link":
		return `{"content":[{"name":"x","uri":"file:///x","type":"resource_link"}]}`, ""
	case "mix":
		return mixResult, ""
	case "novel":
		return `{"content":[{"type":"hologram","depth":3,"data":[1,2.50,1e400]}]}`, ""
	case "boom":
		return "", `{"code":-32050,"message":"boom","data":{"why":"because"}}`
	case "env":
		dir, _ := os.Getwd()
		return text(dir + "\n" + os.Getenv("STUB_VALUE"))
	case "die":
		fmt.Fprintln(os.Stderr, "panic: out of cheese", os.Args[1:], os.Getenv("STUB_VALUE"))
		os.Exit(4)
	case "slow":
		return s.sleepAndProgress(r, cancel, 100, 1, text)
	case "work":
		return s.sleepAndProgress(r, cancel, number("ms"), number("steps"), text)
	case "big":
		return text(strings.Repeat("0123456789abcde\n", number("n")/16))
	case "ask":
		return s.ask(r, text)
	case "secret":
		return text("found")
	}
	return "", fmt.Sprintf(`{"code":-32602,"message":"Unknown tool: %s"}`, r.Params.Name)
}

func (s *stub) sleepAndProgress(r stubRequest, cancel <-chan struct{}, ms, steps int, text func(string) (string, string)) (result, fault string) {
	steps = max(steps, 1)
	for i := range steps {
		select {
		case <-cancel:
			s.log("cancelled")
			return "", ""
		case <-time.After(time.Duration(ms/steps) * time.Millisecond):
		}
		if token := r.Params.Meta["progressToken"]; token != nil && steps > 1 {
			s.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":%d,"message":"step"}}`, token, i+1, steps)
		}
	}
	s.log("done")
	return text("slept")
}

// ask asks the user, in the way of its era.
func (s *stub) ask(r stubRequest, text func(string) (string, string)) (result, fault string) {
	const question = `{"mode":"form","message":"Which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}}}}`
	if s.is("modern") {
		if r.Params.InputResponses == nil {
			return `{"resultType":"input_required","inputRequests":{"q1":{"method":"elicitation/create","params":` + question + `}},"requestState":"s1"}`, ""
		}
		return text(r.Params.RequestState + " " + string(r.Params.InputResponses))
	}
	s.mu.Lock()
	s.next++
	id := fmt.Sprintf(`"q%d"`, s.next)
	c := make(chan json.RawMessage, 1)
	s.answers[id] = c
	s.mu.Unlock()
	s.send(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":%s}`, id, question)
	return text(string(<-c))
}
