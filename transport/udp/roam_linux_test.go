package udp

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// onAll opens a link on all of a node's addresses, which knows one station.
func onAll(t *testing.T, n *testbed.Node, station string) *Link {
	t.Helper()
	l, err := testbed.In(n, func() (*Link, error) {
		return Open("0.0.0.0:7401", Config{MAC: numbered(1), Stations: []Station{{Addr: station, MAC: numbered(2)}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// change does something to a node's network.
func change(t *testing.T, n *testbed.Node, f func() error) {
	t.Helper()
	if err := n.Do(f); err != nil {
		t.Fatal(err)
	}
}

// A link on all addresses has moved when its host sends from another one, and not while the host
// has none. One that is bound to its address does not move.
func TestRoamed(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	n, station := bed.Node(0), net.JoinHostPort(testbed.IP(1, 0).String(), "7401")
	l := onAll(t, n, station)
	bound, err := testbed.In(n, func() (*Link, error) {
		return Open(testbed.IP(0, 0).String()+":7402", Config{Stations: []Station{{Addr: station}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer bound.Close()
	roamed := func(l *Link) bool {
		got, _ := testbed.In(n, func() (bool, error) { return l.Roamed(), nil }) // a portable link asks where it is called
		return got
	}
	moves := func(when string, want bool) {
		t.Helper()
		if got := roamed(l); got != want {
			t.Errorf("%s: moved %v, want %v", when, got, want)
		}
		if roamed(bound) {
			t.Errorf("%s: a link that is bound has moved", when)
		}
	}
	old, other := testbed.IP(0, 0), net.IPv4(10, 77, 0, 99).To4()
	moves("at first", false)
	moves("later", false)
	if err := n.RemoveIP(0, old); err != nil {
		t.Fatal(err)
	}
	moves("without an address", false)
	if err := n.AddIP(0, other); err != nil {
		t.Fatal(err)
	}
	moves("with another address", true)
	moves("later", false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	roamed(l) // a look at a closed link does nothing
}

// A stream leaves by another address when its interface is down: the host keeps the address, and
// nobody can answer to it.
func TestStream_FollowsTheRoute(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{NICs: 2})
	far := net.IPv4(10, 99, 0, 1).To4()
	here, there := bed.Node(0), bed.Node(1)
	change(t, there, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: far, Mask: net.CIDRMask(32, 32)}})
	})
	change(t, here, func() error {
		for nic := range 2 {
			to := net.IPNet{IP: far, Mask: net.CIDRMask(32, 32)}
			if err := netlink.RouteAdd(&netlink.Route{Dst: &to, Gw: testbed.IP(1, nic), Priority: 10 + nic}); err != nil {
				return fmt.Errorf("route %d: %w", nic, err)
			}
		}
		return nil
	})
	sink, err := testbed.In(there, func() (*net.UDPConn, error) {
		return net.ListenUDP("udp4", &net.UDPAddr{IP: far, Port: 7401})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	l := onAll(t, here, net.JoinHostPort(far.String(), "7401"))
	// comesFrom sends until something comes from an address of the node's, and reports whether it did.
	comesFrom := func(nic int, patience time.Duration) bool {
		want, _ := netip.AddrFromSlice(testbed.IP(0, nic))
		for until := time.Now().Add(patience); time.Now().Before(until); {
			if _, err := l.Send([]transport.Frame{{Dst: numbered(2), EtherType: transport.EtherTypeDefault, Payload: []byte("to you")}}); err != nil {
				t.Fatal(err)
			}
			_ = sink.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, from, err := sink.ReadFromUDPAddrPort(make([]byte, 2000)); err == nil && from.Addr().Unmap() == want {
				return true
			}
		}
		return false
	}
	for range 200 {
		if !comesFrom(0, 10*time.Second) {
			t.Fatal("nothing comes by the first interface")
		}
	}
	if err := here.SetUp(0, false); err != nil {
		t.Fatal(err)
	}
	if !comesFrom(1, 10*time.Second) {
		t.Error("the first interface is down, and nothing comes by the second")
	}
}
