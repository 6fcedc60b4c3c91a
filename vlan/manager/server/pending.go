//go:build !windows

package server

import (
	"path/filepath"

	"github.com/google/renameio/v2"
)

// pendingFile is a file that is written beside the one it replaces.
type pendingFile = renameio.PendingFile

func newPendingFile(path string) (*pendingFile, error) {
	return renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithStaticPermissions(0o600))
}
