package start

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// openPort opens a UDP link on a port of its own, and tells the others where it listens: at an
// address of a family that all have.
func (j *Job) openPort(ctx context.Context, env func(string) string) (transport.Link, error) {
	ips, err := ownIPs(env)
	if err != nil {
		return nil, err
	}
	all, err := j.tell(ctx, "family", ips.families())
	if err != nil {
		return nil, err
	}
	family, err := oneFamily(all)
	if err != nil {
		return nil, err
	}
	link, err := udp.Open(net.JoinHostPort(ips[family], "0"), udp.Config{MAC: j.station(j.Node)})
	if err != nil {
		return nil, err
	}
	addrs, err := j.tell(ctx, "udp", link.Addr().String())
	for k, addr := range addrs {
		if k != j.Node {
			err = errors.Join(err, link.AddStation(udp.Station{Addr: addr, MAC: j.station(k)}))
		}
	}
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	return link, nil
}

// station is the locally administered address of one of the job's processes.
func (j *Job) station(node int) transport.MAC {
	h := j.hash()
	return transport.MAC{2, byte(h >> 16), byte(h >> 8), byte(h), byte(node >> 8), byte(node)}
}

// The families of addresses: the first that all have is taken.
var families = []string{"IPv4", "IPv6"}

// addresses is one address of each family that an interface has.
type addresses map[string]string

// families lists those that there are.
func (a addresses) families() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(families), func(f string) bool { return a[f] == "" }), "+")
}

// oneFamily chooses a family that all processes have, as a socket has one.
func oneFamily(all []string) (string, error) {
	var lacks []string
	for _, family := range families {
		k := slices.IndexFunc(all, func(has string) bool { return !strings.Contains(has, family) })
		if k < 0 {
			return family, nil
		}
		lacks = append(lacks, fmt.Sprintf("that of process %d has no %s address", k, family))
	}
	return "", fmt.Errorf("network interfaces: %s (want all to have one of the same family)", strings.Join(lacks, ", "))
}

// ownIPs returns the addresses of this node's interface.
func ownIPs(env func(string) string) (addresses, error) {
	name, err := networkInterface(env)
	if err != nil {
		return nil, err
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	addrs, err := i.Addrs()
	if err != nil {
		return nil, err
	}
	ips := addresses{}
	for _, a := range addrs {
		ip, is := a.(*net.IPNet)
		switch {
		case is && ip.IP.To4() != nil && ips["IPv4"] == "":
			ips["IPv4"] = ip.IP.String()
		case is && ip.IP.To4() == nil && ip.IP.IsGlobalUnicast():
			ips["IPv6"] = ip.IP.String()
		}
	}
	if len(ips) == 0 {
		return nil, fmt.Errorf("%s has no IP address", name)
	}
	return ips, nil
}
