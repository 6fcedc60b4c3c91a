// Package procgroup ends a program together with the programs that it has started.
package procgroup

import (
	"os/exec"
	"syscall"
)

// Own makes a program, before its start, the leader of a process group.
func Own(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// DieWithThread makes a program, after Own and before its start, end with the thread that starts
// it: with this process, if that thread stays.
func DieWithThread(c *exec.Cmd) { c.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// End sends SIGTERM to the group of a program, or SIGKILL with force.
func End(c *exec.Cmd, force bool) {
	signal := syscall.SIGTERM
	if force {
		signal = syscall.SIGKILL
	}
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, signal) // it may have ended already
	}
}

// Left reports whether processes of the group of a program are there, which End would reach.
func Left(c *exec.Cmd) bool {
	return c.Process != nil && syscall.Kill(-c.Process.Pid, 0) == nil
}
