//go:build unix

package mcpserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"zenmcp/core/wire"
)

// childRole makes the test binary a server, or the parent of one: what is about
// the descriptors of a process cannot be tested within this one.
const childRole = "ZEN_STDIO_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(childRole)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := runChild(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runChild(role string) error {
	time.AfterFunc(time.Minute, func() { os.Exit(3) }) // whatever fails, nothing stays behind
	if role == "parent" || role == "parent of poll" {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childRole+"="+map[string]string{"parent": "serve", "parent of poll": "poll"}[role])
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		return cmd.Run()
	}
	out, err := CaptureStdout()
	if err != nil {
		return err
	}
	in, err := CaptureStdin()
	if err != nil {
		return err
	}
	switch role {
	case "noise":
		makeNoise()
	case "deadline":
		fmt.Fprintf(out, "in: %v, out: %v\n", in.SetReadDeadline(time.Now().Add(time.Hour)), out.SetWriteDeadline(time.Time{}))
		return nil
	case "poll":
		parent := os.Getppid() // before it is told that it may be killed
		fmt.Fprintln(out, "ready")
		fmt.Fprintln(out, "gone:", pollParent(context.Background(), parent))
		return nil
	}
	hang := func(context.Context) { select {} }
	stdio := OpenStdio(context.Background(), &wire.Transport{In: in, Out: out})
	return stdio.Serve(stdioServer(map[string]func(context.Context){"hang": hang}))
}

// makeNoise does what must neither reach the client nor eat its messages.
func makeNoise() {
	fmt.Println("noise of a print")
	syscall.Write(1, []byte("noise of a library\n"))
	cmd := exec.Command("sh", "-c", "echo noise of a child; cat")
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	if err := cmd.Run(); err != nil {
		fmt.Println("noise: child:", err)
	}
}

// child prepares a child process in a role, and kills it at the end of the test.
func child(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role)
	return cmd
}

func TestStdoutIsForTheProtocol(t *testing.T) {
	t.Parallel()
	cmd := child(t, "noise")
	cmd.Stdin = strings.NewReader(initialize + "\n" + toolCall(1, "ok") + "\n")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"id":0,"result"`) || !strings.Contains(lines[1], `"id":1,"result"`) {
		t.Errorf("standard output: %s", out)
	}
	if want := "noise of a print\nnoise of a library\nnoise of a child\n"; stderr.String() != want {
		t.Errorf("standard error: %q, want %q", stderr.String(), want)
	}
}

func TestStdinKinds(t *testing.T) {
	t.Parallel()
	lines := initialize + "\n" + toolCall(1, "ok") + "\n"
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path    string
		answers int
	}{{path, 2}, {os.DevNull, 0}} {
		in, err := os.Open(test.path)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		cmd := child(t, "serve")
		cmd.Stdin = in
		out, err := cmd.Output()
		if err != nil || strings.Count(string(out), "\n") != test.answers {
			t.Errorf("%s: %v, %s", test.path, err, out)
		}
	}
}

// The runtime's poller serves the pipes, and only it knows deadlines.
func TestPipesAreNonBlocking(t *testing.T) {
	t.Parallel()
	cmd := child(t, "deadline")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if want := "in: <nil>, out: <nil>\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}

// Standard error keeps its mode when it is the same pipe as standard output.
func TestSharedPipeStaysBlocking(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := child(t, "deadline")
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if out, _ := io.ReadAll(r); !strings.Contains(string(out), os.ErrNoDeadline.Error()) {
		t.Errorf("got %s", out)
	}
}

func TestExitsAfterEOFWhateverRuns(t *testing.T) {
	t.Parallel()
	cmd := child(t, "serve")
	in, out := startChild(t, cmd)
	io.WriteString(in, initialize+"\n"+toolCall(1, "hang")+"\n"+toolCall(2, "ok")+"\n")
	for range 2 {
		if _, err := out.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 3*time.Second { // a second, on a machine that is not busy
		t.Errorf("took %v", took)
	}
}

// The end of the input does not come, since this process keeps the writing end.
func TestEndsWithItsParent(t *testing.T) {
	t.Parallel()
	for role, first := range map[string]string{"parent": initialize, "parent of poll": ""} {
		cmd := child(t, role)
		in, out := startChild(t, cmd)
		io.WriteString(in, first+"\n")
		if line, err := out.ReadString('\n'); err != nil {
			t.Fatalf("%s: %q, %v", role, line, err)
		}
		cmd.Process.Kill()
		rest, err := io.ReadAll(out) // ends with the last process that holds the pipe
		if err != nil {
			t.Errorf("%s: %v", role, err)
		}
		if want := map[string]string{"parent of poll": "gone: true\n"}[role]; string(rest) != want {
			t.Errorf("%s: got %q, want %q", role, rest, want)
		}
		in.Close()
		cmd.Wait()
	}
}

func TestSurvivesClosedStderr(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd := child(t, "noise")
	cmd.Stdin = strings.NewReader(initialize + "\n")
	cmd.Stderr = w
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"id":0,"result"`) {
		t.Errorf("%v: %s", err, out)
	}
}

// startChild starts cmd with pipes that this process holds.
func startChild(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, *bufio.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outR.Close() })
	outR.SetReadDeadline(time.Now().Add(time.Minute))
	cmd.Stdout, cmd.Stderr = outW, os.Stderr
	err = cmd.Start()
	outW.Close()
	if err != nil {
		t.Fatal(err)
	}
	return in, bufio.NewReader(outR)
}
