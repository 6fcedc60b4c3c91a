package start

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
)

// Processes listen at addresses of a family that all have: IPv4 if they can, else IPv6.
func TestOneFamily(t *testing.T) {
	for all, want := range map[string]string{
		"IPv4 IPv4":           "IPv4",
		"IPv4+IPv6 IPv4":      "IPv4",
		"IPv4+IPv6 IPv4+IPv6": "IPv4",
		"IPv6 IPv4+IPv6 IPv6": "IPv6",
	} {
		if got, err := oneFamily(strings.Fields(all)); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", all, got, err, want)
		}
	}
	const want = "network interfaces: that of process 1 has no IPv4 address, that of process 0 has no IPv6 address"
	if got, err := oneFamily([]string{"IPv4", "IPv6"}); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// Of two hosts of one IPv6 network one has IPv4 alone besides: they meet by IPv6.
func TestMain_OneHostHasIPv4Besides(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{Nodes: 2})
	for node := range 2 {
		six := &net.IPNet{IP: net.ParseIP(fmt.Sprintf("fd00::%d", node+1)), Mask: net.CIDRMask(64, 128)}
		err := bed.Node(node).Do(func() error {
			name := testbed.Interface(0)
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("0"), 0),
				netlink.AddrAdd(l, &netlink.Addr{IPNet: six, Flags: unix.IFA_F_NODAD}))
		})
		if err != nil {
			t.Skip("no IPv6 here: ", err)
		}
	}
	if err := bed.Node(1).RemoveIP(0, testbed.IP(1, 0)); err != nil {
		t.Fatal(err)
	}
	shareAHost(t, bed, "", [3]string{testbed.SocketDir(t), testbed.SocketDir(t), testbed.SocketDir(t)})
}
