package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"zenmcp/configs"
)

func initCommand() command {
	var force bool
	return command{
		name: "init", summary: "write the factory's configuration into the home, to be changed there",
		shared: []string{"home"},
		flags: func(_ *options, set *pflag.FlagSet) {
			set.BoolVar(&force, "force", false, "replace files that are there, and keep each beside the new one")
		},
		run: func(ctx context.Context, o *options, args []string, std streams) error {
			return runInit(ctx, o, args, force, std)
		},
	}
}

func runInit(ctx context.Context, o *options, args []string, force bool, std streams) error {
	if len(args) > 0 {
		return errUsage{fmt.Errorf("init takes no arguments, but got %q; --home DIR names another home", args)}
	}
	places, err := o.places()
	if err != nil {
		return errUsage{err}
	}
	if places.Home == "" {
		return errors.New("the user has no home directory; name a folder with --home")
	}
	for _, part := range []struct {
		below string
		files fs.FS
	}{{"", configs.Defaults()}, {"schema", configs.Schemas()}} {
		err := fs.WalkDir(part.files, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := fs.ReadFile(part.files, name)
			if err != nil {
				return err
			}
			what, err := writeDefault(ctx, filepath.Join(places.Home, part.below, filepath.FromSlash(name)), text, force)
			if err == nil {
				_, err = fmt.Fprintln(std.out, what)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(std.out, "next: sub-agents and pictures need an apiKey in %s; the rest works as it is\n", filepath.Join(places.Home, "config.json"))
	return err
}

// writeDefault writes a file and says what it did. One that is there stays, unless force is
// set: then it is kept under another name.
func writeDefault(ctx context.Context, file string, text []byte, force bool) (string, error) {
	old, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "wrote " + file, configs.WriteFile(ctx, file, text, false)
	case err != nil:
		return "", err
	case bytes.Equal(old, text):
		return "kept " + file + ", which is the same", nil
	case !force:
		return "kept " + file + ", which is there already; --force replaces it", nil
	}
	backup := file + time.Now().UTC().Format(".20060102-150405.bak")
	if err := configs.WriteFile(ctx, backup, old, false); err != nil {
		return "", err
	}
	return "wrote " + file + "; as it was before: " + backup, configs.WriteFile(ctx, file, text, true)
}
