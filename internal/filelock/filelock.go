// Package filelock is locks between processes, each of which is a file: of what must not be two, as
// the managers of one state file. A lock ends with its process, also with one that is killed. The
// file stays until Remove.
package filelock

import (
	"errors"
	"os"
	"time"
)

// ErrHeld is the error of a lock that somebody else has.
var ErrHeld = errors.New("somebody else has the lock")

// pause is between two looks at a lock that is held.
const pause = time.Millisecond

// Lock is held until it is closed or removed, or the process ends.
type Lock struct{ file *os.File }

// Try takes the lock of a file, or returns ErrHeld. It makes the file if need be, for its owner
// alone: a lock that others may open they could hold for ever. A file system that has no locks is
// an error that is errors.ErrUnsupported.
func Try(path string) (*Lock, error) { return try(path) }

// Take is Try that waits for a lock as long as that, if it is held.
func Take(path string, wait time.Duration) (*Lock, error) {
	for deadline := time.Now().Add(wait); ; time.Sleep(pause) {
		l, err := try(path)
		if !errors.Is(err, ErrHeld) || !time.Now().Before(deadline) {
			return l, err
		}
	}
}

// Close gives the lock free, and leaves the file. There may be no lock.
func (l *Lock) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// Remove removes the file, and gives the lock free. Who waits for it takes that of a new file.
func (l *Lock) Remove() error {
	return errors.Join(os.Remove(l.file.Name()), l.file.Close())
}
