package configs

import (
	"embed"
	"io/fs"
)

//go:embed defaults
var defaults embed.FS

// Defaults are the factory's files in their folders, as Init writes them.
func Defaults() fs.FS {
	sub, err := fs.Sub(defaults, "defaults")
	if err != nil {
		panic(err) // the name is a constant above
	}
	return sub
}
