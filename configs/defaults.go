package configs

import (
	"embed"
	"io/fs"
)

//go:embed defaults schema
var embedded embed.FS

// Defaults are the factory's files as they lie in a new home.
func Defaults() fs.FS { return folder("defaults") }

// Schemas are JSON Schemas for editors: config.json, agent.json for agents and
// sub-agents, mcp.json, and tool.json for manifests of the user's tools. The files
// of [Defaults] name them by where they are in a home, the folder schema. A schema
// is stricter than reading is: what it marks can be ignored, what is read with an
// error it marks.
func Schemas() fs.FS { return folder("schema") }

func folder(name string) fs.FS {
	sub, err := fs.Sub(embedded, name)
	if err != nil {
		panic(err) // the name is a constant above
	}
	return sub
}
