package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/rawlane/rawlane/internal/filelink"
)

// WriteFile replaces the file that a flag names: all of the content or none, also where the power
// fails.
func WriteFile(flag, file string, content []byte) error {
	if err := NotStandard("--"+flag, file); err != nil {
		return err
	}
	return fileError(flag, file, replaceFile(file, content))
}

// CheckFile tells before a long run that WriteFile could not write the file, and changes nothing
// there. "" is no file.
func CheckFile(flag, file string) error {
	if file == "" {
		return nil
	}
	if err := NotStandard("--"+flag, file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		return fileError(flag, file, syscall.EISDIR)
	}
	target, inPlace := resolve(file)
	if inPlace {
		return nil
	}
	part, err := writePart(target, nil)
	if err == nil {
		err = os.Remove(part)
	}
	return fileError(flag, file, err)
}

// NotStandard refuses "-" for a file that is written: it would be a file of that name, where
// standard output is meant, which has the verb's text.
func NotStandard(what, file string) error {
	if file != "-" {
		return nil
	}
	return Misuse("%s -: want the name of a file (standard output has the text; a file called - is ./-)", what)
}

// fileError says which file of which flag could not be written, and what it takes.
func fileError(flag, file string, err error) error {
	if err == nil {
		return nil
	}
	var where *fs.PathError
	if errors.As(err, &where) {
		err = where.Err
	}
	return fmt.Errorf("--%s %s: %w (want a file in a folder that is there and that you may write to)",
		flag, file, err)
}

// FolderError adds to why nothing can be made in a folder which variable names that, "" for that of
// temporary files, and what it takes.
func FolderError(variable string, err error) error {
	if variable == "" {
		if variable = "TMPDIR"; runtime.GOOS == "windows" {
			variable = "TMP"
		}
	}
	return fmt.Errorf("%w (want %s to name a folder that is there and that you may write to)", err, variable)
}

// writePart makes a file beside the one that is to be replaced, and has the disk keep it. It is the
// caller's own: others may write the same file, on other hosts too, and what users have beside it
// stays. After an error nothing is left.
func writePart(file string, content []byte) (part string, err error) {
	part = fmt.Sprintf("%s.%016x.part", file, rand.Uint64())
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
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

// resolve follows links to what is to be written: a link that were replaced would be gone. What is
// no regular file, or a name of one that is open, such as /dev/stdout, is written in place.
func resolve(file string) (target string, inPlace bool) {
	if info, err := os.Stat(file); err == nil { // else it is not there yet
		if !info.Mode().IsRegular() {
			return file, true
		}
		whole, err := filepath.Abs(file)
		if err == nil && (strings.HasPrefix(whole, "/dev/") || strings.HasPrefix(whole, "/proc/")) {
			return file, true
		}
	}
	target, err := filelink.Follow(file)
	if err != nil {
		return file, true // the write says why
	}
	return target, false
}

// replaceFile writes beside the file and then renames, unless it is written in place.
func replaceFile(file string, content []byte) error {
	file, inPlace := resolve(file)
	if inPlace {
		return os.WriteFile(file, content, 0o666)
	}
	part, err := writePart(file, content)
	if err != nil {
		return err
	}
	if err = os.Rename(part, file); err != nil {
		_ = os.Remove(part) // the first error is the one to report
	}
	return err
}
