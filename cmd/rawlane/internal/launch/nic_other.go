//go:build !linux

package launch

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// driverOf names the driver of a network interface: on Linux.
func driverOf(string) string { return "" }

// AskDriver asks a NIC's driver for its settings: on Linux.
func AskDriver(string) NICFacts { return NICFacts{} }

// TryRawSocket reports whether this process may open raw sockets: on Linux.
func TryRawSocket() error { return fmt.Errorf("raw sockets: %w", transport.ErrNotSupported) }

// TryUserNamespace reports whether this user may make a network namespace: on Linux.
func TryUserNamespace() error { return fmt.Errorf("network namespaces: %w", transport.ErrNotSupported) }
