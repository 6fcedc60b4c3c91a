//go:build !linux

package launch

import (
	"fmt"
	"os"
	"runtime"

	"github.com/rawlane/rawlane/transport"
)

// pinSelf is for Linux.
func pinSelf(int) error { return fmt.Errorf("pin to a core: %w", transport.ErrNotSupported) }

// MoveThread is for Linux.
func MoveThread(int) error { return fmt.Errorf("move to a core: %w", transport.ErrNotSupported) }

// PinThread is for Linux.
func PinThread(int, int) error { return nil }

// thisProgram is the path of this program.
func thisProgram() (string, error) { return os.Executable() }

// YieldCore gives the core to another ready goroutine.
func YieldCore() { runtime.Gosched() }

// AskDriver asks a NIC's driver for its settings: on Linux.
func AskDriver(string) NICFacts { return NICFacts{} }

// TryRawSocket reports whether this process may open raw sockets: on Linux.
func TryRawSocket() error { return fmt.Errorf("raw sockets: %w", transport.ErrNotSupported) }

// TryUserNamespace reports whether this user may make a network namespace: on Linux.
func TryUserNamespace() error { return fmt.Errorf("network namespaces: %w", transport.ErrNotSupported) }
