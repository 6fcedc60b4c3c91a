//go:build !linux

package packet

import (
	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

type attachment = afpacket.Attachment

// Link is an AF_PACKET socket on a network interface: on Linux.
type Link struct{ attachment }

var _ transport.Link = (*Link)(nil)

// Open returns transport.ErrNotSupported.
func Open(name string, _ Config) (*Link, error) { return nil, afpacket.Unsupported("packet", name) }

// Close does nothing.
func (l *Link) Close() error { return l.attachment.Close() }
