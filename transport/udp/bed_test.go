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

// A link of every address of its host has the Ethernet address of the station among the known ones
// that it is, or else that of the host's first address; one of a port of the kernel's choice that of
// the port it got.
func TestOpen_OwnAddress(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	own, other := testbed.IP(0, 0).String()+":7401", testbed.IP(1, 0).String()+":7401"
	for _, c := range []struct {
		name     string
		listen   string
		stations []udp.Station
		want     transport.MAC
	}{
		{"its only address", "0.0.0.0:7401", nil, udp.StationMAC(own)},
		{"a station that it is", "0.0.0.0:7401", []udp.Station{{Addr: other}, {Addr: own, MAC: mac(9)}}, mac(9)},
		{"one without an address of its own", "0.0.0.0:7401", []udp.Station{{Addr: own}}, udp.StationMAC(own)},
		{"one of another port", "0.0.0.0:7402", []udp.Station{{Addr: own, MAC: mac(9)}}, udp.StationMAC(testbed.IP(0, 0).String() + ":7402")},
		{"one address", own, nil, udp.StationMAC(own)},
	} {
		l, err := testbed.In(bed.Node(0), func() (*udp.Link, error) {
			return udp.Open(c.listen, udp.Config{Stations: c.stations})
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		public, err := testbed.In(bed.Node(0), func() (string, error) { return l.PublicAddr(), nil })
		if l.MAC() != c.want || public != "" || err != nil || l.Name() != "udp "+c.listen {
			t.Errorf("%s: %v, public %q (%v), %s; want %v, none", c.name, l.MAC(), public, err, l.Name(), c.want)
		}
		_ = l.Close()
	}
	l, err := testbed.In(bed.Node(0), func() (*udp.Link, error) {
		return udp.Open(testbed.IP(0, 0).String()+":0", udp.Config{Seeds: []string{other}})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.MAC() != udp.StationMAC(l.Addr().String()) {
		t.Errorf("%v at %v", l.MAC(), l.Addr())
	}
}
