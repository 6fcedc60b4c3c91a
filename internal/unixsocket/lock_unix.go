//go:build linux || darwin

package unixsocket

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	// lockTimeout is how long the lock may take: who has it waits a second at most.
	lockTimeout = 5 * time.Second
	lockPause   = time.Millisecond
)

// lockPlace takes the lock of a socket's place: of those that listen there at once each sees what
// the one before has done. It ends with unlock, or the process. It is a file beside the socket that
// only its owner may open: a lock of the folder could be held for ever by all who may read that.
func lockPlace(path string) (unlock func(), err error) {
	path += ".lock"
	for begun := time.Now(); ; time.Sleep(lockPause) {
		unlock, err := tryLock(path)
		if err == nil && unlock == nil && time.Since(begun) > lockTimeout {
			err = syscall.EWOULDBLOCK
		}
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if unlock != nil {
			return unlock, nil
		}
	}
}

// tryLock makes a file and takes its lock; unlock, which removes the file, is nil while somebody
// else has it.
func tryLock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, errors.ErrUnsupported) { // by some network file systems
		err = nil
	}
	if err == nil && isAt(f, path) {
		return func() {
			_ = os.Remove(path) // one that stays is the next one's
			_ = f.Close()
		}, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = nil
	}
	return nil, err
}

// isAt reports whether a file is the one at a path: not one that was removed since.
func isAt(f *os.File, path string) bool {
	ours, _ := f.Stat() // none is the same as nothing
	there, _ := os.Lstat(path)
	return os.SameFile(there, ours)
}
