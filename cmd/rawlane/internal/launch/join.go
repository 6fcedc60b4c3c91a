package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/standstill"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm"
	"github.com/rawlane/rawlane/transport/udp"
	"github.com/rawlane/rawlane/transport/xdp"
	"github.com/rawlane/rawlane/vlan/manager"
)

// Member is this process as one node of several.
type Member struct {
	Endpoint   *mcd.Endpoint
	Membership *cluster.Membership
	NIC        string

	links   []transport.Link
	closers []func() error // of what Join has opened, in that order
}

// Join opens this machine's links and finds the other nodes.
func (c *ClusterFlags) Join(ctx context.Context) (*Member, error) {
	cores, err := c.Cores()
	if err != nil {
		return nil, err
	}
	if len(cores) > 0 {
		if err := pinSelf(cores[0]); err != nil {
			return nil, err
		}
	}
	hosts, err := c.hosts()
	if err != nil {
		return nil, err
	}
	if err := c.chooseNode(hosts); err != nil {
		return nil, err
	}
	defer time.AfterFunc(stillLooking, func() {
		c.note("node %d is looking for %d nodes on %s, for %v at most (--timeout)",
			c.Node, c.Nodes, cmp.Or(c.ifname, c.listen, c.Kind), c.timeout)
	}).Stop()
	m := &Member{NIC: c.interfaces()[0]}
	if err := m.open(ctx, c, hosts); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// readHostfile reads the host file, once.
func (c *ClusterFlags) readHostfile() (_ *cluster.Hostfile, err error) {
	if c.hostfile == nil {
		c.hostfile, err = cluster.ReadHostfile(c.Hostfile)
	}
	return c.hostfile, cli.ReadError("--hostfile", c.Hostfile, "want a line for each node, such as 0 10.0.0.1:7401, "+
		"or 0 node1 eth0", err)
}

// hosts are those of the host file, if there is one.
func (c *ClusterFlags) hosts() ([]cluster.Host, error) {
	if c.Hostfile == "" {
		return nil, nil
	}
	file, err := c.readHostfile()
	if err != nil {
		return nil, err
	}
	hosts := file.Hosts
	if c.Given("nodes") && c.Nodes != len(hosts) {
		return nil, cli.Misuse("--nodes %d: %s lists %d (leave --nodes out)", c.Nodes, c.Hostfile, len(hosts))
	}
	c.Nodes = len(hosts)
	if c.Nodes < 2 {
		return nil, fmt.Errorf("%s: one node alone (want two or more)", c.Hostfile)
	}
	return hosts, nil
}

// Size is how many nodes the cluster has, as the host file says or --nodes.
func (c *ClusterFlags) Size() (int, error) {
	_, err := c.hosts()
	return c.Nodes, err
}

// NoSuchNode is the usage error for a node that the cluster of this size does not have.
func (c *ClusterFlags) NoSuchNode(what string, size int) error {
	if c.Hostfile != "" {
		return cli.Misuse("%s: %s lists %d nodes", what, c.Hostfile, size)
	}
	return cli.Misuse("%s: there are %d nodes (give more --nodes)", what, size)
}

// chooseNode finds this node's number and interface, unless flags give them.
func (c *ClusterFlags) chooseNode(hosts []cluster.Host) error {
	if c.Node == NoNode && hosts == nil {
		return cli.Misuse("which node is this? Give --node, 0 to %d", c.Nodes-1)
	}
	if c.Node == NoNode {
		self, err := cluster.Self(hosts)
		if err != nil {
			return cli.Misuse("--node: not given, and %v", err)
		}
		c.Node = int(self.Node)
	}
	if c.Node >= c.Nodes {
		return cli.Misuse("--node %d: want 0 to %d", c.Node, c.Nodes-1)
	}
	if c.ifname == "" && hosts != nil && !c.byAddress(hosts) {
		if err := c.useInterfaces(hosts[c.Node]); err != nil {
			return err
		}
	}
	if c.ifname == "" && !c.byAddress(hosts) && c.Kind != OverSHM {
		if c.NICs > 1 {
			return cli.Misuse("--nics %d: on which network interfaces? Give --interface NAME,...", c.NICs)
		}
		var err error
		if c.ifname, err = ChooseInterface(); err != nil {
			return err
		}
		c.note("on %s, the one interface here that will do (--interface chooses another)", c.ifname)
	}
	return nil
}

// useInterfaces takes this node's interfaces from the host file. That may leave out the one of a
// host that has no other.
func (c *ClusterFlags) useInterfaces(host cluster.Host) error {
	if len(host.NICs) < c.NICs {
		return cli.Misuse("--nics %d: %s lists %s of each node", c.NICs, c.Hostfile, cli.Count(len(host.NICs), "NIC"))
	}
	var names []string
	for _, nic := range host.NICs[:c.NICs] {
		if nic.Interface == "" && c.NICs > 1 {
			return cli.Misuse("%s:%d: node %d has no interface (want one for each of --nics %d)",
				c.Hostfile, nic.Line, host.Node, c.NICs)
		}
		names = append(names, nic.Interface)
	}
	c.ifname = strings.Join(names, ",")
	return nil
}

// note tells the user something before there is a result.
func (c *ClusterFlags) note(format string, args ...any) {
	if c.notes != nil {
		fmt.Fprintf(c.notes(), "rawlane: "+format+"\n", args...)
	}
}

// stillLooking is after how long without all the nodes a user is told what is waited for.
const stillLooking = 3 * time.Second

// open attaches to the network. Discovery finds the addresses that the host file does not tell, and
// shows that all nodes are there.
func (m *Member) open(ctx context.Context, c *ClusterFlags, hosts []cluster.Host) error {
	router, err := c.router()
	if err != nil {
		return err
	}
	if c.Manager != "" {
		addr, err := manager.ParseAddr(c.Manager)
		if err != nil {
			return err
		}
		dialing, cancel := standstill.WithTimeout(ctx, c.timeout)
		session, err := manager.Dial(dialing, addr.Network, addr.Address)
		cancel()
		if err != nil {
			return err
		}
		m.closers = append(m.closers, session.Close)
		router = session.Table()
	}
	rec, err := c.recorder()
	if err != nil {
		return err
	}
	m.closers = append(m.closers, rec.close)
	rec.endAfter(ctx)
	links, err := c.openLinks(hosts)
	if err == nil {
		err = c.throughMemory(links, "")
	}
	if err == nil {
		m.Endpoint, err = c.endpoint(mcd.Config{Node: mcd.NodeID(c.Node), Router: router}, rec, links)
	}
	if err != nil {
		for _, l := range links {
			err = errors.Join(err, l.Close())
		}
		return err
	}
	m.links = links
	m.closers = append(m.closers, m.Endpoint.Close)
	m.NIC = cmp.Or(m.NIC, interfaceWith(links[0]))
	looking, cancel := standstill.WithTimeout(ctx, c.timeout)
	defer cancel()
	if m.Membership, err = cluster.Join(looking, m.Endpoint, cluster.Config{Nodes: c.Nodes}); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", cmp.Or(c.ifname, transport.Name(links[0])), err), linkFailure(links),
			c.udpFailure(hosts))
	}
	m.closers = append(m.closers, m.Membership.Close)
	for _, n := range m.Membership.Nodes() {
		if err := c.checkMACs(hosts, n.ID, n.MACs, fmt.Sprintf("the one that was met has %v", n.MACs)); err != nil {
			return err
		}
	}
	return nil
}

// openLinks opens a link on each interface. The links that it returns with an error are open, too.
func (c *ClusterFlags) openLinks(hosts []cluster.Host) (links []transport.Link, err error) {
	if c.byAddress(hosts) {
		return c.openUDP(hosts)
	}
	if c.Kind == OverSHM {
		return c.openSegments(c.Node, "")
	}
	var macs []transport.MAC
	for _, name := range c.interfaces() {
		l, err := c.openOn(name)
		if err != nil {
			return links, err
		}
		links, macs = append(links, l), append(macs, l.MAC())
	}
	return links, c.checkMACs(hosts, mcd.NodeID(c.Node), macs,
		fmt.Sprintf("%s here has %s (is --node right?)", c.ifname, strings.Trim(fmt.Sprint(macs), "[]")))
}

// openOn opens a link on an interface.
func (c *ClusterFlags) openOn(ifname string) (transport.Link, error) {
	if c.seeds != "" {
		return udp.OpenInterface(ifname, udp.Config{Seeds: strings.Split(c.seeds, ",")})
	}
	l, err := kernelLinks[c.Kind](ifname, c.options())
	if x, ok := l.(*xdp.Link); ok && err == nil && x.Fallback() != "" {
		c.note("xdp %s: %v mode (%s)", ifname, x.Mode(), x.Fallback())
	}
	return l, err
}

// checkMACs checks that a node has the addresses that the host file gives to it, on the networks
// that are used; found says what has these.
func (c *ClusterFlags) checkMACs(hosts []cluster.Host, node mcd.NodeID, macs []transport.MAC, found string) error {
	if hosts == nil {
		return nil
	}
	listed := hosts[node].NICs
	for _, nic := range listed[:min(c.NICs, len(listed))] {
		if !nic.MAC.IsZero() && !slices.Contains(macs, nic.MAC) {
			return fmt.Errorf("%s:%d: node %d has MAC %v, and %s", c.Hostfile, nic.Line, node, nic.MAC, found)
		}
	}
	for k, h := range hosts { // the node's own line may name a host
		for _, nic := range h.NICs {
			if mcd.NodeID(k) != node && slices.Contains(macs, nic.MAC) {
				return fmt.Errorf("%s:%d: MAC %v is node %d's, and %s", c.Hostfile, nic.Line, nic.MAC, k, found)
			}
		}
	}
	return nil
}

// InMemory returns the processes of the stations that are reached through shared memory now.
func (m *Member) InMemory() map[transport.MAC]int {
	processes := make(map[transport.MAC]int)
	for _, l := range m.links {
		if s, ok := transport.As[*shm.Link](l); ok {
			for _, station := range s.Stations() {
				processes[station.MAC] = station.PID
			}
		}
	}
	return processes
}

// Close closes everything that Join opened.
func (m *Member) Close() error {
	var errs []error
	for _, c := range slices.Backward(m.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
