package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/rawlane/rawlane/internal/outfile"
)

// WriteFile replaces the file that a flag names: all of the content or none, also where the power
// fails.
func WriteFile(flag, file string, content []byte) error {
	if err := NotStandard("--"+flag, file); err != nil {
		return err
	}
	return fileError(flag, file, outfile.Replace(file, content))
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
	return fileError(flag, file, outfile.Check(file))
}

// OpenFile opens a file that is read. The error says which flag or argument it is of, and how to
// come by one.
func OpenFile(what, file, cure string) (*os.File, error) {
	f, err := os.Open(file)
	return f, ReadError(what, file, cure, err)
}

// ReadError adds to the error of a file that cannot be opened, and to no other, what OpenFile does.
func ReadError(what, file, cure string, err error) error {
	var where *fs.PathError
	if !errors.As(err, &where) {
		return err
	}
	return fmt.Errorf("%s %s: %w (%s)", what, file, where.Err, cure)
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
