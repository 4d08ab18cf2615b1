package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/pflag"

	"zenmcp/core"
)

func toolsCommand() command {
	return command{
		name: "tools", summary: "show what is published for the agent, and what is left out and why",
		flags: func(o *options, set *pflag.FlagSet) {
			set.BoolVar(&o.json, "json", false, "print JSON, with descriptions and schemas")
		},
		run: runTools,
	}
}

func runTools(ctx context.Context, o *options, args []string, std streams) error {
	if len(args) > 0 {
		return errUsage{fmt.Errorf("tools takes no arguments, but got %q", args)}
	}
	sys, err := assemble(ctx, o, std)
	if err != nil {
		return err
	}
	defer sys.close()
	for i, definition := range sys.agents {
		scope, err := sys.scope(definition)
		if err != nil {
			return err
		}
		published := scope.Tools()
		if err := scope.Close(); err != nil {
			return err
		}
		if err := sys.blameFlags(o, definition, published.Omitted); err != nil {
			return err
		}
		if o.json {
			err = printToolsJSON(std.out, definition.ID, published)
		} else {
			if i > 0 {
				fmt.Fprintln(std.out)
			}
			err = printTools(std.out, definition.ID, published)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// blameFlags corrects the reasons of what the agent's file permits: it is a flag that
// takes it away.
func (s *system) blameFlags(o *options, narrowed core.AgentDefinition, omitted []core.Omission) error {
	agent, err := s.places.Agent(narrowed.ID)
	if err != nil {
		return err
	}
	undenied, err := narrow(agent.Permissions, nil, o.deny)
	if err != nil {
		return err
	}
	for i, left := range omitted {
		switch {
		case left.Origin != "" || narrowed.Permissions.Permits(left.Capability) || !agent.Permissions.Permits(left.Capability):
		case undenied.Permits(left.Capability):
			omitted[i].Reason = "not among those of --allow"
		default:
			omitted[i].Reason = "taken away by --deny"
		}
	}
	return nil
}

func printTools(w io.Writer, agent string, published core.Published) error {
	fmt.Fprintf(w, "agent %s publishes %s\n", agent, core.Plural(len(published.Tools), "tool"))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range published.Tools {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", t.Name, effect(t.Hints), firstLine(t.Description))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, part := range []struct {
		title   string
		offered bool
	}{{"left out", false}, {"published, but", true}} {
		found := slices.DeleteFunc(slices.Clone(published.Omitted), func(o core.Omission) bool { return o.Offered != part.offered })
		if len(found) == 0 {
			continue
		}
		fmt.Fprintln(w, part.title)
		for _, o := range found {
			if o.Origin != "" {
				fmt.Fprintf(table, "  %s\t%s\n", omitted(o), o.Reason)
			}
		}
		if err := table.Flush(); err != nil {
			return err
		}
		printReasons(w, found)
	}
	return nil
}

// printReasons prints each reason once, behind all that it is about. What comes from a
// file is left to a line of its own.
func printReasons(w io.Writer, omissions []core.Omission) {
	var reasons []string
	names := map[string][]string{}
	for _, o := range omissions {
		if o.Origin != "" {
			continue
		}
		if !slices.Contains(reasons, o.Reason) {
			reasons = append(reasons, o.Reason)
		}
		if name := flagName(o.Capability); name != "" {
			names[o.Reason] = append(names[o.Reason], name)
		}
	}
	for _, reason := range reasons {
		line, next := "  ", ""
		for _, name := range names[reason] {
			if utf8.RuneCountInString(line+next+name) >= lineWidth {
				fmt.Fprintln(w, line+",")
				line, next = "    ", ""
			}
			line, next = line+next+name, ", "
		}
		if len(names[reason]) > 0 {
			line += ": "
		}
		fmt.Fprintln(w, line+reason)
	}
}

// lineWidth is where lines of names are wrapped, in code points.
const lineWidth = 100

// flagName is a name as --allow and --deny take it.
func flagName(c core.Capability) string {
	if c.Kind == core.KindTool && c.Name != "" {
		return c.Name
	}
	return c.String()
}

// effect says in a word what calling a tool may do.
func effect(h core.Hints) string {
	switch {
	case h.ReadOnly:
		return "reads"
	case h.Destructive:
		return "changes"
	}
	return "adds"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return core.Clip(line, 100)
}

// omitted is what an omission with an origin is about.
func omitted(o core.Omission) string {
	if o.Name == "" {
		return o.Origin
	}
	return fmt.Sprintf("%s (%s)", o.Capability, o.Origin)
}

func printToolsJSON(w io.Writer, agent string, published core.Published) error {
	type tool struct {
		Name        string             `json:"name"`
		Title       string             `json:"title"`
		Description string             `json:"description"`
		Effect      string             `json:"effect"`
		InputSchema *jsonschema.Schema `json:"inputSchema"`
	}
	type leftOut struct {
		Kind   core.Kind `json:"kind,omitempty"`
		Name   string    `json:"name,omitempty"`
		Origin string    `json:"origin,omitempty"`
		Reason string    `json:"reason"`
	}
	listing := struct {
		Agent   string    `json:"agent"`
		Tools   []tool    `json:"tools"`
		LeftOut []leftOut `json:"leftOut"`
		Warned  []leftOut `json:"warnings"`
	}{agent, []tool{}, []leftOut{}, []leftOut{}}
	for _, t := range published.Tools {
		listing.Tools = append(listing.Tools, tool{t.Name, t.Title, t.Description, effect(t.Hints), t.Input})
	}
	for _, o := range published.Omitted {
		list := &listing.LeftOut
		if o.Offered {
			list = &listing.Warned
		}
		*list = append(*list, leftOut{o.Kind, o.Name, o.Origin, o.Reason})
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(listing)
}

// narrow applies --allow and --deny, which only ever take away.
func narrow(p core.Permissions, allow, deny []string) (core.Permissions, error) {
	allowed, err := byKind(allow)
	if err != nil {
		return nil, fmt.Errorf("--allow: %w", err)
	}
	denied, err := byKind(deny)
	if err != nil {
		return nil, fmt.Errorf("--deny: %w", err)
	}
	out := core.Permissions{}
	for _, kind := range core.Kinds() {
		policy := p[kind].Intersect(core.Deny(denied[kind]...))
		if names, ok := allowed[kind]; ok {
			policy = policy.Intersect(core.Allow(names...))
		}
		out[kind] = policy
	}
	return out, nil
}

// byKind sorts names such as readFile and skills:pdf by their dimension.
func byKind(names []string) (map[core.Kind][]string, error) {
	out := map[core.Kind][]string{}
	for _, n := range names {
		kind, name, ok := strings.Cut(n, ":")
		if !ok {
			kind, name = string(core.KindTool), n
		}
		if !slices.Contains(core.Kinds(), core.Kind(kind)) {
			return nil, errUsage{fmt.Errorf("%q: the dimensions are %q", n, core.Kinds())}
		}
		out[core.Kind(kind)] = append(out[core.Kind(kind)], name)
	}
	return out, nil
}
