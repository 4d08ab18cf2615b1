package main

import (
	"os"
	"runtime/debug"
	"time"
)

const (
	// startHeap is GOGC until the start of a server is over, and in commands that are
	// over soon: the heap grows to 32 MB before it is collected. Most of what a start
	// reads stays, and with many skills looking for the rest takes a fifth of its time.
	startHeap = 800
	// startOver is when there is garbage to collect: the first answers are given, and
	// the watch has read its files.
	startOver = 2 * watchAfter
)

// growHeap puts collecting off, unless the user has set GOGC.
func growHeap() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(startHeap)
	}
}

// shrinkHeap gives back what only the start needed, when that is over.
func shrinkHeap() {
	time.AfterFunc(startOver, func() {
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(100)
		}
		debug.FreeOSMemory()
	})
}
