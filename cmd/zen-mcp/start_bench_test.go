package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkStart is from the start of the program, as README builds it, to the answer
// to the first tools/list: without configuration, and with 200 skills, 20 MCP servers
// and 20 sub-agents. On Linux MB is the memory that is resident then.
func BenchmarkStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "zen-mcp")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for name, files := range map[string]map[string]string{"none": nil, "many": manyFiles()} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			for name, text := range files {
				path := filepath.Join(dir, ".ai-zen", name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			resident := 0.0
			for b.Loop() {
				resident += start(b, program, dir)
			}
			if resident > 0 {
				b.ReportMetric(resident/float64(b.N), "MB")
			}
		})
	}
}

// manyFiles is a home that is full.
func manyFiles() map[string]string {
	files := map[string]string{
		"config.json": `{"endpoints": [{"id": "e", "baseUrl": "http://127.0.0.1:1/v1", "apiKey": "x"}],
			"models": [{"id": "m", "endpointId": "e"}], "defaultModel": "m"}`,
	}
	for i := range 200 {
		name := fmt.Sprintf("skill-%03d", i)
		files["skills/"+name+"/SKILL.md"] = fmt.Sprintf("---\nname: %s\ndescription: Does thing number %d, when it is needed.\n---\n%s",
			name, i, strings.Repeat("A line of instructions.\n", 100))
	}
	var servers []string
	for i := range 20 {
		servers = append(servers, fmt.Sprintf(`"server-%d": {"command": "program", "args": ["%d"]}`, i, i))
		files[fmt.Sprintf("sub-agents/helper-%d.json", i)] = fmt.Sprintf(`{
			"function": {"name": "helper_%d", "description": "Does tasks of kind %d.", "parameters": {
				"type": "object", "properties": {"task": {"type": "string", "description": "The whole task"}}, "required": ["task"]}},
			"messages": [{"role": "system", "content": "You carry out one task."}, {"role": "user", "content": "{{ task }}"}],
			"permissions": {"tools": {"allow": ["readFile"]}}}`, i, i)
	}
	files["mcp.json"] = `{"mcpServers": {` + strings.Join(servers, ", ") + `}}`
	return files
}

// start starts the program in dir, which is also the user's home, and waits for the
// list of its tools. It returns the memory in MB, 0 where the system does not tell.
func start(b *testing.B, program, dir string) (resident float64) {
	cmd := exec.Command(program, "serve")
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "USERPROFILE=" + dir, "PATH=" + os.Getenv("PATH"), "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	answers := bufio.NewReader(out)
	ask := func(lines, want string) {
		fmt.Fprintln(in, lines)
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			b.Fatalf("%s: %v", line, err)
		}
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`, `"serverInfo"`)
	ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `"tools":[`)
	b.StopTimer()
	defer b.StartTimer()
	if runtime.GOOS == "linux" {
		resident = residentMB(b, cmd.Process.Pid)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return resident
}

func residentMB(b *testing.B, pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	kB, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
	if err != nil {
		b.Fatal(err)
	}
	return float64(kB) / 1024
}
