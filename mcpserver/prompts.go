package mcpserver

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"zenmcp/core"
)

// Every skill is a prompt of its name, so that clients show it to their user, as
// a slash command for example.

// taskArgument is the one argument of a skill's prompt.
const taskArgument = "task"

type promptList struct {
	Prompts    []mcp.Prompt `json:"prompts"`
	NextCursor string       `json:"nextCursor,omitempty"`
}

func (v shelf) listPrompts(cursor string) (any, error) {
	v, err := v.from(cursor)
	if err != nil {
		return nil, err
	}
	out := promptList{Prompts: []mcp.Prompt{}}
	for i, s := range v {
		if i == pageSize {
			out.NextCursor = s.Name
			break
		}
		out.Prompts = append(out.Prompts, mcp.Prompt{Name: s.Name, Description: s.Description,
			Arguments: []*mcp.PromptArgument{{Name: taskArgument, Description: "What to do with the skill"}}})
	}
	return cached{out}, nil
}

// getPrompt gives a skill as what its user says: the skill's text, and the task
// if there is one.
func (v shelf) getPrompt(ctx context.Context, params *mcp.GetPromptParams) (any, error) {
	s, ok := v.skill(params.Name)
	if !ok {
		return nil, invalidParams("unknown prompt %q%s", core.Clip(params.Name, 80), core.DidYouMean(params.Name, v.names()))
	}
	text, err := s.Files.Text(ctx)
	if err != nil {
		return nil, unreadable(err)
	}
	if task := strings.TrimSpace(params.Arguments[taskArgument]); task != "" {
		text = strings.TrimRight(text, "\n") + "\n\nUse this skill for the task:\n" + task
	}
	return struct {
		Description string               `json:"description"`
		Messages    []*mcp.PromptMessage `json:"messages"`
	}{s.Description, []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
}

func (v shelf) names() []string {
	names := make([]string, len(v))
	for i, s := range v {
		names[i] = s.Name
	}
	return names
}

// maxCompletions is the most values that one answer may have (MCP, completion).
const maxCompletions = 100

// complete completes the parts of a file's URI: the name of a skill, and the path
// of one of its files. What a task is, is the user's to say.
func (v shelf) complete(ctx context.Context, params *mcp.CompleteParams) (any, error) {
	if params.Ref == nil {
		return nil, invalidParams(`"ref" is missing: it says what to complete`)
	}
	var values []string
	switch params.Ref.Type {
	case "ref/prompt":
		if _, ok := v.skill(params.Ref.Name); !ok {
			return nil, invalidParams("unknown prompt %q%s", core.Clip(params.Ref.Name, 80), core.DidYouMean(params.Ref.Name, v.names()))
		}
	case "ref/resource":
		if params.Ref.URI != skillTemplate {
			return nil, invalidParams("unknown template %q; there is %q", core.Clip(params.Ref.URI, 200), skillTemplate)
		}
		values = v.completions(ctx, params)
	default:
		return nil, invalidParams(`"ref" has the unknown type %q; it is "ref/prompt" or "ref/resource"`, core.Clip(params.Ref.Type, 80))
	}
	matching := slices.DeleteFunc(values, func(value string) bool { return !strings.HasPrefix(value, params.Argument.Value) })
	details := mcp.CompletionResultDetails{Total: len(matching), HasMore: len(matching) > maxCompletions, Values: []string{}}
	details.Values = append(details.Values, matching[:min(len(matching), maxCompletions)]...)
	return struct {
		Completion mcp.CompletionResultDetails `json:"completion"`
	}{details}, nil
}

// completions are all values of an argument of the template.
func (v shelf) completions(ctx context.Context, params *mcp.CompleteParams) []string {
	if params.Argument.Name == "skill" {
		return v.names()
	}
	if params.Argument.Name != "path" || params.Context == nil {
		return nil
	}
	s, ok := v.skill(params.Context.Arguments["skill"])
	if !ok {
		return nil
	}
	files, err := s.Files.List(ctx)
	if err != nil {
		return nil
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return paths
}
