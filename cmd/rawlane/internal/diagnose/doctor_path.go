package diagnose

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// checkPaths refuses what is no address of a udp link: nobody is reached at port 0.
func checkPaths(addrs []string) error {
	for _, addr := range addrs {
		if udp.CheckAddr(addr) != nil || isPortZero(addr) {
			return cli.Misuse("--path %q: want ADDRESS[:PORT], such as 10.0.0.2:27401, node3 or [fd00::1]:27401, "+
				"with a port of 1 to 65535 or the name of one", addr)
		}
	}
	return nil
}

// isPortZero reports whether an address has a port, and that is 0.
func isPortZero(addr string) bool {
	_, name, err := net.SplitHostPort(addr) // not of an IPv6 address without brackets, whose end is no port
	if err != nil {
		return false
	}
	port, err := net.LookupPort("udp", name)
	return err == nil && port == 0
}

// examinePath finds out how long packets may be on the way to where a udp link listens.
func examinePath(ctx context.Context, addr string) finding {
	mtu, err := udp.PathMTU(ctx, addr)
	name := "path to " + addr + ", for a udp link"
	switch {
	case errors.Is(err, transport.ErrNotSupported):
		return judge(name, err, "ask a node that is on Linux")
	case err != nil:
		return judge(name, err, "check the address, and the routes: ip route get ADDRESS")
	}
	f := finding{Name: name, OK: true, Reason: fmt.Sprintf("no router on it has refused packets of %d bytes; "+
		"whether they arrive, rawlane matrix --check tells", mtu)}
	if own, ip := ownMTU(addr); mtu < own {
		f.OK = false
		f.Reason = fmt.Sprintf("packets of %d bytes, though the interface here takes %d: "+
			"links that were opened before send their longest frames in fragments (tx_fragmented)", mtu, own)
		f.Cure = fmt.Sprintf("restart the nodes, whose links then choose MTU %d by themselves, or set udp.Config.MTU",
			udp.LinkMTU(mtu, ip))
	}
	return f
}

// longestPacket is what the length in an IPv4 header can say, in bytes: an interface whose MTU is
// more, as the loopback's is, takes no longer ones.
const longestPacket = 1<<16 - 1

// ownMTU returns the MTU of the interface by which packets to an address leave, and the interface's
// IP address.
func ownMTU(addr string) (mtu int, ip netip.Addr) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = strings.Trim(addr, "[]")
	}
	conn, err := net.Dial("udp", net.JoinHostPort(host, fmt.Sprint(udp.DefaultPort)))
	if err != nil {
		return 0, ip
	}
	defer func() { _ = conn.Close() }()
	ip = conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	all, _ := net.Interfaces() // none, if it fails
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String()) // without a zone
			if err == nil && p.Addr() == ip.WithZone("") && (ip.Zone() == "" || ip.Zone() == i.Name) {
				return min(i.MTU, longestPacket), ip
			}
		}
	}
	return 0, ip
}
