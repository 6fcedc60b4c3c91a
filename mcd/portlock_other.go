//go:build !linux

package mcd

import (
	"io"
	"os"
)

var ownPID = os.Getpid()

type noLock struct{}

func (noLock) Close() error { return nil }

// lockPort does nothing: no link of these systems is shared between processes.
func lockPort(string, PortID) (io.Closer, error) { return noLock{}, nil }
