package launch

import (
	"os/exec"
	"syscall"
)

// OwnGroup has a program that is to be started lead a process group, so that it can be ended with
// all that it has started itself.
func OwnGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// EndGroup ends a program's group: asks it to end, or forces it.
func EndGroup(c *exec.Cmd, force bool) {
	signal := syscall.SIGTERM
	if force {
		signal = syscall.SIGKILL
	}
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, signal) // it may have ended already
	}
}
