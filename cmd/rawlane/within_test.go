package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/internal/procgroup"
	"github.com/rawlane/rawlane/internal/testbed"
)

// exitLate is the exit status where a program has not ended in time: that of timeout(1).
const exitLate = 124

// within is a command of scripts, "within TIME PROGRAM [ARGUMENT...]": it runs a program that waits
// for something which a fault may keep from coming, and passes signals on to it. Behind that time,
// or when the program has ended, what is left of its process group is killed: it would hold the
// script's output open, and the script would wait for it.
func within() {
	limit, err := time.ParseDuration(os.Args[1])
	if err != nil {
		panic(err)
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	p := exec.Command(os.Args[2], os.Args[3:]...)
	p.Stdin, p.Stdout, p.Stderr = os.Stdin, os.Stdout, os.Stderr // its own: nothing is copied
	procgroup.Own(p)
	if err := p.Start(); err != nil {
		panic(err)
	}
	status := await(p, told, limit)
	procgroup.End(p, true)
	os.Exit(status)
}

// await returns the exit status of a program, or exitLate: behind the limit, or if the tests have no
// more time, which is told by SIGQUIT.
func await(p *exec.Cmd, told <-chan os.Signal, limit time.Duration) int {
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	for late := time.After(limit); ; {
		select {
		case err := <-ended:
			return testbed.ExitStatus(err)
		case s := <-told:
			if s == syscall.SIGQUIT {
				return exitLate
			}
			_ = p.Process.Signal(s) // it may have ended
		case <-late:
			fmt.Fprintf(os.Stderr, "within %v: %s has not ended\n", limit, p)
			return exitLate
		}
	}
}
