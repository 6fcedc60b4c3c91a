//go:build !linux || rawlane_portable

package udp

import (
	"context"
	"net/netip"

	"github.com/rawlane/rawlane/transport"
)

// routeMTU returns unknownMTU: there is no portable way to ask.
func routeMTU(netip.AddrPort) int { return unknownMTU }

// probePath is for Linux.
func probePath(context.Context, netip.AddrPort, transport.MAC) (int, error) {
	return 0, transport.ErrNotSupported
}
