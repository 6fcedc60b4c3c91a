package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm"
	"github.com/rawlane/rawlane/transport/udp"
)

// overUDP is the kind of link that needs no privilege and no segment.
const overUDP = "udp"

// udpFlags define where the udp link of this node listens, and where it looks for others.
func (c *ClusterFlags) udpFlags(f *pflag.FlagSet) {
	f.StringVar(&c.listen, "listen", "",
		"run one node here, whose udp link listens on this ADDRESS[:PORT]; the others run the same elsewhere")
	f.StringVar(&c.seeds, "seeds", "",
		"where udp links of other nodes listen, one of which is enough: ADDRESS[:PORT],..., or srv:NAME of the DNS")
}

// validateUDP checks the flags of udp links, and chooses these if it is addresses that are given.
func (c *ClusterFlags) validateUDP() error {
	given := c.listen != "" || c.seeds != ""
	if c.Hostfile != "" {
		file, err := c.readHostfile()
		if err != nil {
			return err
		}
		if h := withoutAddress(file.Hosts); h != nil {
			return cli.Misuse("%s:%d: node %d has no IP address, and others have (want one of each: a name is one "+
				"with its port, as node3:%d)", c.Hostfile, h.NICs[0].Line, h.Node, udp.DefaultPort)
		}
		if !given {
			return c.validateAddresses(file.Hosts)
		}
	}
	switch {
	case !given:
		return nil
	case !c.Given("link"):
		c.Kind = overUDP
	case c.Kind != overUDP:
		return cli.Misuse("--listen and --seeds are of --link udp, and not of %s", c.Kind)
	}
	if c.listen != "" {
		if err := udp.CheckAddr(c.listen); err != nil {
			return cli.Misuse("--listen %q: %v", c.listen, err)
		}
	}
	if c.seeds != "" {
		for seed := range strings.SplitSeq(c.seeds, ",") {
			if err := udp.CheckSeed(seed); err != nil {
				return cli.Misuse("--seeds: %v", err)
			}
		}
	}
	switch {
	case c.NICs > 1:
		return cli.Misuse("--nics %d: --listen and --seeds are for one (a --hostfile lists more)", c.NICs)
	case c.listen != "" && c.ifname != "":
		return cli.Misuse("--listen and --interface: want one of the two")
	case c.listen != "" && c.seeds == "" && c.Hostfile == "":
		return cli.Misuse("--listen %s: where are the others? Give --seeds, or a --hostfile of addresses", c.listen)
	}
	return nil
}

// validateAddresses checks the flags beside a host file, and chooses udp links if it has addresses.
func (c *ClusterFlags) validateAddresses(hosts []cluster.Host) error {
	if !listsAddresses(hosts) {
		return nil
	}
	if !c.Given("link") {
		c.Kind = overUDP
	}
	switch {
	case c.ifname != "" && c.Kind == overUDP:
		return cli.Misuse("--interface %s and the addresses of %s: want one of the two", c.ifname, c.Hostfile)
	case c.ifname == "" && c.Kind != overUDP && kernelLinks[c.Kind] != nil:
		return cli.Misuse("--link %s: %s lists IP addresses, which are for --link udp (want that, "+
			"or a file of MACs or host names)", c.Kind, c.Hostfile)
	}
	return nil
}

// listsAddresses reports whether a host file is for udp links.
func listsAddresses(hosts []cluster.Host) bool {
	return !slices.ContainsFunc(hosts, lacksAddress)
}

func lacksAddress(h cluster.Host) bool { return h.NICs[0].Addr == "" }

// withoutAddress is the first host that has none where others have: nil if all are alike.
func withoutAddress(hosts []cluster.Host) *cluster.Host {
	i := slices.IndexFunc(hosts, lacksAddress)
	if i < 0 || !slices.ContainsFunc(hosts, func(h cluster.Host) bool { return !lacksAddress(h) }) {
		return nil
	}
	return &hosts[i]
}

// byAddress reports whether this node's links are known by where they listen, and by no interface.
func (c *ClusterFlags) byAddress(hosts []cluster.Host) bool {
	return c.Kind == overUDP && c.ifname == "" &&
		(c.listen != "" || c.seeds != "" || hosts != nil && listsAddresses(hosts))
}

// openUDP opens this node's udp links where the flags or the host file say. The links that it
// returns with an error are open, too.
func (c *ClusterFlags) openUDP(hosts []cluster.Host) (links []transport.Link, err error) {
	for nic := range c.NICs {
		var cfg udp.Config
		listen := c.listen
		if c.seeds != "" {
			cfg.Seeds = strings.Split(c.seeds, ",")
		}
		if hosts != nil && listsAddresses(hosts) {
			if cfg.Stations, err = cluster.Stations(hosts, nic); err != nil {
				return links, err
			}
			listen = cmp.Or(listen, cfg.Stations[c.Node].Addr)
		}
		if cfg.Stations == nil && cfg.Seeds == nil {
			return links, cli.Misuse("--hostfile %s: MACs and names do not tell where udp links listen "+
				"(want IP addresses, or --seeds)", c.Hostfile)
		}
		l, err := udp.Open(cmp.Or(listen, everyAddress(cfg.Seeds)), cfg)
		if err != nil {
			return links, err
		}
		links = append(links, l)
	}
	return links, nil
}

// everyAddress is where a udp link listens that was told where others do, and no more: on IPv6, if
// they are IP addresses of that.
func everyAddress(seeds []string) string {
	for _, s := range seeds {
		at, err := netip.ParseAddrPort(s)
		if err != nil {
			a, _ := netip.ParseAddr(strings.Trim(s, "[]")) // else it is a name
			at = netip.AddrPortFrom(a, 0)
		}
		if !at.Addr().Unmap().Is6() {
			return "0.0.0.0"
		}
	}
	return "[::]"
}

// linkFailure says of links why seeds could not be looked up, or stations not be met, and where in
// memory they were sought; or nil.
func linkFailure(links []transport.Link) error {
	var errs []error
	for _, l := range links {
		if s, ok := transport.As[interface{ SeedErr() error }](l); ok {
			errs = append(errs, s.SeedErr())
		}
		if s, ok := transport.As[*shm.Link](l); ok {
			errs = append(errs, s.MeetErr(), fmt.Errorf("%d others on this host have a link in %s, as this user",
				len(s.Stations()), s.Folder()))
		}
	}
	return errors.Join(errs...)
}

// udpFailure says what may keep udp links from meeting, which is neither a switch nor a VLAN; nil
// of other links. Many a cloud's network passes no IP multicast, and says nothing of it.
func (c *ClusterFlags) udpFailure(hosts []cluster.Host) error {
	switch {
	case c.Kind != overUDP:
		return nil
	case c.seeds != "" || c.byAddress(hosts):
		return errors.New("over udp: are the addresses those of the others, and do firewalls pass their UDP ports?")
	}
	return errors.New("udp links look for each other by IP multicast: where the network passes none, give --seeds")
}

// interfaceWith returns the name of the interface that a udp link listens on: of all, the first
// that is no loopback. It is "" if none has the address.
func interfaceWith(l transport.Link) string {
	u, ok := transport.As[*udp.Link](l)
	if !ok {
		return ""
	}
	at := u.Addr().Addr()
	all, _ := net.Interfaces() // for messages only
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			any := at.IsUnspecified() && i.Flags&net.FlagLoopback == 0 && p.Addr().Is4() == at.Is4()
			if err == nil && (any || p.Addr() == at) {
				return i.Name
			}
		}
	}
	return ""
}

// Refused reports whether there is no test bed because this user or system may not have one.
func Refused(err error) bool {
	return errors.Is(err, transport.ErrPermission) || errors.Is(err, transport.ErrNotSupported)
}

// LoopbackAddrs returns addresses of this host, with ports that are free now, for the udp links of
// nodes that have no network namespaces.
func LoopbackAddrs(n int) (addrs []string, err error) {
	for range n {
		l, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = l.Close() }()
		addrs = append(addrs, l.LocalAddr().String())
	}
	return addrs, nil
}

// onLoopback opens udp links of all nodes on this host's loopback.
func onLoopback(cfg testbed.Config) (links [][]transport.Link, err error) {
	links = make([][]transport.Link, cfg.Nodes)
	for range cfg.NICs {
		addrs, err := LoopbackAddrs(cfg.Nodes)
		if err != nil {
			return nil, err
		}
		var stations []udp.Station
		for _, a := range addrs {
			stations = append(stations, udp.Station{Addr: a})
		}
		for k, a := range addrs {
			l, err := udp.Open(a, udp.Config{Stations: stations})
			if err != nil {
				return nil, errors.Join(err, closeLinks(links))
			}
			links[k] = append(links[k], l)
		}
	}
	return links, nil
}

// NoNamespaces is the line that says what is done instead.
const NoNamespaces = "no network namespaces here: udp links on this host's loopback instead (%v)"

// StartHere starts programs without namespaces.
func StartHere(_ context.Context, _ int, p *exec.Cmd) error { return p.Start() }

// StartIn starts programs in a bed's namespaces.
func StartIn(bed *testbed.Bed) Starter {
	return func(_ context.Context, k int, p *exec.Cmd) error { return bed.Node(k).Start(p) }
}
