package main

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"zenmcp/configs"
)

func schemaCommand() command {
	return command{
		name: "schema", args: "NAME", words: schemaNames, shared: none,
		summary: "print the JSON Schema of a kind of file, for editors: " + strings.Join(schemaNames(), ", "),
		run: func(_ context.Context, _ *options, args []string, std streams) error {
			if len(args) == 1 {
				if schema, err := fs.ReadFile(configs.Schemas(), args[0]+".json"); err == nil {
					_, err = std.out.Write(schema)
					return err
				}
			}
			return errUsage{fmt.Errorf("schema takes one name: %s", strings.Join(schemaNames(), ", "))}
		},
	}
}

func schemaNames() []string {
	files, err := fs.Glob(configs.Schemas(), "*.json")
	if err != nil {
		return nil // the pattern is a constant
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(file, ".json")
	}
	return files
}
