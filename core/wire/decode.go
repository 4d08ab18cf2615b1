package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Decode reads one frame: a request, a notification or a response, alone on its
// line, without the line's end; white space around it is allowed. The message
// may alias line.
//
// The result is what jsonrpc.DecodeMessage gives for the same bytes. Unlike that
// function Decode looks at the whole line, so a second value on it is an error,
// it refuses IDs that the SDK would round to one that the peer did not choose,
// and it reads the common shapes by hand: one pass over the bytes, where the SDK
// makes four and allocates 32 KiB for each of three buffers.
//
// An error is always a *jsonrpc.Error: CodeParseError when line is not exactly
// one JSON value nested at most 1000 deep, CodeInvalidRequest when it is one that
// is no JSON-RPC 2.0 message. A batch is the latter.
func Decode(line []byte) (jsonrpc.Message, error) {
	msg, bad := decode(line)
	if bad != nil {
		return nil, bad.err
	}
	return msg, nil
}

// A fault says why a frame was refused, and to which request the answer belongs.
type fault struct {
	err *jsonrpc.Error
	id  json.RawMessage // as the peer wrote it; nil when there is no valid one
}

func parseFault(s *scanner) *fault {
	return &fault{err: &jsonrpc.Error{
		Code:    jsonrpc.CodeParseError,
		Message: fmt.Sprintf("parse error: %s (byte %d)", s.what, s.at),
	}}
}

func invalidFault(id json.RawMessage, format string, args ...any) *fault {
	return &fault{id: id, err: &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidRequest,
		Message: "invalid request: " + fmt.Sprintf(format, args...),
	}}
}

func decode(line []byte) (jsonrpc.Message, *fault) {
	s := scanner{b: line}
	var m members
	i := s.space(0)
	if i < len(line) && line[i] == '{' {
		i = m.scan(&s, i)
	} else {
		m.unusual = true
		i = s.value(i, 0)
	}
	if i >= 0 {
		if i = s.space(i); i < len(line) {
			i = s.fail(i, "text after the JSON value")
		}
	}
	if i < 0 {
		return nil, parseFault(&s)
	}
	if msg := m.message(); msg != nil {
		return msg, nil
	}
	msg, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, invalidFault(m.answerID(), "%v", err)
	}
	if m.rounded() {
		return nil, invalidFault(m.answerID(), "the id %s is not an integer that a double holds exactly", m.id)
	}
	return msg, nil
}

// members are the raw values of a frame's top-level members, nil when absent.
type members struct {
	version, id, method, params, result, error []byte

	// unusual is set when the SDK has rules of its own for the frame (a name
	// written twice or with escapes), so that the SDK must read it.
	unusual bool
}

// scan validates the object that starts at i, records its members and returns
// the index after it.
func (m *members) scan(s *scanner, i int) int {
	if i = s.space(i + 1); i < len(s.b) && s.b[i] == '}' {
		return i + 1
	}
	for {
		start := i
		if i = s.key(i); i < 0 {
			return -1
		}
		end := s.value(i, 1)
		if end < 0 {
			return -1
		}
		m.set(s.b[start+1:i], s.b[i:end:end])
		var done bool
		if i, done = s.next(end, '}'); i < 0 || done {
			return i
		}
	}
}

// set records a member. name is followed by its closing quote and the colon.
func (m *members) set(name, value []byte) {
	var field *[]byte
	switch name = name[:bytes.IndexByte(name, '"')]; string(name) {
	case "jsonrpc":
		field = &m.version
	case "id":
		field = &m.id
	case "method":
		field = &m.method
	case "params":
		field = &m.params
	case "result":
		field = &m.result
	case "error":
		field = &m.error
	default:
		m.unusual = m.unusual || bytes.IndexByte(name, '\\') >= 0
		return
	}
	m.unusual = m.unusual || *field != nil
	*field = value
}

// message builds the message if it is of a common shape, and returns nil if the
// SDK has to read it.
func (m *members) message() jsonrpc.Message {
	if m.unusual || m.error != nil || string(m.version) != `"2.0"` {
		return nil
	}
	id, ok := m.requestID()
	if !ok {
		return nil
	}
	if m.method == nil {
		if !id.IsValid() {
			return nil
		}
		return &jsonrpc.Response{ID: id, Result: m.result}
	}
	method, ok := plain(m.method)
	if !ok {
		return nil
	}
	return &jsonrpc.Request{ID: id, Method: methodName(method), Params: m.params}
}

// requestID returns the ID, invalid when there is none, and false when it is not
// of a common form: a plain string, or an integer that every float64 holds.
func (m *members) requestID() (jsonrpc.ID, bool) {
	if m.id == nil {
		return jsonrpc.ID{}, true
	}
	var v any
	if text, ok := plain(m.id); ok {
		v = string(text)
	} else if n, err := strconv.ParseInt(string(m.id), 10, 64); err == nil && len(m.id) <= 15 {
		v = float64(n)
	} else {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(v)
	return id, err == nil
}

// rounded reports whether the SDK, which reads numbers as float64 and cuts them to
// int64, would answer to an ID other than the one on the line. The peer would wait
// for ever, or take the answer for that to another request.
func (m *members) rounded() bool {
	if m.unusual || len(m.id) == 0 || m.id[0] != '-' && !isDigit(m.id[0]) {
		return false
	}
	n, err := strconv.ParseFloat(string(m.id), 64)
	return err != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53-1
}

// answerID returns the ID to answer a refused frame with. Frames that look like
// a response have none: with its own number on it, the peer would take our
// complaint for the answer to a request of its own.
func (m *members) answerID() json.RawMessage {
	response := m.method == nil && (m.result != nil || m.error != nil)
	if response || len(m.id) == 0 || m.id[0] != '"' && m.id[0] != '-' && !isDigit(m.id[0]) {
		return nil
	}
	return m.id
}

// plain returns what is between the quotes of a JSON string that says literally
// what it means: ASCII without escapes.
func plain(raw []byte) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	raw = raw[1 : len(raw)-1]
	for _, c := range raw {
		if c == '\\' || c >= 0x80 {
			return nil, false
		}
	}
	return raw, true
}

// methodName is string(method) without the allocation for the methods that make
// up nearly all traffic.
func methodName(method []byte) string {
	switch string(method) {
	case "tools/call":
		return "tools/call"
	case "tools/list":
		return "tools/list"
	case "ping":
		return "ping"
	case "notifications/cancelled":
		return "notifications/cancelled"
	case "notifications/progress":
		return "notifications/progress"
	}
	return string(method)
}
