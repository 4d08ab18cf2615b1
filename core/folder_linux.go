package core

import (
	"encoding/binary"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// A Folder is an open folder. Its methods may be called at the same time, except
// for Read, and none after Close.
type Folder struct{ fd int }

func openFolder(t tree, name string) (*Folder, error) {
	f, err := openDir(t, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return (&Folder{int(f.Fd())}).Folder(".")
}

// Close releases the folder.
func (f *Folder) Close() error {
	if f == nil {
		return nil
	}
	return unix.Close(f.fd)
}

// Folder opens the folder of that name; a link is an error.
func (f *Folder) Folder(name string) (*Folder, error) {
	fd, err := f.open(name, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &Folder{fd}, nil
}

// open opens a name for reading. O_NONBLOCK is for pipes: they do not wait then.
func (f *Folder) open(name string, flags int) (fd int, err error) {
	if err := single(name); err != nil {
		return -1, err
	}
	flags |= unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	err = again(func() (err error) {
		fd, err = unix.Openat(f.fd, name, flags, 0)
		return err
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// Read calls visit with the name and type of everything in the folder, in no
// order, until visit returns false. The names of one system call share memory. buf
// is for the system to fill, 4 KB at least.
//
// The kernel's records are read here because os.File.ReadDir allocates two
// objects for each of them, which is half of the time of a walk.
func (f *Folder) Read(buf []byte, visit func(name string, typ fs.FileMode) bool) error {
	const reclen, typ, text = 16, 18, 19 // offsets in linux_dirent64
	for {
		n := 0
		err := again(func() (err error) {
			n, err = unix.ReadDirent(f.fd, buf)
			return err
		})
		if err != nil || n <= 0 {
			return err
		}
		records := string(buf[:n])
		for at := 0; at < n; {
			end := at + int(binary.NativeEndian.Uint16(buf[at+reclen:]))
			name, _, _ := strings.Cut(records[at+text:end], "\x00")
			kind := buf[at+typ]
			at = end
			if name != "." && name != ".." && !visit(name, f.typeOf(name, kind)) {
				return nil
			}
		}
	}
}

// typeOf translates the type that the kernel gives with a name. Where it gives
// none, the file is asked.
func (f *Folder) typeOf(name string, kind byte) fs.FileMode {
	if kind == unix.DT_UNKNOWN {
		var st unix.Stat_t
		if again(func() error { return unix.Fstatat(f.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }) == nil {
			kind = byte(st.Mode & unix.S_IFMT >> 12) // which is how the two are related
		}
	}
	switch kind {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_FIFO:
		return fs.ModeNamedPipe
	case unix.DT_SOCK:
		return fs.ModeSocket
	case unix.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.DT_BLK:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}

// Remove removes the file, link or empty folder of that name.
func (f *Folder) Remove(name string) error {
	if err := single(name); err != nil {
		return err
	}
	err := again(func() error { return unix.Unlinkat(f.fd, name, 0) })
	if err == unix.EISDIR {
		err = again(func() error { return unix.Unlinkat(f.fd, name, unix.AT_REMOVEDIR) })
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

// ReadFile reads the regular file of that name whole, into buf if that is large
// enough, and returns its content. A link is an error; a file of more than limit
// bytes is not read, and the error is [ErrTooBig].
func (f *Folder) ReadFile(name string, buf []byte, limit int64) ([]byte, error) {
	file, size, err := f.openRegular(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size > limit {
		return nil, ErrTooBig
	}
	return readInto(file, buf, size, limit)
}

// Open opens the regular file of that name for reading, and tells its size in bytes.
// A link is an error.
func (f *Folder) Open(name string) (file io.ReadCloser, size int64, err error) {
	return f.openRegular(name)
}

func (f *Folder) openRegular(name string) (fdReader, int64, error) {
	fd, err := f.open(name, 0)
	if err != nil {
		return 0, 0, err
	}
	var st unix.Stat_t
	if err = again(func() error { return unix.Fstat(fd, &st) }); err != nil {
		err = &fs.PathError{Op: "stat", Path: name, Err: err}
	} else if st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = &fs.PathError{Op: "read", Path: name, Err: unix.EINVAL}
	}
	if err != nil {
		unix.Close(fd)
		return 0, 0, err
	}
	return fdReader(fd), st.Size, nil
}

// An fdReader is a file as the kernel has it: os.File is made for more, and costs more
// than the reading of a small one.
type fdReader int

func (fd fdReader) Close() error { return unix.Close(int(fd)) }

func (fd fdReader) Read(p []byte) (n int, err error) {
	err = again(func() (err error) {
		n, err = unix.Read(int(fd), p)
		return err
	})
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

// again repeats a system call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
