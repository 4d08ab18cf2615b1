// Package builtin holds the 19 built-in tools, one file each, and their one
// ordered list. A tool is added by a file and a line in the list; nothing else
// names the tools.
package builtin

import (
	"context"
	"errors"

	"zenmcp/core"
	"zenmcp/core/llm"
)

// definitions lists the tools in the order of publication.
func definitions() []core.Definition {
	models := new(llm.Service)
	return []core.Definition{
		cwd(),
		readFile(),
		writeFile(),
		execSync(),
		mkdir(),
		rm(),
		glob(),
		ls(),
		exist(),
		findText(),
		downloadFile(),
		rename(),
		copyFiles(),
		batchEdit(),
		edit(),
		execAsync(),
		sleep(),
		viewImage(models),
		generateImage(models),
	}
}

// Source offers the built-in tools. It finds all of them always; whether one is
// of use with a configuration and an agent, each tool says itself.
func Source() core.Source { return source{} }

type source struct{}

func (source) Discover(context.Context) (core.Offer, error) {
	return offer(definitions()), nil
}

type offer []core.Definition

func (o offer) Capabilities() []core.Capability {
	all := make([]core.Capability, len(o))
	for i, d := range o {
		all[i] = core.Capability{Kind: core.KindTool, Name: d.Name}
	}
	return all
}

func (o offer) Available(config core.Config, agent core.AgentDefinition, c core.Capability) error {
	for _, d := range o {
		if d.Name == c.Name && d.Available != nil {
			return d.Available(config, agent)
		}
	}
	return nil
}

func (o offer) Instantiate(scope *core.Scope, permitted []core.Capability) ([]core.Tool, error) {
	tools := make([]core.Tool, 0, len(permitted))
	var left []error
	for _, c := range permitted {
		for _, d := range o {
			if d.Name != c.Name {
				continue
			}
			if err := d.UsableIn(scope); err != nil {
				left = append(left, core.Omit(c, "", err))
				continue
			}
			tools = append(tools, d.Bind(scope))
		}
	}
	return tools, errors.Join(left...)
}
