// Package procgroup ends a program together with the programs that it has started.
package procgroup

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// Left reports whether processes of the group of a program have not ended, which End would reach.
// One that has ended, and that nobody has waited for, does not count: SIGKILL changes nothing.
func Left(c *exec.Cmd) bool {
	if c.Process == nil || syscall.Kill(-c.Process.Pid, 0) != nil {
		return false
	}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a good one
	ended := false
	for _, file := range files {
		stat, _ := os.ReadFile(file) // empty of one that is gone meanwhile
		switch group, runs := parseStat(stat); {
		case group != c.Process.Pid:
		case runs:
			return true
		default:
			ended = true
		}
	}
	return !ended // else /proc does not show the group
}

// parseStat returns the process group of what /proc/PID/stat says, 0 if it says nothing, and
// whether the process runs: one whose first thread has ended does, if it has others.
//
// Source: proc_pid_stat(5).
func parseStat(stat []byte) (group int, runs bool) {
	const state, pgrp, numThreads = 0, 2, 17 // behind the name, which may have any characters
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= numThreads {
		return 0, false
	}
	group, _ = strconv.Atoi(string(fields[pgrp]))
	threads, _ := strconv.Atoi(string(fields[numThreads]))
	ended := string(fields[state]) == "Z" || string(fields[state]) == "X"
	return group, !ended || threads > 1
}
