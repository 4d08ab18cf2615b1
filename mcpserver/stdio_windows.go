package mcpserver

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// CaptureStdout takes standard output away from the process, for the protocol
// alone: it returns the file, and replaces os.Stdout and the process's standard
// handle, which children inherit, by standard error. Code that has kept the old
// handle, such as a C runtime, still reaches the client. Call it first thing in
// main, and once.
func CaptureStdout() (*os.File, error) {
	out := os.Stdout
	if err := replace(windows.STD_OUTPUT_HANDLE, out, os.Stderr); err != nil {
		return nil, fmt.Errorf("pointing standard output at standard error: %w", err)
	}
	os.Stdout = os.Stderr
	return out, nil
}

// CaptureStdin takes standard input away from the process, for the protocol
// alone: it returns the file, and replaces os.Stdin and the process's standard
// handle by the null device, so that no child can eat a message. Call it first
// thing in main, and once.
func CaptureStdin() (*os.File, error) {
	in := os.Stdin
	null, err := os.Open(os.DevNull)
	if err == nil {
		err = replace(windows.STD_INPUT_HANDLE, in, null)
	}
	if err != nil {
		return nil, fmt.Errorf("pointing standard input at the null device: %w", err)
	}
	os.Stdin = null
	return in, nil
}

// replace makes a standard handle that of by, and the old one private.
func replace(which uint32, old, by *os.File) error {
	// Fails for consoles of old Windows versions, which children share anyway.
	_ = windows.SetHandleInformation(windows.Handle(old.Fd()), windows.HANDLE_FLAG_INHERIT, 0)
	return windows.SetStdHandle(which, windows.Handle(by.Fd()))
}

// watchParent does nothing: Windows does not say who the parent is once it has
// ended, and gives its number to others.
func watchParent(context.Context, func()) {}
