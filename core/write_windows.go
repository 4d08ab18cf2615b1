package core

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hardLinks is not known from a FileInfo here, and a rename over one name is what
// programs on Windows do too.
func hardLinks(fs.FileInfo) uint64 { return 1 }

// owner is not a number here.
func owner(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }

// crosses reports whether a rename failed because it leads to another disk:
// ERROR_NOT_SAME_DEVICE.
func crosses(err error) bool { return errors.Is(err, syscall.Errno(17)) }

// adopt keeps the read-only attribute, all that a mode is here.
func adopt(f *os.File, old fs.FileInfo) error { return os.Chmod(f.Name(), old.Mode()) }
