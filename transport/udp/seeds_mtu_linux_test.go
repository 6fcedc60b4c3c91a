//go:build !rawlane_portable

package udp_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/udp"
)

// The MTU is what the paths take to seeds that have names, too.
func TestSeeds_PathsOfNames(t *testing.T) {
	const pathMTU = 1300
	bed := testbed.ForTest(t, testbed.Config{})
	seed, _ := netip.AddrFromSlice(testbed.IP(1, 0))
	z := &zone{hosts: map[string]netip.Addr{"seed.example.org": seed}}
	l, err := testbed.In(bed.Node(0), func() (*udp.Link, error) {
		eth0, err := netlink.LinkByName(testbed.Interface(0))
		if err != nil {
			return nil, err
		}
		to := net.IPNet{IP: testbed.IP(1, 0), Mask: net.CIDRMask(32, 32)}
		if err := netlink.RouteAdd(&netlink.Route{Dst: &to, LinkIndex: eth0.Attrs().Index, MTU: pathMTU}); err != nil {
			return nil, err
		}
		return udp.Open(testbed.IP(0, 0).String()+":7401", udp.Config{Seeds: []string{"seed.example.org"}, Resolver: z.resolver()})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if want := udp.LinkMTU(pathMTU, seed); l.MTU() != want {
		t.Errorf("MTU %d, want %d", l.MTU(), want)
	}
}
