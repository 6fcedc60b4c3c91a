//go:build linux

package harness

import (
	"time"

	"golang.org/x/sys/unix"
)

// Spent is what this process has used so far.
type Spent struct {
	CPU      time.Duration // user's and system's
	Switches int64         // of its threads' contexts
}

// Usage returns what this process has used.
func Usage() (s Spent, err error) {
	var u unix.Rusage
	err = unix.Getrusage(unix.RUSAGE_SELF, &u)
	switches := int64(u.Nvcsw + u.Nivcsw) //nolint:unconvert // 32 bits elsewhere
	return Spent{time.Duration(u.Utime.Nano() + u.Stime.Nano()), switches}, err
}
