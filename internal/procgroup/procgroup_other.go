//go:build !linux

// Package procgroup ends a program together with the programs that it has started.
package procgroup

import "os/exec"

// Own is for Linux.
func Own(*exec.Cmd) {}

// DieWithThread is for Linux.
func DieWithThread(*exec.Cmd) {}

// End ends a program.
func End(c *exec.Cmd, _ bool) {
	if c.Process != nil {
		_ = c.Process.Kill() // it may have ended already
	}
}

// Left is for Linux.
func Left(*exec.Cmd) bool { return false }
