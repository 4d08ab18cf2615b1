package proc

import (
	"os"
	"testing"
	"time"
)

func TestOnlyZombies(t *testing.T) {
	t.Parallel()
	var set Set
	p, r := start(t, &set, Command{Shell: "echo x; sleep 300"})
	firstLine(t, r)
	if onlyZombies(p.Pid()) {
		t.Error("a running process is no zombie")
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	zombie, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "exit"}, &os.ProcAttr{Sys: Command{}.attributes()})
	if err != nil {
		t.Fatal(err)
	}
	defer zombie.Wait()
	for deadline := time.Now().Add(10 * time.Second); !onlyZombies(zombie.Pid); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("an ended process that nobody waited for is a zombie")
		}
	}
}

// Nothing must be left of many processes: no descriptor, no thread that waits.
func TestDescriptorsAreClosed(t *testing.T) {
	count := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	run := func() {
		var set Set
		p, r := start(t, &set, Command{Shell: "exit 3"})
		readAll(t, r)
		r.Close()
		if code := p.Exit().Code; code != 3 {
			t.Errorf("exit code %d", code)
		}
	}
	run()
	before := count()
	for range 50 {
		run()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
