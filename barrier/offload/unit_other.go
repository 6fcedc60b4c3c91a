//go:build !linux

package offload

import (
	"fmt"

	"github.com/rawlane/rawlane/barrier/internal/slot"
	"github.com/rawlane/rawlane/transport"
)

// Unit is a program on an interface: on Linux. Elsewhere there is none.
type Unit struct{}

// Open returns transport.ErrNotSupported.
func Open(ifname string) (*Unit, error) {
	return nil, fmt.Errorf("offload %s: %w (it is for Linux)", ifname, transport.ErrNotSupported)
}

// MAC returns the zero address.
func (*Unit) MAC() transport.MAC { return transport.MAC{} }

// Interface returns none.
func (*Unit) Interface() (index int, namespace string) { return 0, "" }

// Add returns transport.ErrNotSupported.
func (*Unit) Add(*slot.Config) (*slot.Slot, error) { return nil, transport.ErrNotSupported }

// Remove does nothing.
func (*Unit) Remove(*slot.Slot) {}

// Close does nothing.
func (*Unit) Close() error { return nil }
