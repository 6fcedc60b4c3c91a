//go:build linux && !rawlane_portable

package udp_test

import (
	"testing"

	"github.com/rawlane/rawlane/internal/kernellink"
	"github.com/rawlane/rawlane/transport/udp"
)

// Stamps lie between the call that sends a frame and the poll that returns it.
func TestLink_Stamps(t *testing.T) {
	kernellink.TestStamps(t, func(name string) (*udp.Link, error) { return udp.OpenInterface(name, udp.Config{}) })
}
