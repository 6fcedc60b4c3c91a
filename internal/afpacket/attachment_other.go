//go:build !linux

package afpacket

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Unsupported is the error of opening a link here.
func Unsupported(kind, name string) error {
	return fmt.Errorf("%s %s: open: %w (AF_PACKET is Linux's)", kind, name, transport.ErrNotSupported)
}
