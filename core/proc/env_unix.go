//go:build unix

package proc

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func extensions(string, []string) []string { return []string{""} }

func executable(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }

func systemVariables([]string) []string { return nil }

// loginLimit is how long a login shell may take to tell its PATH.
const loginLimit = 3 * time.Second

// loginShell is the user's shell. A bare environment may not name it.
func loginShell() string {
	if name := os.Getenv("SHELL"); filepath.IsAbs(name) {
		return name
	}
	if users, err := os.ReadFile("/etc/passwd"); err == nil {
		id := strconv.Itoa(os.Getuid())
		for line := range strings.Lines(string(users)) {
			if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 7 && f[2] == id && filepath.IsAbs(f[6]) {
				return f[6]
			}
		}
	}
	if runtime.GOOS == "darwin" {
		return "/bin/zsh"
	}
	return "/bin/sh"
}

// loginPath asks a shell for its PATH. People set it in the files of interactive
// shells as well as in those of login shells; where the former do not come to
// an end, the latter have to do.
func loginPath(shell string) (string, error) {
	path, err := askShell(shell, "-l", "-i")
	if err != nil {
		path, err = askShell(shell, "-l")
	}
	return path, err
}

// askShell reads PATH from the output of env, which means the same in every
// shell. What the user's own files print comes before the mark.
func askShell(shell string, options ...string) (string, error) {
	const mark = "zen-mcp-environment"
	out, in, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer out.Close()
	defer in.Close()
	args := append(append([]string{shell}, options...), "-c", "echo; echo "+mark+"; /usr/bin/env")
	p, err := Command{Args: args, Stdout: in}.start(os.Environ())
	if err != nil {
		return "", err
	}
	go p.wait()
	// At once: an interactive shell ignores the polite request.
	defer func() { p.group.kill(p.ended()) }()
	in.Close()
	if err := out.SetReadDeadline(time.Now().Add(loginLimit)); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(out)
	for marked := false; lines.Scan(); {
		if path, ok := strings.CutPrefix(lines.Text(), "PATH="); ok && marked {
			return path, nil
		}
		marked = marked || lines.Text() == mark
	}
	if errors.Is(lines.Err(), os.ErrDeadlineExceeded) {
		return "", errors.New("no answer within " + loginLimit.String())
	}
	return "", errors.New("no answer")
}
