//go:build !linux

package ring

import (
	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

type attachment = afpacket.Attachment

// Link is a ring on a network interface: on Linux.
type Link struct{ attachment }

var _ transport.Link = (*Link)(nil)

// Open returns transport.ErrNotSupported.
func Open(name string, _ Config) (*Link, error) { return nil, afpacket.Unsupported("ring", name) }

// Close does nothing.
func (l *Link) Close() error { return l.attachment.Close() }
