//go:build linux

package udp_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

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

// On an interface that has IPv6 alone it is one, too: stations find each other by the group.
func TestOpenInterface_IPv6(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	for k := range 2 {
		name := testbed.Interface(0)
		err := bed.Node(k).Do(func() error {
			return os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("0"), 0)
		})
		if err != nil {
			t.Skip(err) // a system without IPv6, or whose settings are read-only
		}
		err = bed.Node(k).Do(func() error {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			four := &net.IPNet{IP: testbed.IP(k, 0), Mask: net.CIDRMask(24, 32)}
			six := &net.IPNet{IP: net.ParseIP(fmt.Sprintf("fd00::%d", k+1)), Mask: net.CIDRMask(64, 128)}
			return errors.Join(netlink.AddrDel(l, &netlink.Addr{IPNet: four}),
				netlink.AddrAdd(l, &netlink.Addr{IPNet: six, Flags: unix.IFA_F_NODAD}))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	a, b := testbed.OpenPair(t, bed, func(name string) (*udp.Link, error) { return udp.OpenInterface(name, udp.Config{}) })
	if want := 1500 - 40 - 8 - transport.MaxHeaderLen; a.MTU() != want || a.Addr().Addr().String() != "fd00::1" {
		t.Errorf("MTU %d at %v, want %d at fd00::1", a.MTU(), a.Addr(), want)
	}
	send(t, a, frame(transport.Broadcast, []byte("to all")))
	if got := receive(t, b, 1); string(got[0]) != "to all" {
		t.Errorf("%q came", got[0])
	}
	send(t, b, frame(a.MAC(), []byte("to one")))
	if got := receive(t, a, 1); string(got[0]) != "to one" {
		t.Errorf("%q came", got[0])
	}
}
