//go:build !linux

package grant

import (
	"context"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// Grant is sockets that the service has opened for one link: on Linux. Elsewhere there is none.
type Grant struct {
	Interface string
	MAC       transport.MAC
	MTU       int
	EtherType transport.EtherType
}

// Open returns transport.ErrNotSupported.
func Open(_ context.Context, _ string, r Request) (*Grant, error) {
	return nil, afpacket.Unsupported("grant", r.Interface)
}

// Close does nothing.
func (*Grant) Close() error { return nil }
