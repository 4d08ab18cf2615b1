package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

// pageSize is after how many entries a list ends its page; a skill's files are
// not spread over two.
const pageSize = 1000

// answerSkills answers what clients ask about skills without a tool: resources,
// prompts, completion. It is asked before the SDK, which would want every file
// of every skill to be registered.
func (a *agent) answerSkills(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		v := a.now.Load().skills
		switch r := req.(type) {
		case *mcp.ListResourcesRequest:
			cursor := ""
			if r.Params != nil {
				cursor = r.Params.Cursor
			}
			a.noteListed(ctx, v)
			return respond(r)(v.listResources(ctx, cursor))
		case *mcp.ListResourceTemplatesRequest:
			return respond(r)(listTemplates(), nil)
		case *mcp.ReadResourceRequest:
			return respond(r)(v.readResource(ctx, r.Params.URI))
		case *mcp.SubscribeRequest:
			if _, _, err := v.file(ctx, r.Params.URI); err != nil {
				return nil, err
			}
		case *mcp.ListPromptsRequest:
			cursor := ""
			if r.Params != nil {
				cursor = r.Params.Cursor
			}
			return respond(r)(v.listPrompts(cursor))
		case *mcp.GetPromptRequest:
			return respond(r)(v.getPrompt(ctx, r.Params))
		case *mcp.CompleteRequest:
			return respond(r)(v.complete(ctx, r.Params))
		}
		return next(ctx, method, req)
	}
}

// A shelf is the skills that an agent may read.
type shelf []core.Skill

// A cached result is one that clients may keep, for as long as they are told.
// Only the results of the lists and of reading are.
type cached struct{ any }

// respond encodes what was found out about a request.
func respond[P mcp.Params](req *mcp.ServerRequest[P]) func(any, error) (mcp.Result, error) {
	return func(out any, err error) (mcp.Result, error) {
		if err != nil {
			return nil, err
		}
		return encodeAnswer(out, req.ProtocolVersion() >= modern)
	}
}

// encodeAnswer makes a result of a struct with the members of one. In the
// revision without sessions it says how long it may be kept, which is not at
// all: it depends on the agent, and on files that anybody may change.
func encodeAnswer(out any, isModern bool) (*rawResult, error) {
	c, keep := out.(cached)
	if keep {
		out = c.any
	}
	encoded, err := rawjson.Marshal(out)
	if err != nil {
		return nil, err
	}
	members, err := rawjson.Members(encoded)
	if err != nil {
		return nil, err
	}
	if keep && isModern {
		members = append(members, rawjson.Member{Name: "ttlMs", Value: json.RawMessage("0")},
			rawjson.Member{Name: "cacheScope", Value: json.RawMessage(`"private"`)})
	}
	return &rawResult{modern: isModern, members: members}, nil
}

// from is the shelf from the skill on that a cursor names: the first one of a
// page.
func (v shelf) from(cursor string) (shelf, error) {
	if cursor == "" {
		return v, nil
	}
	i := slices.IndexFunc(v, func(s core.Skill) bool { return s.Name == cursor })
	if i < 0 {
		return nil, invalidParams("unknown cursor: begin the list anew")
	}
	return v[i:], nil
}

type resourceList struct {
	Resources  []mcp.Resource `json:"resources"`
	NextCursor string         `json:"nextCursor,omitempty"`
}

func (v shelf) listResources(ctx context.Context, cursor string) (any, error) {
	v, err := v.from(cursor)
	if err != nil {
		return nil, err
	}
	out := resourceList{Resources: []mcp.Resource{}}
	for _, s := range v {
		if len(out.Resources) >= pageSize {
			out.NextCursor = s.Name
			break
		}
		files, err := s.Files.List(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			continue // it was removed meanwhile, and the others are still there
		}
		for _, f := range files {
			out.Resources = append(out.Resources, resourceOf(s, f))
		}
	}
	return cached{out}, nil
}

// resourceOf describes one file. SKILL.md stands for the skill.
func resourceOf(s core.Skill, f core.SkillFile) mcp.Resource {
	r := mcp.Resource{URI: skillURI(s.Name, f.Path), Name: path.Base(f.Path), MIMEType: mediaType(f.Path), Size: f.Size}
	if f.Path == skillManifest {
		r.Name, r.Description = s.Name, s.Description
	}
	return r
}

func listTemplates() any {
	return cached{struct {
		Templates []mcp.ResourceTemplate `json:"resourceTemplates"`
	}{[]mcp.ResourceTemplate{{Name: "skill-file", Title: "File of a skill", URITemplate: skillTemplate,
		Description: "A file of a skill; SKILL.md has its instructions."}}}}
}

// notFound is the answer for what is not there, and for what the agent may not
// see.
func notFound(uri string) error {
	data, err := rawjson.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "resource not found", Data: data}
}

func (v shelf) skill(name string) (core.Skill, bool) {
	i := slices.IndexFunc(v, func(s core.Skill) bool { return s.Name == name })
	if i < 0 {
		return core.Skill{}, false
	}
	return v[i], true
}

// file finds the skill of a resource and reads it.
func (v shelf) file(ctx context.Context, uri string) (file string, data []byte, err error) {
	name, file, ok := parseSkillURI(uri)
	if !ok {
		return "", nil, notFound(uri)
	}
	s, ok := v.skill(name)
	if !ok {
		return "", nil, notFound(uri)
	}
	data, err = s.Files.Read(ctx, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = notFound(uri)
	case err != nil:
		err = unreadable(err)
	}
	return file, data, err
}

// unreadable is the answer for what is there and cannot be read.
func unreadable(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// contents is one item of resources/read. Text that is empty is text all the
// same.
type contents struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text,omitempty"`
	Blob     []byte  `json:"blob,omitempty"`
}

func (v shelf) readResource(ctx context.Context, uri string) (any, error) {
	file, data, err := v.file(ctx, uri)
	if err != nil {
		return nil, err
	}
	c := contents{URI: uri, MIMEType: sniffType(file, data)}
	if isText(data) {
		text := string(data)
		c.Text = &text
	} else {
		c.Blob = data
	}
	return cached{struct {
		Contents []contents `json:"contents"`
	}{[]contents{c}}}, nil
}

// directoryType marks a folder among resources.
const directoryType = "inode/directory"

// listDirectory lists what is in a folder of a skill, one level deep.
func (v shelf) listDirectory(ctx context.Context, uri string) (any, error) {
	unknown := invalidParams("unknown folder %q: name a skill or a folder in one, as skill://NAME/FOLDER", core.Clip(uri, 200))
	name, folder, ok := parseSkillURI(strings.TrimSuffix(uri, "/"))
	if !ok {
		return nil, unknown
	}
	s, ok := v.skill(name)
	if !ok {
		return nil, unknown
	}
	files, err := s.Files.List(ctx)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, unknown
		}
		return nil, unreadable(err)
	}
	out := resourceList{Resources: []mcp.Resource{}}
	for _, f := range files {
		rest := f.Path
		if folder != "" {
			if rest, ok = strings.CutPrefix(f.Path, folder+"/"); !ok {
				continue
			}
		}
		child, _, isFolder := strings.Cut(rest, "/")
		if !isFolder {
			out.Resources = append(out.Resources, resourceOf(s, f))
			continue
		}
		r := mcp.Resource{URI: skillURI(s.Name, path.Join(folder, child)), Name: child, MIMEType: directoryType}
		if !slices.ContainsFunc(out.Resources, func(o mcp.Resource) bool { return o.URI == r.URI }) {
			out.Resources = append(out.Resources, r)
		}
	}
	if len(out.Resources) == 0 {
		return nil, unknown
	}
	return cached{out}, nil
}
