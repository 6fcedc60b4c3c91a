package launch

import (
	"os/exec"
	"syscall"
)

// OwnGroup makes a program, before its start, the leader of a process group. EndGroup then ends the
// programs that it has started, too.
func OwnGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// EndGroup sends SIGTERM to a program's group, or SIGKILL with force.
func EndGroup(c *exec.Cmd, force bool) {
	signal := syscall.SIGTERM
	if force {
		signal = syscall.SIGKILL
	}
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, signal) // it may have ended already
	}
}
