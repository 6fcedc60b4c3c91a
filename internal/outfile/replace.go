// Package outfile writes files that others may read meanwhile, or keep open: whole ones, or none.
package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Replace has a file, or what it leads to by links, have new content: all of it or what it had,
// also where the disk is full, the program is ended or the power fails. It keeps the file's mode.
// What is no regular file, a name of one that is open, such as /dev/stdout, or in a folder that
// takes no other is written in place.
func Replace(file string, content []byte) error {
	file, info, inPlace := resolve(file)
	if inPlace {
		return os.WriteFile(file, content, 0o666)
	}
	mode := fs.FileMode(0o666)
	if info != nil {
		mode = info.Mode().Perm()
	}
	part, err := write(file, content, mode)
	if refused(info, err) {
		return os.WriteFile(file, content, 0o666)
	}
	if err == nil && info != nil {
		err = os.Chmod(part, mode) // what the umask has taken
	}
	if err == nil {
		err = os.Rename(part, file)
	}
	if err != nil {
		_ = os.Remove(part) // the first error is the one to report
	}
	return err
}

// Check tells what Replace would fail by, as far as that can be known before, and changes nothing.
func Check(file string) error {
	file, info, inPlace := resolve(file)
	switch {
	case info != nil && info.IsDir():
		return &fs.PathError{Op: "open", Path: file, Err: syscall.EISDIR}
	case inPlace:
		return nil
	}
	part, err := write(file, nil, 0o600)
	switch {
	case err == nil:
		return os.Remove(part)
	case refused(info, err):
		return writable(file)
	}
	return err
}

func writable(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// refused reports whether the folder of a file that is there takes no other file.
func refused(info fs.FileInfo, err error) bool {
	return info != nil && errors.Is(err, fs.ErrPermission)
}

// resolve follows links to what is to be written: a link that were replaced would be gone. info is
// of what is there already, if anything is.
func resolve(file string) (target string, info fs.FileInfo, inPlace bool) {
	info, err := os.Stat(file)
	if err == nil {
		whole, err := filepath.Abs(file)
		open := err == nil && (strings.HasPrefix(whole, "/dev/") || strings.HasPrefix(whole, "/proc/"))
		if open || !info.Mode().IsRegular() {
			return file, info, true
		}
	} else {
		info = nil
	}
	target, err = Follow(file)
	if err != nil {
		return file, info, true // the write says why
	}
	return target, info, false
}

// write makes a file beside the one that is to be replaced, and has the disk keep it. It is the
// caller's own: others may write the same file, on other hosts too, and what users have beside it
// stays. After an error nothing is left.
func write(file string, content []byte, mode fs.FileMode) (part string, err error) {
	part = fmt.Sprintf("%s.%016x.part", file, rand.Uint64())
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return part, err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(part) // the first error is the one to report
	}
	return part, err
}
