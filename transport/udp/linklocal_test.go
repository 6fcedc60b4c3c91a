//go:build linux && !rawlane_portable

package udp_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// Link-local addresses lead to stations of their interface, by its name or number, with seeds, and
// where a link listens on all addresses. (Package net remembers interfaces for a minute, also those of
// another namespace.)
func TestLinkLocal(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	name, index := testbed.Interface(0), make([]string, 2)
	for k := range 2 {
		err := bed.Node(k).Do(func() error {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			index[k] = strconv.Itoa(l.Attrs().Index)
			for _, set := range []struct{ what, to string }{{"addr_gen_mode", "1"}, {"disable_ipv6", "0"}} {
				if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/"+set.what, []byte(set.to), 0); err != nil {
					return err
				}
			}
			four := &net.IPNet{IP: testbed.IP(k, 0), Mask: net.CIDRMask(24, 32)}
			six := &net.IPNet{IP: net.ParseIP(fmt.Sprintf("fe80::%d", k+1)), Mask: net.CIDRMask(64, 128)}
			return errors.Join(netlink.AddrDel(l, &netlink.Addr{IPNet: four}),
				netlink.AddrAdd(l, &netlink.Addr{IPNet: six, Flags: unix.IFA_F_NODAD}))
		})
		if err != nil {
			t.Skip(err) // a system without IPv6, or whose settings are read-only
		}
	}
	station := func(k int, zone string) string { return fmt.Sprintf("[fe80::%d%%%s]:27401", k+1, zone) }
	on := func(t *testing.T, k int, cfg udp.Config, listen string) *udp.Link {
		t.Helper()
		cfg.MAC = mac(k + 1)
		l, err := testbed.In(bed.Node(k), func() (*udp.Link, error) {
			if listen == "" {
				return udp.OpenInterface(name, cfg)
			}
			return udp.Open(listen, cfg)
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	others := func(addr string, n int) udp.Config {
		return udp.Config{Stations: []udp.Station{{Addr: addr, MAC: mac(n)}}}
	}
	for _, c := range []struct {
		name     string
		listen   string // of the first; the second knows where that is, and listens on its interface
		cfg, far udp.Config
	}{
		{"by multicast", "", udp.Config{}, udp.Config{}},
		{"by a seed", "", udp.Config{Seeds: []string{"127.0.0.1:9"}}, udp.Config{Seeds: []string{station(0, name)}}},
		{"by name", station(0, name), others(station(1, name), 2), others(station(0, name), 1)},
		{"by number", station(0, index[0]), others(station(1, index[0]), 2), others(station(0, index[1]), 1)},
		{"on all addresses", "[::]:27401", others(station(1, name), 2), others(station(0, name), 1)},
		{"on all addresses, of one unknown", "[::]:27401", udp.Config{}, others(station(0, name), 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			listen := station(1, name)
			if c.far.Stations == nil {
				listen = ""
			}
			if len(c.cfg.Seeds) > 0 {
				c.cfg.Seeds[0] = station(1, index[0])
			}
			a, b := on(t, 0, c.cfg, c.listen), on(t, 1, c.far, listen)
			defer a.Close()
			defer b.Close()
			for _, to := range []transport.MAC{transport.Broadcast, a.MAC()} {
				send(t, b, frame(to, []byte("there")))
				if got := receive(t, a, 1); string(got[0]) != "there" {
					t.Errorf("%q came", got[0])
				}
				send(t, a, frame(b.MAC(), []byte("back")))
				if got := receive(t, b, 1); string(got[0]) != "back" {
					t.Errorf("%q came", got[0])
				}
			}
		})
	}
}
