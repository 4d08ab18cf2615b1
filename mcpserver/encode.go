package mcpserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// A rawResult is a result that is encoded already. The SDK adds to its _meta.
type rawResult struct {
	mcp.ResultBase
	modern  bool // the request's revision wants a resultType
	members []rawjson.Member
}

// MarshalJSON writes the members as they are. What another server says of itself
// (serverInfo in _meta, resultType) is replaced by what is true of this one.
func (r *rawResult) MarshalJSON() ([]byte, error) { return r.append(nil) }

func (r *rawResult) append(dst []byte) ([]byte, error) {
	var meta []rawjson.Member
	out := make([]rawjson.Member, 0, len(r.members)+2)
	sawType := false
	for _, m := range r.members {
		switch {
		case m.Name == "_meta" && rawjson.KindOf(m.Value) == rawjson.Object:
			var err error
			if meta, err = rawjson.Members(m.Value); err != nil {
				return nil, err
			}
			continue
		case m.Name == "resultType":
			if sawType = true; !r.modern {
				continue
			}
		}
		out = append(out, m)
	}
	for key, value := range r.Meta {
		encoded, err := rawjson.Marshal(value)
		if err != nil {
			return nil, err
		}
		meta = setMember(meta, key, encoded)
	}
	if len(meta) > 0 {
		out = append(out, rawjson.Member{Name: "_meta", Value: rawjson.JoinMembers(meta)})
	}
	if r.modern && !sawType {
		out = append(out, rawjson.Member{Name: "resultType", Value: json.RawMessage(`"complete"`)})
	}
	return rawjson.AppendMembers(dst, out), nil
}

func setMember(members []rawjson.Member, name string, value json.RawMessage) []rawjson.Member {
	for i := range members {
		if members[i].Name == name {
			members[i].Value = value
			return members
		}
	}
	return append(members, rawjson.Member{Name: name, Value: value})
}

// encodeResult turns a result into MCP's. Text is escaped once, on its way into
// the buffer that is sent.
func encodeResult(r *core.Result) ([]rawjson.Member, error) {
	if r.Whole != nil {
		return rawjson.Members(r.Whole)
	}
	content, err := appendContent(nil, r.Blocks)
	if err != nil {
		return nil, err
	}
	members := []rawjson.Member{{Name: "content", Value: content}}
	if r.IsError {
		members = append(members, rawjson.Member{Name: "isError", Value: json.RawMessage("true")})
	}
	if len(r.Meta) > 0 {
		meta, err := rawjson.Marshal(r.Meta)
		if err != nil {
			return nil, err
		}
		members = append(members, rawjson.Member{Name: "_meta", Value: meta})
	}
	return members, nil
}

// appendResult appends what a client of the revisions with a handshake gets. Text
// of a plain result goes right into dst.
func appendResult(dst []byte, r *core.Result) ([]byte, error) {
	if r.Whole == nil && len(r.Meta) == 0 {
		dst, err := appendContent(append(dst, `{"content":`...), r.Blocks)
		if r.IsError {
			dst = append(dst, `,"isError":true`...)
		}
		return append(dst, '}'), err
	}
	members, err := encodeResult(r)
	if err != nil {
		return nil, err
	}
	result := &rawResult{members: members}
	return result.append(dst)
}

func appendContent(dst []byte, blocks []core.Block) ([]byte, error) {
	dst = append(dst, '[')
	for i, b := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendBlock(dst, b); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendBlock(dst []byte, b core.Block) ([]byte, error) {
	switch b := b.(type) {
	case core.Text:
		dst = append(dst, `{"type":"text","text":`...)
		return append(rawjson.AppendString(dst, b), '}'), nil
	case core.Image:
		dst = append(dst, `{"type":"image","mimeType":`...)
		dst = rawjson.AppendString(dst, b.MIMEType)
		dst = append(dst, `,"data":"`...)
		return append(base64.StdEncoding.AppendEncode(dst, b.Data), `"}`...), nil
	case core.ImageURL:
		return appendLink(dst, core.ResourceLink{URI: b.URL, Name: path.Base(b.URL), MIMEType: b.MIMEType}), nil
	case core.ResourceLink:
		return appendLink(dst, b), nil
	case core.FileRef:
		return appendBlock(dst, core.Text(fmt.Sprintf("uploaded %q as file %s", b.Name, b.ID)))
	case core.Raw:
		return append(dst, b...), nil
	}
	return nil, fmt.Errorf("no MCP form for %T", b)
}

func appendLink(dst []byte, l core.ResourceLink) []byte {
	dst = append(dst, `{"type":"resource_link","uri":`...)
	dst = rawjson.AppendString(dst, l.URI)
	dst = append(dst, `,"name":`...)
	dst = rawjson.AppendString(dst, l.Name)
	for _, optional := range []struct{ name, value string }{{"description", l.Description}, {"mimeType", l.MIMEType}} {
		if optional.value != "" {
			dst = append(rawjson.AppendString(append(dst, ','), optional.name), ':')
			dst = rawjson.AppendString(dst, optional.value)
		}
	}
	return append(dst, '}')
}

// listedTool is one entry of tools/list.
type listedTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations *annotations    `json:"annotations,omitempty"`
	Meta        map[string]any  `json:"_meta,omitempty"`
}

// annotations are MCP's tool annotations. Only what differs from the protocol's
// defaults is sent: every byte is paid on every request.
type annotations struct {
	ReadOnly    bool  `json:"readOnlyHint,omitempty"`    // default false
	Destructive *bool `json:"destructiveHint,omitempty"` // default true
	Idempotent  bool  `json:"idempotentHint,omitempty"`  // default false
	OpenWorld   *bool `json:"openWorldHint,omitempty"`   // default true
}

func annotate(h core.Hints) *annotations {
	a := &annotations{ReadOnly: h.ReadOnly, Idempotent: h.Idempotent && !h.ReadOnly}
	no := new(bool)
	if !h.Destructive && !h.ReadOnly { // meaningful only for tools that change something
		a.Destructive = no
	}
	if !h.OpenWorld {
		a.OpenWorld = no
	}
	return a
}

// ListSize is how many bytes the tools take in the answer to tools/list, which
// clients pay for with every request to a model.
func ListSize(tools []core.Tool) (int, error) {
	encoded, err := encodeTools(tools)
	return len(encoded), err
}

// encodeTools encodes the tools member of tools/list, once per catalog.
func encodeTools(tools []core.Tool) (json.RawMessage, error) {
	listed := make([]listedTool, len(tools))
	for i, t := range tools {
		schema, err := t.InputJSON()
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", t.Name, err)
		}
		listed[i] = listedTool{t.Name, t.Title, t.Description, schema, annotate(t.Hints), t.Meta}
	}
	return rawjson.Marshal(listed)
}
