//go:build !linux

package launch

import "os/exec"

// OwnGroup is for Linux.
func OwnGroup(*exec.Cmd) {}

// EndGroup ends a program.
func EndGroup(c *exec.Cmd, _ bool) {
	if c.Process != nil {
		_ = c.Process.Kill() // it may have ended already
	}
}
