//go:build !linux

package proc

import "os"

// awaitEnd waits for a child, with a thread that blocks.
func awaitEnd(p *os.Process) *os.ProcessState {
	state, _ := p.Wait() // fails only for a process that somebody else waited for
	return state
}

// onlyZombies is not asked here: init waits for orphans.
func onlyZombies(int) bool { return false }
