//go:build !linux

package launch

import (
	"fmt"
	"runtime"

	"github.com/rawlane/rawlane/transport"
)

// pinSelf is for Linux.
func pinSelf(int) error { return fmt.Errorf("pin to a core: %w", transport.ErrNotSupported) }

// AllowedCores is for Linux.
func AllowedCores() []int { return nil }

// YieldCore gives the core to another ready goroutine.
func YieldCore() { runtime.Gosched() }
