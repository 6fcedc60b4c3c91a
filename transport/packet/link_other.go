//go:build !linux

package packet

import (
	"context"
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Link is an AF_PACKET socket on a network interface: on Linux.
type Link struct{}

var _ transport.Link = (*Link)(nil)

// Open returns transport.ErrNotSupported.
func Open(name string, _ Config) (*Link, error) {
	return nil, fmt.Errorf("packet %s: open: %w (AF_PACKET is Linux's)", name, transport.ErrNotSupported)
}

// MAC returns no address.
func (*Link) MAC() transport.MAC { return transport.MAC{} }

// MTU returns 0.
func (*Link) MTU() int { return 0 }

// Send returns transport.ErrNotSupported.
func (*Link) Send([]transport.Frame) (int, error) { return 0, transport.ErrNotSupported }

// Poll returns transport.ErrNotSupported.
func (*Link) Poll([]transport.Frame) (int, error) { return 0, transport.ErrNotSupported }

// Wait returns transport.ErrNotSupported.
func (*Link) Wait(context.Context) error { return transport.ErrNotSupported }

// Counters returns zeros.
func (*Link) Counters() transport.Counters { return transport.Counters{} }

// Promiscuous returns "".
func (*Link) Promiscuous() string { return "" }

// Close does nothing.
func (*Link) Close() error { return nil }
