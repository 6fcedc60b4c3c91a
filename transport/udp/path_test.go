//go:build linux && !rawlane_portable

package udp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// routed makes two nodes on networks of their own, with a router between them. hop sets the MTU of
// the second network, where the router is.
func routed(t *testing.T) (bed *testbed.Bed, a, b *udp.Link, hop func(mtu int)) {
	t.Helper()
	bed = testbed.ForTest(t, testbed.Config{Nodes: 3, NICs: 2})
	route := func(node, to, nic int) {
		err := bed.Node(node).Do(func() error {
			l, err := netlink.LinkByName(testbed.Interface(nic))
			if err != nil {
				return err
			}
			dst := &net.IPNet{IP: testbed.IP(to, 1-nic), Mask: net.CIDRMask(32, 32)}
			// The other network's own route goes first.
			return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, Gw: testbed.IP(1, nic)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for node, unused := range map[int]int{0: 1, 2: 0} {
		if err := bed.Node(node).Remove(unused); err != nil {
			t.Fatal(err)
		}
	}
	route(0, 2, 0)
	route(2, 0, 1)
	err := bed.Node(1).Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	if err != nil {
		t.Skip(err) // a system whose settings are read-only
	}
	at := []string{fmt.Sprintf("%v:7401", testbed.IP(0, 0)), fmt.Sprintf("%v:7401", testbed.IP(2, 1))}
	for k, node := range []int{0, 2} {
		err := bed.Node(node).Do(func() error {
			l, err := udp.Open(at[k], udp.Config{Stations: []udp.Station{{Addr: at[0]}, {Addr: at[1]}}})
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = l.Close() })
			a, b = b, l
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return bed, a, b, func(mtu int) {
		if err := bed.Node(1).SetMTU(1, mtu); err != nil {
			t.Fatal(err)
		}
	}
}

// numbered are frames of a length to b, each with its number.
func numberedFrames(to transport.MAC, first, count, size int) (frames []transport.Frame) {
	for k := range count {
		payload := binary.BigEndian.AppendUint32(nil, uint32(first+k))
		frames = append(frames, frame(to, append(payload, make([]byte, size-4)...)))
	}
	return frames
}

// A path that takes less than it did is found out by the first frame that a router refuses. From
// then on long frames go in fragments, and are counted; short ones leave in trains, as before.
func TestPathShrinks(t *testing.T) {
	bed, a, b, hop := routed(t)
	next := 0
	pass := func(size int) {
		t.Helper()
		const count = 40
		send(t, a, numberedFrames(b.MAC(), next, count, size)...)
		for i, got := range receive(t, b, count) {
			if n := int(binary.BigEndian.Uint32(got)); n != next+i || len(got) != size {
				t.Fatalf("frame %d of %d bytes, want %d of %d", n, len(got), next+i, size)
			}
		}
		next += count
	}
	pass(a.MTU())
	if c := a.Counters(); c.TxFragmented != 0 {
		t.Errorf("%+v", c)
	}
	probe := func() (mtu int) {
		err := bed.Node(0).Do(func() (err error) { mtu, err = udp.PathMTU(context.Background(), b.Addr().String()); return err })
		if err != nil {
			t.Fatal(err)
		}
		return mtu
	}
	if mtu := probe(); mtu != 1500 {
		t.Errorf("the path takes %d, want 1500", mtu)
	}
	hop(1300)
	if mtu := probe(); mtu != 1300 { // what it finds out, the kernel knows
		t.Errorf("the path takes %d, want 1300", mtu)
	}
	pass(a.MTU())
	c := a.Counters()
	if c.TxFragmented != 40 {
		t.Errorf("%d frames in fragments, want 40", c.TxFragmented)
	}
	pass(1000)
	if again := a.Counters(); again.TxFragmented != c.TxFragmented || again.TxRefused != 0 {
		t.Errorf("%+v, %+v", c, again)
	}
	short, err := udp.PathMTU(context.Background(), "no address: at all")
	if err == nil {
		t.Errorf("%d", short)
	}
}

// A link's MTU is that of the narrowest route to a station; one to which no route leads does not
// count. To ask leaves no descriptor.
func TestOpen_MTUOfRoutes(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	const far, nowhere = "10.9.8.7", "192.0.2.1"
	err := bed.Node(0).Do(func() error {
		l, err := netlink.LinkByName(testbed.Interface(0))
		if err != nil {
			return err
		}
		dst := &net.IPNet{IP: net.ParseIP(far), Mask: net.CIDRMask(32, 32)}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, MTU: 1400})
	})
	if err != nil {
		t.Fatal(err)
	}
	descriptors := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(open)
	}
	at, peer := fmt.Sprintf("%v:7401", testbed.IP(0, 0)), fmt.Sprintf("%v:7401", testbed.IP(1, 0))
	before := 0
	for round := range 3 {
		for _, c := range []struct {
			stations []string
			want     int // of a packet
		}{{nil, 1500}, {[]string{peer}, 1500}, {[]string{nowhere + ":7401"}, 1500}, {[]string{peer, far + ":7401", nowhere + ":7401"}, 1400}} {
			err := bed.Node(0).Do(func() error {
				var cfg udp.Config
				for _, s := range c.stations {
					cfg.Stations = append(cfg.Stations, udp.Station{Addr: s})
				}
				l, err := udp.Open(at, cfg)
				if err != nil {
					return err
				}
				if want := c.want - 20 - 8 - transport.MaxHeaderLen; l.MTU() != want {
					t.Errorf("%v: MTU %d, want %d", c.stations, l.MTU(), want)
				}
				return l.Close()
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := descriptors(); round == 0 {
			before = n // with what the runtime has opened by now
		} else if n != before {
			t.Errorf("round %d: %d descriptors are open, before: %d", round, n, before)
		}
	}
}

// Where the socket's buffer is full of frames that wait for a slow line, Send says how many it took,
// and each refusal is counted.
func TestSend_NoRoom(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	a, b := testbed.OpenPair(t, bed, func(name string) (*udp.Link, error) { return udp.OpenInterface(name, udp.Config{}) })
	err := bed.Node(0).Do(func() error {
		l, err := netlink.LinkByName(testbed.Interface(0))
		if err != nil {
			return err
		}
		attrs := netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
		return netlink.QdiscReplace(&netlink.Tbf{QdiscAttrs: attrs, Rate: 1000, Limit: 1 << 30, Buffer: 1 << 26})
	})
	if errors.Is(err, unix.ENOENT) {
		t.Skip("the kernel has no sch_tbf")
	}
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for busy := uint64(0); busy < 3; {
		n, err := a.Send(numberedFrames(b.MAC(), taken, 200, 1000))
		if taken += n; errors.Is(err, transport.ErrBusy) {
			busy++
		} else if err != nil || n != 200 || taken > 1<<16 {
			t.Fatalf("%d frames taken: %v", taken, err)
		}
		if c := a.Counters(); c.TxBusy != busy || c.TxFrames != uint64(taken) || c.TxRefused != 0 {
			t.Fatalf("%+v, want %d frames and %d times busy", c, taken, busy)
		}
	}
}
