package core

import (
	"encoding/binary"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
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
	return syscall.Close(f.fd)
}

// Folder opens the folder of that name; a link is an error.
func (f *Folder) Folder(name string) (*Folder, error) {
	fd, err := f.open(name, syscall.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &Folder{fd}, nil
}

// open opens a name for reading. O_NONBLOCK is for pipes: they do not wait then.
func (f *Folder) open(name string, flags int) (fd int, err error) {
	if strings.Contains(name, "/") || name == ".." {
		return -1, &fs.PathError{Op: "open", Path: name, Err: syscall.EINVAL}
	}
	flags |= syscall.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC
	err = again(func() (err error) {
		fd, err = syscall.Openat(f.fd, name, flags, 0)
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
			n, err = syscall.ReadDirent(f.fd, buf)
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

// typeOf translates the type that the kernel gives with a name. File systems
// that give none are asked by opening.
func (f *Folder) typeOf(name string, kind byte) fs.FileMode {
	switch kind {
	case syscall.DT_REG:
		return 0
	case syscall.DT_DIR:
		return fs.ModeDir
	case syscall.DT_LNK:
		return fs.ModeSymlink
	case syscall.DT_FIFO:
		return fs.ModeNamedPipe
	case syscall.DT_SOCK:
		return fs.ModeSocket
	case syscall.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case syscall.DT_BLK:
		return fs.ModeDevice
	}
	fd, err := f.open(name, 0)
	if err != nil {
		if err.(*fs.PathError).Err == syscall.ELOOP {
			return fs.ModeSymlink
		}
		return fs.ModeIrregular
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fs.ModeIrregular
	}
	return info.Mode().Type()
}

// ReadFile reads the regular file of that name whole, into buf if that is large
// enough, and returns its content. A link is an error; a file of more than limit
// bytes is not read, and the error is [ErrTooBig].
func (f *Folder) ReadFile(name string, buf []byte, limit int64) ([]byte, error) {
	fd, err := f.open(name, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := again(func() error { return syscall.Fstat(fd, &st) }); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EINVAL}
	}
	if st.Size > limit {
		return nil, ErrTooBig
	}
	return readInto(fdReader(fd), buf, st.Size, limit)
}

type fdReader int

func (fd fdReader) Read(p []byte) (n int, err error) {
	err = again(func() (err error) {
		n, err = syscall.Read(int(fd), p)
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
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}
