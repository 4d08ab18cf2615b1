package main

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"zenmcp/core/proc"
)

// browserSignIn returns a function that shows an address to the person at the
// terminal, and opens it in a browser where that can be done.
func browserSignIn(w io.Writer) func(ctx context.Context, server, address string) error {
	return func(_ context.Context, server, address string) error {
		fmt.Fprintf(w, "To sign in to the MCP server %q, open this address in a browser on this machine:\n\n  %s\n\n", server, address)
		opener := []string{"xdg-open", address}
		switch runtime.GOOS {
		case "darwin":
			opener[0] = "open"
		case "windows":
			opener = []string{"rundll32", "url.dll,FileProtocolHandler", address}
		}
		var set proc.Set
		if _, err := set.Start(proc.Command{Args: opener, Detached: true}); err != nil {
			fmt.Fprintln(w, "(no browser could be started from here)")
		}
		return nil
	}
}
