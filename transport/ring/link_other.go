//go:build !linux

package ring

import (
	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// Link is a ring on a network interface: on Linux. Elsewhere there is none.
type Link struct{ transport.Link }

// Open returns transport.ErrNotSupported.
func Open(name string, _ Config) (*Link, error) { return nil, afpacket.Unsupported("ring", name) }

// Promiscuous returns "".
func (*Link) Promiscuous() string { return "" }
