package testbed

import (
	"errors"
	"os/exec"
	"syscall"
)

// ExitStatus returns the exit status of a program that has ended with err, as a shell tells it.
func ExitStatus(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode()
	case errors.As(err, &exit): // by a signal
		return 128 + int(exit.Sys().(syscall.WaitStatus).Signal())
	}
	return 1
}
