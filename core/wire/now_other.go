//go:build !unix

package wire

// openNow would return a function that writes what a stream takes without waiting.
func openNow(any) func(b []byte) int { return nil }

// openReady would return a function that reports whether a stream has something to read.
func openReady(any) func() bool { return nil }
