//go:build !linux

package packet

import (
	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// Link is an AF_PACKET socket on a network interface: on Linux. Elsewhere there is none.
type Link struct{ transport.Link }

// Open returns transport.ErrNotSupported.
func Open(name string, _ Config) (*Link, error) { return nil, afpacket.Unsupported("packet", name) }

// Promiscuous returns "".
func (*Link) Promiscuous() string { return "" }
