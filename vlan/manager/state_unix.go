//go:build unix

package manager

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A manager that was killed has its lock until the system has cleared it away, and systemd starts the next one at once.
const (
	lockPatience = time.Second
	lockLook     = 20 * time.Millisecond
)

// syncFolder makes the renaming of a file in its folder durable.
func syncFolder(file string) error {
	d, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lock holds a state file for this process, until the lock is closed or the process ends. The lock is on a file beside it,
// which stays.
func (f *stateFile) lock() (*os.File, error) {
	if f.path == "" {
		return nil, nil
	}
	l, err := os.OpenFile(f.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	for waited := time.Duration(0); ; waited += lockLook {
		err = syscall.Flock(int(l.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || waited >= lockPatience {
			break
		}
		time.Sleep(lockLook)
	}
	if err != nil {
		l.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("state %s: another manager has it (end that one, or give this one another --state)", f.path)
		}
		return nil, fmt.Errorf("state %s: lock: %w", f.path, err)
	}
	return l, nil
}
