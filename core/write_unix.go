//go:build unix

package core

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hardLinks is how many names a file has.
func hardLinks(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// owner is whose a file is.
func owner(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// crosses reports whether a rename failed because it leads to another file system.
func crosses(err error) bool { return errors.Is(err, syscall.EXDEV) }

// adopt gives f owner and mode of the file it is to replace.
func adopt(f *os.File, old fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	uid, gid, ok := owner(old)
	if myUID, myGID, _ := owner(now); ok && (myUID != uid || myGID != gid) {
		if err := f.Chown(uid, gid); err != nil {
			return err
		}
	}
	// After the owner, since changing that clears the set-user-id bit.
	return f.Chmod(old.Mode() & settable)
}
