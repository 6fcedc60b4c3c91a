package outfile

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// maxLinks is how many links in a row lead to a file; Linux follows as many.
const maxLinks = 40

// Follow returns the file that a path leads to by links: the path itself, if it is none. The file
// may not be there yet.
func Follow(path string) (string, error) {
	end := path
	for range maxLinks + 1 {
		to, err := os.Readlink(end)
		if err != nil {
			return end, nil // it is no link, or not there
		}
		if !filepath.IsAbs(to) {
			folder, err := filepath.EvalSymlinks(filepath.Dir(end)) // ".." is that of what it leads to
			if err != nil {
				return "", err
			}
			to = filepath.Join(folder, to)
		}
		end = to
	}
	return "", fmt.Errorf("%s: %w", path, syscall.ELOOP)
}
