package configs

import (
	"embed"
	"io/fs"
)

//go:embed defaults
var defaults embed.FS

// Defaults are the factory's files as they lie in a new home.
func Defaults() fs.FS {
	sub, err := fs.Sub(defaults, "defaults")
	if err != nil {
		panic(err) // the name is a constant above
	}
	return sub
}
