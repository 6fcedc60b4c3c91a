//go:build !linux

package main

import "os/exec"

// ownGroup is for process groups: on Linux.
func ownGroup(*exec.Cmd) {}

// endGroup ends a program.
func endGroup(c *exec.Cmd, _ bool) {
	if c.Process != nil {
		_ = c.Process.Kill() // it may have ended already
	}
}
