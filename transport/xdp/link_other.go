//go:build !linux

package xdp

import (
	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// Link is AF_XDP on a network interface: on Linux. Elsewhere there is none.
type Link struct{ transport.Link }

// Open returns transport.ErrNotSupported.
func Open(name string, _ Config) (*Link, error) { return nil, afpacket.Unsupported("xdp", name) }

// Probe returns transport.ErrNotSupported.
func Probe(name string) (Mode, error) { return ModeAuto, afpacket.Unsupported("xdp", name) }

// Promiscuous returns "".
func (*Link) Promiscuous() string { return "" }

// Mode returns ModeAuto.
func (*Link) Mode() Mode { return ModeAuto }

// Fallback returns "".
func (*Link) Fallback() string { return "" }
