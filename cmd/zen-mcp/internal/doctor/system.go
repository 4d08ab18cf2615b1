package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"zenmcp/configs"
	"zenmcp/core/proc"
)

// commands says where programs are looked for: as this program was started, and as
// a desktop would start it.
func (e *exam) commands(context.Context) {
	used := proc.SearchPath()
	e.fact("PATH", "%s", used.Used)
	if used.Shell != "" && used.Err == nil {
		e.fact("started with", "%s; the rest is the login shell's, %s", used.Inherited, used.Shell)
	}
	desktop := proc.DesktopPath()
	if desktop.Used != used.Used {
		e.fact("from a desktop", "%s", desktop.Used)
	}
	for _, r := range []proc.PathReport{used, desktop} {
		if r.Err != nil {
			e.find("path-shell", r.Err)
		}
	}
}

// desktop warns of a program that is found here, and not by a server that a desktop
// starts. at is the place that names it.
func (e *exam) desktop(program string, at *configs.Problem) {
	path := proc.DesktopPath().Used
	if _, err := proc.LookPath(program, "PATH="+path); err != nil {
		at.Err = err
		e.find("command-desktop", at)
	}
}

// state looks at the folder for what outlives a call, which need not exist yet.
func (e *exam) state(context.Context) {
	if e.places == nil {
		return
	}
	dir := e.places.State
	if dir == "" {
		e.find("state-unusable", errors.New("the user has no home directory, so there is no state directory"))
		return
	}
	there := dir
	info, err := os.Stat(there)
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(there) != there {
		there = filepath.Dir(there)
		info, err = os.Stat(there)
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%q is not a folder", there)
	}
	if err == nil {
		err = writable(there)
	}
	switch {
	case err != nil:
		e.find("state-unusable", &configs.Problem{File: dir, Err: err})
	case there != dir:
		e.fact("directory", "%s, which is made when it is needed", dir)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		e.find("state-readable", &configs.Problem{File: dir, Err: fmt.Errorf("others on this machine may look into it: its mode is %#o", info.Mode().Perm())})
	default:
		e.fact("directory", "%s", dir)
	}
}
