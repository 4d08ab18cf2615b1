//go:build unix

package doctor

import (
	"os"
	"syscall"
)

// writable reports why nothing can be made in a folder, without trying.
func writable(dir string) error {
	const write, search = 2, 1
	if err := syscall.Access(dir, write|search); err != nil {
		return &os.PathError{Op: "write", Path: dir, Err: err}
	}
	return nil
}
