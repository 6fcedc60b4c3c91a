//go:build unix

package bench

import (
	"fmt"
	"syscall"
	"time"
)

// cpuTime returns the processor time of this process: user's and system's.
func cpuTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
