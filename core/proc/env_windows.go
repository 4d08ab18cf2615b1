package proc

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

const defaultPathExt = ".COM;.EXE;.BAT;.CMD"

// extensions lists the endings that make a name a program.
func extensions(name string, env []string) []string {
	list := strings.Split(variable(env, "PATHEXT"), ";")
	if ext := filepath.Ext(name); ext != "" {
		for _, e := range list {
			if strings.EqualFold(e, ext) {
				return []string{""}
			}
		}
	}
	return list
}

func executable(info fs.FileInfo) bool { return info.Mode().IsRegular() }

// systemVariables repairs a PATHEXT with which no program can be found; some
// hosts start servers with one.
func systemVariables(env []string) []string {
	if strings.Contains(strings.ToUpper(variable(env, "PATHEXT")), ".EXE") {
		return nil
	}
	return []string{"PATHEXT=" + defaultPathExt}
}

// loginShell is none: the desktop gives programs the user's whole environment.
func loginShell() string { return "" }

func loginPath(string) (string, error) { return "", errors.ErrUnsupported }
