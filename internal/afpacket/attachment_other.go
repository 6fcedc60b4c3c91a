//go:build !linux

package afpacket

import (
	"context"
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Attachment is a transport.Link that does nothing: AF_PACKET is Linux's.
type Attachment struct{}

// Unsupported is the error of opening a link here.
func Unsupported(kind, name string) error {
	return fmt.Errorf("%s %s: open: %w (AF_PACKET is Linux's)", kind, name, transport.ErrNotSupported)
}

// MAC returns no address.
func (*Attachment) MAC() transport.MAC { return transport.MAC{} }

// MTU returns 0.
func (*Attachment) MTU() int { return 0 }

// Send returns transport.ErrNotSupported.
func (*Attachment) Send([]transport.Frame) (int, error) { return 0, transport.ErrNotSupported }

// Poll returns transport.ErrNotSupported.
func (*Attachment) Poll([]transport.Frame) (int, error) { return 0, transport.ErrNotSupported }

// Wait returns transport.ErrNotSupported.
func (*Attachment) Wait(context.Context) error { return transport.ErrNotSupported }

// Counters returns zeros.
func (*Attachment) Counters() transport.Counters { return transport.Counters{} }

// Promiscuous returns "".
func (*Attachment) Promiscuous() string { return "" }

// Close does nothing.
func (*Attachment) Close() error { return nil }
