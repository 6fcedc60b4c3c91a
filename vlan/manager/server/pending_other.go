//go:build windows

package server

import (
	"errors"
	"os"
	"path/filepath"
)

// pendingFile is a file that is written beside the one it replaces. This system has no atomic
// replacement that survives a power failure; the rename is what it has.
type pendingFile struct {
	*os.File
	path string
}

func newPendingFile(path string) (*pendingFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path))
	return &pendingFile{f, path}, err
}

// CloseAtomicallyReplace puts the file in the place of the old one.
func (p *pendingFile) CloseAtomicallyReplace() error {
	if err := p.Close(); err != nil {
		return err
	}
	return os.Rename(p.Name(), p.path)
}

// Cleanup removes the file.
func (p *pendingFile) Cleanup() error { return errors.Join(p.Close(), os.Remove(p.Name())) }
