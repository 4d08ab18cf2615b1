//go:build unix

package core

import (
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

// adopt gives f owner and mode of the file it is to replace.
func adopt(f *os.File, old fs.FileInfo) error {
	if st, ok := old.Sys().(*syscall.Stat_t); ok {
		now, err := f.Stat()
		if err != nil {
			return err
		}
		if mine, ok := now.Sys().(*syscall.Stat_t); ok && (mine.Uid != st.Uid || mine.Gid != st.Gid) {
			if err := f.Chown(int(st.Uid), int(st.Gid)); err != nil {
				return err
			}
		}
	}
	// After the owner, since changing that clears the set-user-id bit.
	return f.Chmod(old.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky))
}
