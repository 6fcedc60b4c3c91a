//go:build linux

package packet_test

import (
	"os"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/packet"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

func open(name string) (*packet.Link, error) { return packet.Open(name, packet.Config{}) }

func TestLink(t *testing.T) {
	for name, mtu := range map[string]int{"MTU 1500": 1500, "MTU 9000": 9000} {
		t.Run(name, func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{MTU: mtu})
			linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) { return testbed.OpenPair(t, bed, open) })
		})
	}
}
