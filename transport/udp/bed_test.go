//go:build linux

package udp_test

import (
	"os"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/udp"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

// On an interface, too, it is a link, and nothing needs to be known of the other stations.
func TestOpenInterface(t *testing.T) {
	for name, mtu := range map[string]int{"MTU 1500": 1500, "MTU 9000": 9000} {
		t.Run(name, func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{MTU: mtu})
			linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
				x, y := testbed.OpenPair(t, bed, func(name string) (*udp.Link, error) {
					return udp.OpenInterface(name, udp.Config{})
				})
				if want := mtu - 20 - 8 - 18; x.MTU() != want {
					t.Errorf("MTU %d, want %d", x.MTU(), want)
				}
				return x, y
			})
		})
	}
}
