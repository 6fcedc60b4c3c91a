//go:build !linux

package launch

import (
	"fmt"
	"runtime"

	"github.com/rawlane/rawlane/transport"
)

// pinSelf has this process run on one core: on Linux.
func pinSelf(int) error { return fmt.Errorf("pin to a core: %w", transport.ErrNotSupported) }

// AllowedCores lists the cores that this process may run on: on Linux.
func AllowedCores() []int { return nil }

// YieldCore lets whoever else is ready have this core: of this process alone.
func YieldCore() { runtime.Gosched() }
