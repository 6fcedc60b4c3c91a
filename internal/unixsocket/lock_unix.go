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

// lockFolder takes the lock of a folder: of those that listen there at once each sees what the one
// before has done. It ends with unlock, or the process.
func lockFolder(path string) (unlock func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for begun := time.Now(); ; time.Sleep(lockPause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || errors.Is(err, errors.ErrUnsupported) { // by some network file systems
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Since(begun) > lockTimeout {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}
