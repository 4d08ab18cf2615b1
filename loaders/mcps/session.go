package mcps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// The revisions that are spoken. What a server answers initialize with is taken
// even when it is neither: refusing the years between helps nobody.
const (
	modernVersion = "2026-07-28" // without a handshake
	legacyVersion = "2025-11-25" // the last one with initialize
)

// A session is one connection to a server that is ready for calls.
type session struct {
	server  *Server
	client  string // our own version
	log     *slog.Logger
	mask    *strings.Replacer
	peer    *peer
	started time.Time

	modern       bool
	version      string // agreed with the server
	capabilities map[string]json.RawMessage
	instructions string
	metaPlain    []byte // see meta
	metaAsking   []byte

	lists     lists
	questions questions

	end context.CancelFunc // ends what runs beside calls
	ctx context.Context

	closing sync.Once

	// running and retired belong to the slot.
	running int
	retired bool
}

func newSession(server *Server, client string, log *slog.Logger) *session {
	s := &session{server: server, client: client, log: log, mask: server.Masker(), started: time.Now(), questions: questions{open: map[jsonrpc.ID]context.CancelFunc{}}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.peer = newPeer(s.other)
	s.lists.turn = make(chan struct{}, 1)
	return s
}

// farewellLimit is how long the end of a session waits for cancellations to be
// sent, which may first have to wait for their calls to arrive.
const farewellLimit = arrivalLimit + 500*time.Millisecond

// close ends the connection and everything that belongs to it.
func (s *session) close() {
	s.closing.Do(func() {
		s.end()
		s.peer.settle(farewellLimit)
		if s.peer.link != nil {
			if err := s.peer.link.close(); err != nil {
				s.log.Warn("closing the connection", "error", err)
			}
		}
		s.peer.lose(errClosed)
	})
}

var errClosed = errors.New("the connection was closed")

// discover is the handshake of the modern era: one question, asked like any call.
func (s *session) discover(ctx context.Context) error {
	s.modern, s.version = true, modernVersion
	var errPlain, errAsking error
	s.metaPlain, errPlain = s.newMeta(false)
	s.metaAsking, errAsking = s.newMeta(true)
	if err := errors.Join(errPlain, errAsking); err != nil {
		return err
	}
	s.peer.link.ready(modernVersion)
	ask := func() (json.RawMessage, error) {
		return s.peer.call(ctx, &request{method: "server/discover", meta: s.meta(false)})
	}
	result, err := ask()
	if wantsVersion(err, modernVersion) {
		result, err = ask()
	}
	if err != nil {
		return err
	}
	var d struct {
		SupportedVersions []string                   `json:"supportedVersions"`
		Capabilities      map[string]json.RawMessage `json:"capabilities"`
		Instructions      string                     `json:"instructions"`
	}
	if err := json.Unmarshal(result, &d); err != nil {
		return fmt.Errorf("the answer to server/discover: %w", err)
	}
	if !slices.Contains(d.SupportedVersions, modernVersion) {
		return fmt.Errorf("the server speaks %s and not %s", quoteSome(d.SupportedVersions), modernVersion)
	}
	s.capabilities, s.instructions = d.Capabilities, d.Instructions
	return nil
}

// codeUnsupportedVersion is the protocol's error for a revision that a server
// does not speak; its data says which it does.
const codeUnsupportedVersion = -32022

// wantsVersion reports a refusal that says the version would be right.
func wantsVersion(err error, version string) bool {
	var fault *faultError
	if !errors.As(err, &fault) || fault.code != codeUnsupportedVersion {
		return false
	}
	var data struct {
		Supported []string `json:"supported"`
	}
	return json.Unmarshal(fault.data, &data) == nil && slices.Contains(data.Supported, version)
}

// initialize is the handshake of the legacy era. ask says whether the caller
// can put questions to a user; a server is told once, for all calls.
func (s *session) initialize(ctx context.Context, ask bool) error {
	s.modern, s.version = false, ""
	s.peer.link.ready("")
	info, err := s.clientInfo()
	if err != nil {
		return err
	}
	fields := `"protocolVersion":"` + legacyVersion + `","capabilities":` + clientCapabilities(ask) + `,"clientInfo":` + info
	result, err := s.peer.call(ctx, &request{method: "initialize", fields: []byte(fields)})
	if err != nil {
		return err
	}
	var init struct {
		ProtocolVersion string                     `json:"protocolVersion"`
		Capabilities    map[string]json.RawMessage `json:"capabilities"`
		Instructions    string                     `json:"instructions"`
	}
	if err := json.Unmarshal(result, &init); err != nil {
		return fmt.Errorf("the answer to initialize: %w", err)
	}
	s.version, s.capabilities, s.instructions = init.ProtocolVersion, init.Capabilities, init.Instructions
	s.peer.link.ready(s.version)
	return s.peer.notify(ctx, "notifications/initialized", nil)
}

func (s *session) clientInfo() (string, error) {
	info, err := rawjson.Marshal(map[string]string{"name": "zen-mcp", "version": s.client})
	return string(info), err
}

func clientCapabilities(ask bool) string {
	if ask {
		return `{"elicitation":{"form":{}}}`
	}
	return `{}`
}

// meta is what every modern request says about us; nothing in the legacy era.
func (s *session) meta(ask bool) []byte {
	switch {
	case !s.modern:
		return nil
	case ask:
		return s.metaAsking
	}
	return s.metaPlain
}

// newMeta writes the members of _meta of a modern request.
func (s *session) newMeta(ask bool) ([]byte, error) {
	info, err := s.clientInfo()
	if err != nil {
		return nil, err
	}
	const p = `"io.modelcontextprotocol/`
	return []byte(p + `protocolVersion":"` + modernVersion + `",` + p + `clientInfo":` + info + `,` +
		p + `clientCapabilities":` + clientCapabilities(ask) + `,` + p + `logLevel":"` + s.logLevel() + `"`), nil
}

// logLevel asks a server for no more than somebody will read.
func (s *session) logLevel() string {
	switch {
	case s.log.Enabled(s.ctx, slog.LevelDebug):
		return "debug"
	case s.log.Enabled(s.ctx, slog.LevelInfo):
		return "info"
	}
	return "warning"
}

// offers reports whether the server declared a capability.
func (s *session) offers(capability string) bool {
	raw, ok := s.capabilities[capability]
	return ok && rawjson.KindOf(raw) != rawjson.Null
}

// alive reports whether calls can be made.
func (s *session) alive() bool {
	select {
	case <-s.peer.done:
		return false
	default:
		return true
	}
}

// other takes what the server says on its own.
func (s *session) other(msg *jsonrpc.Request, call *pending) {
	switch msg.Method {
	case "ping":
		go s.peer.respond(s.ctx, msg.ID, json.RawMessage(`{}`), nil)
	case "elicitation/create":
		if msg.IsCall() {
			ctx, done := s.questions.begin(s.ctx, msg.ID)
			go func() {
				defer done()
				s.elicit(ctx, msg, call)
			}()
		}
	case "notifications/cancelled":
		s.questions.cancel(msg.Params)
	case "notifications/message":
		s.logMessage(msg.Params)
	case "notifications/tools/list_changed", "notifications/resources/list_changed", "notifications/prompts/list_changed":
		s.lists.outdate()
	default:
		if msg.IsCall() {
			go s.peer.respond(s.ctx, msg.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not serve " + core.Clip(msg.Method, 80)})
		}
	}
}

// logMessage passes a server's log on to ours.
func (s *session) logMessage(params json.RawMessage) {
	var n struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if json.Unmarshal(params, &n) != nil {
		return
	}
	level := slog.LevelInfo
	switch n.Level {
	case "debug":
		level = slog.LevelDebug
	case "warning":
		level = slog.LevelWarn
	case "error", "critical", "alert", "emergency":
		level = slog.LevelError
	}
	var line string
	if json.Unmarshal(n.Data, &line) != nil {
		line = string(n.Data)
	}
	log := s.log
	if n.Logger != "" {
		log = log.With("logger", core.Clip(s.mask.Replace(n.Logger), 80))
	}
	log.Log(s.ctx, level, core.Clip(s.mask.Replace(line), 2000))
}

// callTool calls a tool, and gives its result as the server sent it.
func (s *session) callTool(ctx context.Context, call *core.Call, t *tool, arguments json.RawMessage) (json.RawMessage, error) {
	fields := rawjson.AppendString([]byte(`"name":`), t.name)
	if len(arguments) > 0 {
		fields = append(append(fields, `,"arguments":`...), arguments...)
	}
	r := s.request(call, "tools/call", fields, t.name)
	if s.modern {
		r.headers = t.paramHeaders(arguments)
	}
	result, err := s.converse(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", t.name, err)
	}
	if rawjson.KindOf(result) != rawjson.Object {
		return nil, fmt.Errorf("tool %q: the server's result is not an object", t.name)
	}
	return result, nil
}

// readResource reads a resource.
func (s *session) readResource(ctx context.Context, call *core.Call, uri string) (json.RawMessage, error) {
	result, err := s.converse(ctx, s.request(call, "resources/read", rawjson.AppendString([]byte(`"uri":`), uri), uri))
	if err != nil {
		var fault *faultError
		if errors.As(err, &fault) {
			err = fmt.Errorf("%w%s", err, core.DidYouMean(uri, s.lists.resourceURIs()))
		}
		return nil, fmt.Errorf("resource %q: %w", core.Clip(uri, 200), err)
	}
	return result, nil
}

// request is a request on behalf of a caller. Progress is always asked for,
// because it shows that the server is alive; what the caller sees of it only
// ever increases.
func (s *session) request(call *core.Call, method string, fields []byte, name string) *request {
	last := math.Inf(-1)
	return &request{
		method: method, fields: fields, name: name, meta: s.meta(call.Elicit != nil),
		progress: func(p core.Progress) {
			if p.Done > last {
				last = p.Done
				call.Report(p)
			}
		},
		ask: call.Elicit, client: call.Scope.Client(),
		timeout: s.server.Timeout, maxTimeout: s.server.MaxTimeout,
	}
}
