//go:build !linux

package server

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Server is a service on a Unix socket: on Linux. Elsewhere there is none.
type Server struct{}

// Open returns transport.ErrNotSupported.
func Open(string, Config) (*Server, error) {
	return nil, fmt.Errorf("grant: %w (AF_PACKET is Linux's)", transport.ErrNotSupported)
}

// Reload does nothing.
func (*Server) Reload() error { return nil }

// Close does nothing.
func (*Server) Close() error { return nil }
