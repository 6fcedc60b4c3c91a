//go:build !linux

package main

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// pinSelf has this process run on one core: on Linux.
func pinSelf(int) error { return fmt.Errorf("pin to a core: %w", transport.ErrNotSupported) }

// allowedCores lists the cores that this process may run on: on Linux.
func allowedCores() []int { return nil }
