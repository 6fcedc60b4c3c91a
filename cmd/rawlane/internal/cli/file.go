package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// WriteFile replaces the file that a flag names: all of the content or none.
func WriteFile(flag, file string, content []byte) error {
	if err := replaceFile(file, content); err != nil {
		var where *fs.PathError
		if errors.As(err, &where) {
			err = where.Err
		}
		return fmt.Errorf("--%s %s: %w (want a file in a folder that is there and that you may write to)",
			flag, file, err)
	}
	return nil
}

// replaceFile writes beside the file and then renames. It writes directly into what is not a
// regular file, such as /dev/stdout.
func replaceFile(file string, content []byte) error {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(file, content, 0o666)
	}
	part := file + ".part"
	err = os.WriteFile(part, content, 0o666)
	if err == nil {
		err = os.Rename(part, file)
	}
	if err != nil {
		_ = os.Remove(part) // it may not be there
	}
	return err
}
