//go:build linux && !rawlane_portable

package udp_test

import (
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// A link on all addresses of IPv6 has stations of IPv4, too, which it has heard: what is too long
// for the way to them is sent in fragments that are counted.
func TestPathShrinks_StationOfIPv4(t *testing.T) {
	bed, _, _, hop := routed(t)
	mac := transport.MAC{2, 0, 0, 0, 0, 1}
	a, err := testbed.In(bed.Node(0), func() (*udp.Link, error) { return udp.Open("[::]:7402", udp.Config{MAC: mac}) })
	if err != nil {
		t.Skip(err) // a system without IPv6
	}
	defer a.Close()
	b, err := testbed.In(bed.Node(2), func() (*udp.Link, error) {
		return udp.Open(fmt.Sprintf("%v:7402", testbed.IP(2, 1)), udp.Config{
			Stations: []udp.Station{{Addr: fmt.Sprintf("%v:7402", testbed.IP(0, 0)), MAC: mac}},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	send(t, b, frame(a.MAC(), []byte("here")))
	receive(t, a, 1)
	const count = 40
	pass := func(size int) {
		t.Helper()
		send(t, a, numberedFrames(b.MAC(), 0, count, size)...)
		receive(t, b, count)
	}
	pass(a.MTU())
	hop(1300)
	if err := bed.Node(0).Do(func() error { _, err := udp.PathMTU(t.Context(), b.Addr().String()); return err }); err != nil {
		t.Fatal(err)
	}
	pass(a.MTU())
	if c := a.Counters(); c.TxFragmented != count {
		t.Errorf("%d frames in fragments, want %d", c.TxFragmented, count)
	}
}
