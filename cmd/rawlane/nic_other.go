//go:build !linux

package main

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// driverOf names the driver of a network interface: on Linux.
func driverOf(string) string { return "" }

// askDriver asks a NIC's driver for its settings: on Linux.
func askDriver(string) nicFacts { return nicFacts{} }

// tryRawSocket reports whether this process may open raw sockets: on Linux.
func tryRawSocket() error { return fmt.Errorf("raw sockets: %w", transport.ErrNotSupported) }

// tryUserNamespace reports whether this user may make a network namespace: on Linux.
func tryUserNamespace() error { return fmt.Errorf("network namespaces: %w", transport.ErrNotSupported) }
