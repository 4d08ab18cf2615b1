package core

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A pathError is an error about a path in words for a model; err is the system's.
type pathError struct {
	text string
	err  error
}

func (e *pathError) Error() string { return e.text }
func (e *pathError) Unwrap() error { return e.err }

// named quotes a path for a message. Nobody needs all of an absurd one.
func named(given string) string { return fmt.Sprintf("%q", Clip(given, 500)) }

// refuse is an error about p that is ours and not the system's.
func (p Path) refuse(format string, args ...any) error {
	return &pathError{text: named(p.Given) + " " + fmt.Sprintf(format, args...)}
}

// directory is the error for a path that ends in a slash where a file is wanted.
func (p Path) directory() error {
	return &pathError{named(p.Given) + " is the name of a directory, and a file is needed; leave the slash at the end off", syscall.EISDIR}
}

// explain words an error of the system for a model: the path as it was given,
// the system's reason, and the nearest name where one is missing.
func (p Path) explain(err error) error {
	var known *pathError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case escapes(err):
		return p.scope.roots.outside(p.Given)
	case errors.Is(err, fs.ErrNotExist):
		return &pathError{named(p.Given) + ": no such file or directory" + p.nearest(), err}
	case errors.Is(err, syscall.ENOTDIR):
		bare := p
		bare.slash = false
		if _, e := at(bare, true, tree.Stat); e == nil {
			return &pathError{named(p.Given) + ": is not a directory", err}
		}
		return &pathError{named(p.Given) + ": a part of the path is a file, not a directory", err}
	}
	return &pathError{named(p.Given) + ": " + reason(err), err}
}

// escapes recognises os.Root's refusal, which the os package does not export.
func escapes(err error) bool {
	return err != nil && reason(err) == "path escapes from parent"
}

// reason is the system's own word, without the operations and the paths that the
// os package puts around it.
func reason(err error) string {
	for {
		var pe *fs.PathError
		var le *os.LinkError
		var se *os.SyscallError
		switch {
		case errors.As(err, &pe):
			err = pe.Err
		case errors.As(err, &le):
			err = le.Err
		case errors.As(err, &se):
			err = se.Err
		default:
			return err.Error()
		}
	}
}

// irregular is the error for anything that is no regular file.
func irregular(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errIsDir
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("is a named pipe, not a regular file")
	case mode&fs.ModeSocket != 0:
		return errors.New("is a socket, not a regular file")
	default:
		return errors.New("is a device, not a regular file")
	}
}

var errIsDir = fmt.Errorf("%w, not a file", syscall.EISDIR)

// nearest says which part of a path is missing, if it is not the last, and
// suggests the name in its folder that is most like it.
func (p Path) nearest() string {
	const enough = 2000 // names to look at
	for missing, first := p, true; missing.rel != "."; missing, first = missing.Parent(), false {
		folder := missing.Parent()
		f, err := at(folder, true, openDir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return ""
		}
		names, _ := f.Readdirnames(enough)
		f.Close()
		text := ""
		if !first {
			text = fmt.Sprintf("; there is no %s", named(missing.Given))
		}
		if n := Nearest(filepath.Base(missing.rel), names); n != "" {
			text += fmt.Sprintf("; did you mean %q?", filepath.Join(folder.Given, n))
		}
		return text
	}
	return ""
}
