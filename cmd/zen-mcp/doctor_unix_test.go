//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"zenmcp/cmd/zen-mcp/internal/doctor"
)

// A broken home is an archive in testdata/doctor: files below an empty folder, and
// before them what to do, line by line:
//
//	doctor ARGS…       what is run; `doctor` alone without this line
//	env NAME=VALUE     changes the environment
//	cd DIR             runs it there instead of in the project
//	chmod MODE PATH    changes a mode, which is 0600 otherwise
//	tools N            makes N user tools
//	grant PATH         has somebody signed in, long ago, to an MCP server at $URL
//	want CODE [PLACE]  a finding; all of them, and no others
//
// $TOP is the folder, $ZEN the program itself, $URL a web server.
type broken struct {
	top   string
	args  []string
	env   []string
	dir   string
	wants []string
}

func (b *broken) set(t *testing.T, line string, fill *strings.Replacer) {
	t.Helper()
	fields := strings.Fields(line)
	for i := range fields {
		fields[i] = fill.Replace(fields[i])
	}
	switch fields[0] {
	case "doctor":
		b.args = fields[1:]
	case "env":
		b.env = append(b.env, fields[1])
	case "cd":
		b.dir = fields[1]
	case "chmod":
		mode, err := strconv.ParseUint(fields[1], 8, 32)
		if err != nil || os.Chmod(filepath.Join(b.top, fields[2]), os.FileMode(mode)) != nil {
			t.Fatalf("%s: %v", line, err)
		}
	case "tools":
		n, _ := strconv.Atoi(fields[1])
		for i := range n {
			put(t, filepath.Join(b.top, "home/.ai-zen/tools", fmt.Sprintf("t%d.yaml", i)), fmt.Sprintf("function: {name: t%d}\ncommand: [echo]\n", i))
		}
	case "grant":
		address := fill.Replace("$URL") + fields[1]
		name := fmt.Sprintf("%x", sha256.Sum256([]byte(address)))[:24] + ".json"
		put(t, filepath.Join(b.top, "home/.ai-zen/mcp-oauth", name), fmt.Sprintf(
			`{"server": %q, "clientId": "c", "token": {"access_token": "secret-word", "refresh_token": "secret-word", "expiry": "2020-01-01T00:00:00Z"}}`, address))
	case "want":
		b.wants = append(b.wants, strings.Join(fields[1:], " "))
	default:
		t.Fatalf("unknown line %q", line)
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// unpack makes the home of an archive, in a folder whose name is not plain ASCII.
func unpack(t *testing.T, file, url string) *broken {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("zen-mcp") // which testscript.Main has put there
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	top = filepath.Join(top, "a höme with blanks")
	b := &broken{top: top, dir: "project", env: []string{
		"HOME=" + filepath.Join(top, "home"), "XDG_STATE_HOME=" + filepath.Join(top, "state"), "SHELL=/bin/sh",
		"PATH=" + filepath.Dir(program) + ":/usr/bin:/bin",
	}}
	fill := strings.NewReplacer("$TOP", top, "$ZEN", program, "$URL", url)
	for _, dir := range []string{"home/.ai-zen", "project"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range archive.Files {
		put(t, filepath.Join(top, f.Name), fill.Replace(string(f.Data)))
	}
	for line := range strings.Lines(string(archive.Comment)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			b.set(t, line, fill)
		}
	}
	return b
}

// run runs doctor in the broken home and returns what it prints, and its exit code.
func (b *broken) run(t *testing.T, more ...string) (out string, exit int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "zen-mcp", slices.Concat([]string{"doctor"}, b.args, more)...)
	cmd.Env = b.env
	cmd.Dir = filepath.Join(b.top, b.dir)
	if filepath.IsAbs(b.dir) {
		cmd.Dir = b.dir
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if stderr.Len() > 0 {
		t.Errorf("on stderr: %s", &stderr)
	}
	return stdout.String(), cmd.ProcessState.ExitCode()
}

// service is a web server with an answer for each path.
func service(t *testing.T) string {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok/models", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer right-key-1" {
			http.Error(w, `{"error": {"message": "no"}}`, http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object": "list", "data": []}`)
	})
	mux.HandleFunc("/refuses/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) })
	mux.HandleFunc("/fails/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// snapshot lists all files with their contents, to see that nothing changes.
func snapshot(t *testing.T, top string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `cd "$0" && find . | sort && find . -type f -exec cksum {} + | sort`, top).CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	return string(out)
}

// TestDoctor finds in each broken home what is wrong there, and nothing else, and
// changes nothing. Every code is found in one of them.
func TestDoctor(t *testing.T) {
	t.Parallel()
	url := service(t)
	files, err := filepath.Glob("testdata/doctor/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d homes, %v", len(files), err)
	}
	var all []string
	for _, file := range files {
		b := unpack(t, file, url)
		for _, want := range b.wants {
			id, _, _ := strings.Cut(want, " ")
			all = append(all, id)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			b.check(t)
		})
	}
	for _, c := range doctor.Codes() {
		if !slices.Contains(all, c.ID) {
			t.Errorf("no home shows %s", c.ID)
		}
	}
}

func (b *broken) check(t *testing.T) {
	before := snapshot(t, b.top)
	out, exit := b.run(t, "--json")
	var report doctor.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got []string
	for _, c := range report.Checks {
		for _, f := range c.Findings {
			place := strings.TrimPrefix(f.Place(), b.top+string(filepath.Separator))
			got = append(got, strings.TrimSpace(f.Code+" "+place))
		}
	}
	slices.Sort(got)
	slices.Sort(b.wants)
	if !slices.Equal(got, b.wants) {
		t.Errorf("found\n\t%s\nwant\n\t%s\n%s", strings.Join(got, "\n\t"), strings.Join(b.wants, "\n\t"), out)
	}
	wantExit := 0
	if report.Errors > 0 {
		wantExit = 1
	}
	if exit != wantExit {
		t.Errorf("exit %d with %d errors", exit, report.Errors)
	}
	if strings.Contains(out, "secret-word") {
		t.Errorf("a secret is in the report: %s", out)
	}
	if after := snapshot(t, b.top); after != before {
		t.Errorf("doctor wrote:\n%s\nwas\n%s", after, before)
	}
}
