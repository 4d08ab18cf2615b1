//go:build !linux

package proc

import (
	"errors"
	"os"
	"runtime"
)

// CanConfine reports why this system cannot confine commands; nil if it can.
func CanConfine() error {
	return errors.New("commands cannot be confined on " + runtime.GOOS)
}

func systemPaths() []string { return nil }

func (c *Confinement) start(string, []string, *os.ProcAttr) (*os.Process, error) {
	return nil, CanConfine()
}
