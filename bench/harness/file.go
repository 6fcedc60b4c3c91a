//go:build linux

package harness

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rawlane/rawlane/internal/filelink"
)

// WriteFile replaces a file, or what it leads to as a link, once all is written beside it: one that
// has results keeps them where the disk is full, or the program is ended. It keeps the file's mode.
// What is no regular file, such as /dev/stdout, or is in a folder that takes no other, is written
// in place.
func WriteFile(file string, content []byte) error {
	file, err := filelink.Follow(file)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	info, err := os.Stat(file)
	if err == nil {
		mode = info.Mode()
	}
	if !mode.IsRegular() {
		return os.WriteFile(file, content, 0o644)
	}
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.part")
	if errors.Is(err, fs.ErrPermission) { // the file may be written, and its folder not
		return os.WriteFile(file, content, mode)
	}
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	err = errors.Join(err, part.Chmod(mode), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		_ = os.Remove(part.Name()) // the first error is the one to report
	}
	return err
}
