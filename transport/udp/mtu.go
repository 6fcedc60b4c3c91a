package udp

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
)

// unknownMTU is the MTU of a path that the system does not tell: it does not count.
const unknownMTU = math.MaxInt

// interfaceMTU returns the MTU of the interface that has an address; of all that are up, the
// smallest, if the address stands for all.
func interfaceMTU(at netip.Addr) int {
	mtu := 0
	for ifi := range interfaces() {
		if at.IsUnspecified() || ifi.has(at) {
			if mtu == 0 || ifi.MTU < mtu {
				mtu = ifi.MTU
			}
		}
	}
	if mtu == 0 {
		return ethernetMTU
	}
	return mtu
}

// ownAddresses lists the addresses of this host that others can reach, of the family of all.
func ownAddresses(all netip.Addr) (own []netip.Addr) {
	for ifi := range interfaces() {
		for _, a := range ifi.addrs {
			if a.Is4() == all.Is4() && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
				own = append(own, a)
			}
		}
	}
	return own
}

// PathMTU finds out how long an IP packet may be on the way to where a link listens. It sends up to
// five packets of the length that the system takes for right, and awaits what routers say to it.
// Errors: what leads nowhere; transport.ErrNotSupported, on other systems than Linux.
func PathMTU(ctx context.Context, addr string) (mtu int, err error) {
	to, err := resolve(ctx, net.DefaultResolver, addr)
	if err == nil {
		mtu, err = probePath(ctx, to, StationMAC(addr))
	}
	if err != nil {
		return 0, fmt.Errorf("path to %s: %w", addr, err)
	}
	return mtu, nil
}

// LinkMTU returns the MTU that a link has of itself where the packets to a station may have that
// length.
func LinkMTU(packet int, station netip.Addr) int {
	if station.Is4() {
		packet -= overheadIPv4
	} else {
		packet -= overheadIPv6
	}
	return min(max(packet, MinMTU), MaxMTU)
}

// ethernetMTU stands for what is not known of an interface.
const ethernetMTU = 1500

// publicAddr returns an address that the internet routes, if a link that listens on at listens on
// one. A member of an IP multicast group is reached by all addresses of its interface, as its
// socket has to be bound to none.
func publicAddr(at netip.Addr, group bool) (netip.Addr, bool) {
	if !at.IsUnspecified() && (!group || isPublic(at)) {
		return at, isPublic(at)
	}
	for ifi := range interfaces() {
		if onInterfaceAlone && !at.IsUnspecified() && !ifi.has(at) {
			continue
		}
		for _, a := range ifi.addrs {
			if isPublic(a) && (a.Is4() || at.Is6()) {
				return a, true
			}
		}
	}
	return at, false
}

var carrierNAT = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598

func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsGlobalUnicast() && !a.IsPrivate() && !carrierNAT.Contains(a)
}

// hostInterface is one that is up, with its addresses.
type hostInterface struct {
	net.Interface
	addrs []netip.Addr
}

func (i *hostInterface) has(a netip.Addr) bool {
	for _, own := range i.addrs {
		if own == a.WithZone("") {
			return true
		}
	}
	return false
}

// interfaces yields those that are up. What the system does not tell is left out.
func interfaces() func(yield func(*hostInterface) bool) {
	return func(yield func(*hostInterface) bool) {
		all, _ := net.Interfaces()
		for _, ifi := range all {
			if ifi.Flags&net.FlagUp == 0 {
				continue
			}
			h := &hostInterface{Interface: ifi}
			addrs, _ := ifi.Addrs()
			for _, a := range addrs {
				if n, ok := a.(*net.IPNet); ok {
					if ip, ok := netip.AddrFromSlice(n.IP); ok {
						h.addrs = append(h.addrs, ip.Unmap())
					}
				}
			}
			if !yield(h) {
				return
			}
		}
	}
}
