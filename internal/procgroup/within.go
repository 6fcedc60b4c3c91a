package procgroup

import (
	"os/exec"
	"time"
)

// lookInterval is between two looks at whether a group has ended.
const lookInterval = 20 * time.Millisecond

// EndWithin sends SIGTERM to the group of a program, and SIGKILL to what is left of it after the
// grace: what a program has started may take longer to end than it does. It returns when all have
// ended, or SIGKILL is sent.
func EndWithin(c *exec.Cmd, grace time.Duration) {
	End(c, false)
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	over := time.After(grace)
	for Left(c) {
		select {
		case <-look.C:
		case <-over:
			End(c, true)
			return
		}
	}
}
