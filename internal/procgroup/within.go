package procgroup

import (
	"os/exec"
	"time"
)

// lookInterval is between two looks at whether a group has ended.
const lookInterval = 20 * time.Millisecond

// EndWithin sends SIGTERM to the group of a program, and SIGKILL when all of it has ended, or the
// grace is over: what a program has started may take longer to end than it does, and a look may
// miss what is started meanwhile.
func EndWithin(c *exec.Cmd, grace time.Duration) {
	End(c, false)
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	over := time.After(grace)
	defer End(c, true)
	for Left(c) {
		select {
		case <-look.C:
		case <-over:
			return
		}
	}
}
