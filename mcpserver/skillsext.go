package mcpserver

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// The skills extension (SEP-2640): hosts list skills with the digest of every
// file, and read the files as resources.

// skillsExtension is its name among the capabilities.
const skillsExtension = "io.modelcontextprotocol/skills"

// skillsPage is how many skills are on one page of skills/list.
const skillsPage = 100

// A skillEntry describes a skill for hosts that verify it. Resources is the
// whole list always, never "dynamic".
type skillEntry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   []skillResource `json:"resources"`
}

type skillResource struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// entryOf describes a skill. An error says that hosts are not told of it.
func entryOf(ctx context.Context, s core.Skill) (skillEntry, error) {
	m, err := s.Files.Describe(ctx)
	if err != nil {
		return skillEntry{}, err
	}
	e := skillEntry{URI: skillURI(s.Name, skillManifest), Frontmatter: m.Frontmatter}
	for _, f := range m.Files {
		e.Resources = append(e.Resources, skillResource{skillURI(s.Name, f.Path), f.Digest, f.Size})
	}
	return e, nil
}

type uriParams struct {
	mcp.ParamsBase
	URI    string `json:"uri"`
	Cursor string `json:"cursor"`
}

// addSkillsExtension adds the methods of the extension. The SDK's table of them
// has no lock, so it must happen before anybody is served.
func (a *agent) addSkillsExtension() error {
	add := func(method string, f func(context.Context, shelf, *uriParams) (any, error)) error {
		return mcp.AddReceivingCustomMethod(a.mcp, method, func(ctx context.Context, _ *mcp.ServerSession, p *uriParams) (*rawResult, error) {
			if p == nil { // params may be missing altogether
				p = &uriParams{}
			}
			out, err := f(ctx, a.now.Load().skills, p)
			if err != nil {
				return nil, err
			}
			version, _ := p.Meta[mcp.MetaKeyProtocolVersion].(string)
			return encodeAnswer(out, version >= modern)
		})
	}
	return errors.Join(
		add("skills/list", func(ctx context.Context, v shelf, p *uriParams) (any, error) { return v.listSkills(ctx, p.Cursor) }),
		add("skills/get", func(ctx context.Context, v shelf, p *uriParams) (any, error) { return v.getSkill(ctx, p.URI) }),
		add("resources/directory/read", func(ctx context.Context, v shelf, p *uriParams) (any, error) {
			if p.Cursor != "" {
				return nil, invalidParams("unknown cursor: the list has one page")
			}
			return v.listDirectory(ctx, p.URI)
		}),
	)
}

func (v shelf) listSkills(ctx context.Context, cursor string) (any, error) {
	v, err := v.from(cursor)
	if err != nil {
		return nil, err
	}
	out := struct {
		Skills     []skillEntry `json:"skills"`
		NextCursor string       `json:"nextCursor,omitempty"`
	}{Skills: []skillEntry{}}
	for _, s := range v {
		if len(out.Skills) == skillsPage {
			out.NextCursor = s.Name
			break
		}
		e, err := entryOf(ctx, s)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			out.Skills = append(out.Skills, e)
		}
	}
	return cached{out}, nil
}

// getSkill describes the skill of a SKILL.md. Any other URI is answered in the
// same words, whether it is another file, denied or nothing at all.
func (v shelf) getSkill(ctx context.Context, uri string) (any, error) {
	name, file, ok := parseSkillURI(uri)
	if ok && file == skillManifest {
		if s, ok := v.skill(name); ok {
			e, err := entryOf(ctx, s)
			if err == nil {
				return cached{struct {
					Skill skillEntry `json:"skill"`
				}{e}}, nil
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
	}
	return nil, invalidParams("unknown skill %q: name its SKILL.md, as skill://NAME/SKILL.md", core.Clip(uri, 200))
}
