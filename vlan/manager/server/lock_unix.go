//go:build unix

package server

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// A manager that was killed has its lock until the system has cleared it away, and systemd starts
// the next one at once.
const (
	lockTimeout = time.Second
	lockRetry   = 20 * time.Millisecond
)

// lock holds a state file for this process, until the lock is closed or the process ends. The lock
// is on a file beside it, which stays.
func (f *stateFile) lock() (*os.File, error) {
	if f.path == "" {
		return nil, nil
	}
	l, err := os.OpenFile(f.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	for waited := time.Duration(0); ; waited += lockRetry {
		err = syscall.Flock(int(l.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || waited >= lockTimeout {
			break
		}
		time.Sleep(lockRetry)
	}
	if err != nil {
		l.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("state %s: another manager has it "+
				"(end that one, or give this one another --state)", f.path)
		}
		return nil, fmt.Errorf("state %s: lock: %w", f.path, err)
	}
	return l, nil
}
