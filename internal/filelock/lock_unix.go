//go:build unix && !solaris && !aix

package filelock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

func try(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil && isAt(f, path):
		return &Lock{f}, nil
	case err == nil, errors.Is(err, syscall.EWOULDBLOCK):
		err = ErrHeld
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
}

// isAt reports whether a file is the one at a path: not one that its holder has removed since.
func isAt(f *os.File, path string) bool {
	ours, _ := f.Stat() // none is the same as nothing
	there, _ := os.Lstat(path)
	return os.SameFile(there, ours)
}
