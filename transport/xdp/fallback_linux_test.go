package xdp_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/xdp"
)

// A link that was left the choice gets the best mode that the driver has, and says why not a better
// one: a bridge runs no programs itself, and a TAP device has no zero-copy.
func TestModes_OfLesserDrivers(t *testing.T) {
	need(t)
	bed := testbed.ForTest(t, testbed.Config{})
	attrs := func(name string) netlink.LinkAttrs { a := netlink.NewLinkAttrs(); a.Name = name; return a }
	for _, c := range []struct {
		device   netlink.Link
		mode     xdp.Mode
		fallback string
	}{
		{&netlink.Bridge{LinkAttrs: attrs("lan0")}, xdp.Generic, "native XDP: not supported"},
		{&netlink.Tuntap{LinkAttrs: attrs("tap0"), Mode: netlink.TUNTAP_MODE_TAP, NonPersist: true, Queues: 1},
			xdp.Native, "zero-copy: not supported"},
	} {
		t.Run(c.device.Type(), func(t *testing.T) {
			l, err := testbed.In(bed.Node(0), func() (*xdp.Link, error) {
				if err := netlink.LinkAdd(c.device); err != nil {
					return nil, err
				}
				if tap, ok := c.device.(*netlink.Tuntap); ok {
					t.Cleanup(func() { _ = tap.Fds[0].Close() })
				}
				if err := netlink.LinkSetUp(c.device); err != nil {
					return nil, err
				}
				return xdp.Open(c.device.Attrs().Name, xdp.Config{})
			})
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrPermission) {
				t.Skip(err) // a system without such devices
			}
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if l.Mode() != c.mode || !strings.Contains(l.Fallback(), c.fallback) {
				t.Errorf("%v, %q; want %v, %q", l.Mode(), l.Fallback(), c.mode, c.fallback)
			}
		})
	}
}
