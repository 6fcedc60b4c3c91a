//go:build !linux || rawlane_portable

package udp

import "net/netip"

// routeMTU returns unknownMTU: there is no portable way to ask.
func routeMTU(netip.AddrPort) int { return unknownMTU }
