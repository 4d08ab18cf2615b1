package mcpserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// An edition is what an agent is between two reloads. It does not change: who has
// one works with it to the end, and the next request gets the next one.
type edition struct {
	definition   core.AgentDefinition
	tools        json.RawMessage // the tools member of tools/list
	skills       shelf
	instructions string
}

// Reload replaces what the server publishes: the configuration, the catalog, and
// the definitions of the agents, which are those of [Options] in the same order.
// Each client is told which of its lists are others now, and nothing when none is.
// Calls that run finish with what they began with; clients keep what they have
// loaded, connected and started.
//
// The error joins what is wrong with agents whose new definition cannot be used,
// because a root of theirs does not exist. They may do nothing until a Reload with
// one that can be: the roots before may reach what the new ones were to close. After
// [Server.Close] Reload does nothing.
func (s *Server) Reload(ctx context.Context, config core.Config, catalog core.Catalog, agents []core.AgentDefinition) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if s.closing.Err() != nil {
		return nil
	}
	s.options.Env.Update(config, catalog)
	look := listings{}
	var errs []error
	for i, a := range s.agents {
		before := a.now.Load()
		if err := a.renew(agents[i]); err != nil {
			errs = append(errs, fmt.Errorf("agent %q may do nothing until its definition is mended: %w", a.id, err))
			closed := before.definition
			closed.Permissions = nil
			errs = append(errs, a.renew(closed))
		}
		a.announce(ctx, before, look)
	}
	if s.closing.Err() != nil {
		return nil // what failed did so because of that
	}
	return errors.Join(errs...)
}

// renew makes the agent's next edition, of the current catalog. Whatever can fail
// has been done when the first client sees it.
func (a *agent) renew(definition core.AgentDefinition) error {
	c := a.shared
	c.mu.Lock()
	defer c.mu.Unlock()
	v, err := c.look(definition)
	if err != nil {
		return err
	}
	tools, err := encodeTools(v.published.Tools)
	if err != nil {
		return err
	}
	v.edition = &edition{definition, tools, v.published.Skills, instructions(v.scope, v.published.Tools)}
	c.view.Store(v)
	a.now.Store(v.edition)
	return nil
}

// announce tells clients what is different from the edition before.
func (a *agent) announce(ctx context.Context, before *edition, look listings) {
	now := a.now.Load()
	if !bytes.Equal(before.tools, now.tools) {
		a.announceTools()
	}
	sameSkills := slices.EqualFunc(before.skills, now.skills, func(x, y core.Skill) bool {
		return x.Name == y.Name && x.Description == y.Description
	})
	if !sameSkills {
		a.announcePrompts()
	}
	listed := now.skills.fingerprint(ctx, look)
	if ctx.Err() != nil {
		return // and what was listed is not known
	}
	known := a.listed.Swap(&listed)
	if known == nil && !sameSkills || known != nil && *known != listed {
		a.announceResources()
	}
	a.checkFiles(ctx, look)
}

// noteListed remembers what the first client is shown that comes before the first
// reload, which would otherwise have nothing to compare with.
func (a *agent) noteListed(ctx context.Context, v shelf) {
	if a.listed.Load() != nil {
		return
	}
	if listed := v.fingerprint(ctx, listings{}); ctx.Err() == nil {
		a.listed.CompareAndSwap(nil, &listed)
	}
}

// listings keep, during one reload, what is in the folders of skills.
type listings map[core.SkillFiles][]core.SkillFile

func (l listings) files(ctx context.Context, s core.Skill) []core.SkillFile {
	files, ok := l[s.Files]
	if !ok {
		files, _ = s.Files.List(ctx) // what cannot be listed is not there
		l[s.Files] = files
	}
	return files
}

type fingerprint [sha256.Size]byte

// fingerprint is that of the list of resources.
func (v shelf) fingerprint(ctx context.Context, look listings) fingerprint {
	hash := sha256.New()
	for _, s := range v {
		fmt.Fprintf(hash, "%q %q\n", s.Name, s.Description)
		for _, f := range look.files(ctx, s) {
			fmt.Fprintf(hash, "%q %d\n", f.Path, f.Size)
		}
	}
	return fingerprint(hash.Sum(nil))
}

// unlisted is the name of what is never listed, since lists are answered here. The
// SDK tells clients that a list changed when something is added to its own, and in
// no other way; to add what is there already is enough.
const unlisted = "unlisted"

func (a *agent) announceTools() {
	a.mcp.AddTool(&mcp.Tool{Name: unlisted, InputSchema: &jsonschema.Schema{Type: "object"}}, nil)
}

func (a *agent) announceResources() {
	a.mcp.AddResource(&mcp.Resource{URI: skillScheme + unlisted, Name: unlisted}, nil)
}

func (a *agent) announcePrompts() { a.mcp.AddPrompt(&mcp.Prompt{Name: unlisted}, nil) }

// afterGreeting keeps notifications about lists from a session that has not begun:
// the SDK would send them before the answer to initialize, where clients expect
// nothing.
func afterGreeting(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, ok := req.GetSession().(*mcp.ServerSession)
		if ok && strings.HasSuffix(method, "/list_changed") && session.InitializeParams() == nil {
			return nil, nil
		}
		return next(ctx, method, req)
	}
}
