//go:build linux

package udp_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
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
	names := &zone{hosts: make(map[string]netip.Addr)}
	for k, addr := range []string{own, other} {
		names.hosts[fmt.Sprintf("node%d.example.org", k)] = netip.MustParseAddrPort(addr).Addr()
	}
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
		{"a station of the default port", "0.0.0.0", []udp.Station{{Addr: other}, {Addr: testbed.IP(0, 0).String(), MAC: mac(9)}}, mac(9)},
		{"a station by name", "0.0.0.0:7401", []udp.Station{{Addr: "node1.example.org:7401"}, {Addr: "node0.example.org:7401"}},
			udp.StationMAC("node0.example.org:7401")},
		{"a station of this host alone", "0.0.0.0:7401", []udp.Station{{Addr: "127.0.0.1:7401", MAC: mac(9)}}, mac(9)},
	} {
		l, err := testbed.In(bed.Node(0), func() (*udp.Link, error) {
			return udp.Open(c.listen, udp.Config{Stations: c.stations, Resolver: names.resolver()})
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		public, err := testbed.In(bed.Node(0), func() (string, error) { return l.PublicAddr(), nil })
		if l.MAC() != c.want || public != "" || err != nil || !strings.HasPrefix(l.Name(), "udp "+c.listen) {
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

// A link of every address needs one that others can reach, or to be told its Ethernet address. It is
// public if one of its host's is, of a family that reaches it.
func TestOpen_EveryAddressOfAHost(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	open := func(listen string, n int) (*udp.Link, error) {
		return testbed.In(bed.Node(0), func() (*udp.Link, error) {
			cfg := udp.Config{}
			if n != 0 {
				cfg.MAC = mac(n)
			}
			return udp.Open(listen, cfg)
		})
	}
	if l, err := open("[::]:7401", 0); err == nil || !strings.Contains(err.Error(), "set Config.MAC") {
		t.Errorf("%v: no address of IPv6, and no reason: %v", l, err)
	}
	for _, c := range []struct{ add, four, six string }{
		{"10.99.0.1/24", "", ""}, {"203.0.113.5/24", "203.0.113.5", "203.0.113.5"},
	} {
		err := bed.Node(0).Do(func() error {
			l, err := netlink.LinkByName(testbed.Interface(0))
			if err != nil {
				return err
			}
			addr, err := netlink.ParseAddr(c.add)
			if err != nil {
				return err
			}
			return netlink.AddrAdd(l, addr)
		})
		if err != nil {
			t.Fatal(err)
		}
		for listen, want := range map[string]string{"0.0.0.0:7401": c.four, "[::]:7402": c.six} {
			l, err := open(listen, 1)
			if err != nil {
				t.Fatal(err)
			}
			public, err := testbed.In(bed.Node(0), func() (string, error) { return l.PublicAddr(), nil })
			if public != want || err != nil {
				t.Errorf("with %s, on %s: public %q, want %q (%v)", c.add, listen, public, want, err)
			}
			_ = l.Close()
		}
	}
}

// Frames for stations where no route leads are lost, and stop none behind them, nor are they refused:
// routes come and go.
func TestSend_WhereNoRouteLeads(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	links, err := testbed.In(bed.Node(0), func() (links []*udp.Link, err error) {
		for k, port := range []string{":7401", ":7402"} {
			cfg := udp.Config{MAC: mac(k + 1), Stations: []udp.Station{{Addr: "192.0.2.1:7", MAC: mac(9)}}}
			if k == 1 {
				cfg.Stations = append(cfg.Stations, udp.Station{Addr: links[0].Addr().String(), MAC: mac(1)})
			}
			l, err := udp.Open(testbed.IP(0, 0).String()+port, cfg)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = l.Close() })
			links = append(links, l)
		}
		return links, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	to, from := links[0], links[1]
	frames := []transport.Frame{frame(to.MAC(), []byte("0"))}
	for range 3 {
		frames = append(frames, frame(mac(9), []byte("lost")))
	}
	frames = append(frames, frame(to.MAC(), []byte("1")), frame(mac(9), []byte("lost")), frame(to.MAC(), []byte("2")))
	if n, err := from.Send(frames); n != len(frames) || err != nil {
		t.Fatal(n, err)
	}
	for k, got := range receive(t, to, 3) {
		if string(got) != strconv.Itoa(k) {
			t.Errorf("frame %d: %q", k, got)
		}
	}
	if c := from.Counters(); c.TxFrames != uint64(len(frames)) || c.TxRefused != 0 || c.TxBusy != 0 {
		t.Errorf("%+v", c)
	}
}
