package main

import (
	"os/exec"
	"syscall"
)

// ownGroup has a program that is to be started lead a process group, so that it can be ended with all that it has
// started itself.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup ends a program's group: asks it to end, or forces it.
func endGroup(c *exec.Cmd, force bool) {
	signal := syscall.SIGTERM
	if force {
		signal = syscall.SIGKILL
	}
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, signal) // it may have ended already
	}
}
