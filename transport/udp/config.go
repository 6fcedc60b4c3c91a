package udp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/transport"
)

// Config of a link. The zero value is right for a station that is alone.
type Config struct {
	// MAC is the link's own Ethernet address. Zero means StationMAC of where it listens; if that is
	// every address of this host, of the first one that others can reach, or that is in Stations.
	MAC transport.MAC
	// Stations are the others. The link's own may be among them.
	Stations []Station
	// Seeds are places where other stations listen, one of which is enough: those that are heard
	// are introduced to each other. A seed is an IP address or host name and port, as in Station,
	// or SRV records of the DNS: "srv:_rawlane._udp.example.org". Names are looked up again from
	// time to time; Link.SeedErr says what stands in the way.
	Seeds []string
	// Resolver looks names up. nil means net.DefaultResolver.
	Resolver *net.Resolver
	// Group is an IP multicast group to which frames for groups and for all are sent, by Interface.
	// All its members listen on one port. Without one a copy is sent to each station.
	Group netip.Addr
	// Interface is the network interface of Group: the link listens on all addresses of its family
	// there and, on Linux, on no other interface. OpenInterface sets both.
	Interface string
	// MTU of the link in bytes: what a frame's payload may have. 0 means what fits, with a tag,
	// into a packet of the smallest MTU on the way to any station, as far as the system knows it;
	// MaxMTU at most.
	MTU int
	// EtherType of the frames to receive. 0 means transport.EtherTypeDefault;
	// transport.EtherTypeAny means all.
	EtherType transport.EtherType
	// ReceiveBuffer is how much the kernel may keep for the link, in bytes. 0 means
	// DefaultReceiveBuffer. Systems give less to an ordinary user: Linux net.core.rmem_max.
	ReceiveBuffer int
}

// Station is another link's address.
type Station struct {
	// Addr is an IP address or host name, and port: "10.0.0.2:7401", "[fd00::2]:7401",
	// "node2:7401". Without a port it is DefaultPort.
	Addr string
	MAC  transport.MAC // zero: StationMAC(Addr)
}

const (
	// DefaultPort is the port where none is given.
	DefaultPort = 27401
	// DefaultReceiveBuffer holds about 3,000 frames of 1,500 bytes.
	DefaultReceiveBuffer = 8 << 20
	// MaxMTU is the largest payload of a frame that is chosen where the network would take more,
	// as a loopback interface does.
	MaxMTU = 9000
	// MinMTU is what IPv6 leaves at least.
	MinMTU = 1280 - overheadIPv6

	overheadIPv4 = 20 + 8 + transport.MaxHeaderLen // of IP, UDP and a tagged frame's header
	overheadIPv6 = 40 + 8 + transport.MaxHeaderLen
	// maxFrame is the longest frame that a datagram holds.
	maxFrame = 65535 - 20 - 8
)

// The groups of OpenInterface: of this site alone (RFC 2365), and of this link (RFC 4291).
var (
	groupIPv4 = netip.MustParseAddr("239.255.116.27")
	groupIPv6 = netip.MustParseAddr("ff12::7261:776c")
)

// StationMAC returns the Ethernet address of a station with that IP address or host name and port:
// a locally administered one, computed from the text, with DefaultPort if it has none.
func StationMAC(addr string) transport.MAC {
	if full, err := withPort(addr); err == nil {
		addr = full
	}
	sum := sha256.Sum256([]byte(addr))
	m := transport.MAC(sum[:])
	m[0] = m[0]&^1 | 2
	return m
}

// unspecified is the address that stands for all of a's family.
func unspecified(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// addrForm says how an address is written.
const addrForm = "want an IP address or host name, and perhaps a port, such as 10.0.0.1:7401 or [fd00::1]:7401"

// CheckAddr says what is wrong with the form of an address, as Config, Station and Open take it: an
// IP address or host name, and perhaps a port, or the name of one. Host names are not looked up.
func CheckAddr(addr string) error {
	full, err := withPort(addr)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(full)
	if err == nil {
		_, err = net.LookupPort("udp", port)
	}
	return err
}

// withPort returns an address with its port. IP addresses have one form.
func withPort(addr string) (string, error) {
	if at, err := netip.ParseAddrPort(addr); err == nil {
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String(), nil
	}
	bare := addr
	if inside, ok := strings.CutPrefix(addr, "["); ok && strings.HasSuffix(inside, "]") {
		bare = inside[:len(inside)-1]
	}
	if ip, err := netip.ParseAddr(bare); err == nil {
		return netip.AddrPortFrom(ip.Unmap(), DefaultPort).String(), nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		host, port = addr, strconv.Itoa(DefaultPort)
	}
	if host == "" || port == "" || strings.ContainsAny(host, ":[]/ ") {
		return "", fmt.Errorf("not an address (%s)", addrForm)
	}
	if _, err := strconv.ParseUint(port, 10, 16); errors.Is(err, strconv.ErrRange) {
		return "", fmt.Errorf("port %s: want 65535 at most", port)
	}
	name := strings.TrimSuffix(host, ".")
	if _, err := netip.ParseAddr(host); err != nil &&
		strings.Trim(name[strings.LastIndexByte(name, '.')+1:], "0123456789") == "" {
		return "", fmt.Errorf("%s is no IP address, and no host's name ends in a number (%s)", host, addrForm)
	}
	return net.JoinHostPort(host, port), nil
}

// resolve finds the IP address and port that an address means, the first of several.
func resolve(ctx context.Context, r *net.Resolver, addr string) (netip.AddrPort, error) {
	all, err := resolveAll(ctx, r, addr)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q: %w", addr, err)
	}
	return all[0], nil
}

// resolveAll finds the IP addresses and port that an address means: one at least.
func resolveAll(ctx context.Context, r *net.Resolver, addr string) ([]netip.AddrPort, error) {
	addr, err := withPort(addr)
	if err != nil {
		return nil, err
	}
	if a, err := netip.ParseAddrPort(addr); err == nil {
		return []netip.AddrPort{a}, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	number, err := r.LookupPort(ctx, "udp", port)
	if err != nil {
		return nil, err
	}
	ips, err := r.LookupNetIP(ctx, "ip", host)
	if err == nil && len(ips) == 0 {
		err = errors.New("no address")
	}
	if err != nil {
		return nil, err
	}
	var all []netip.AddrPort
	for _, ip := range ips {
		all = append(all, netip.AddrPortFrom(ip.Unmap(), uint16(number)))
	}
	return all, nil
}
