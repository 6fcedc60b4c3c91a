package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/capture"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/vlan/manager"
)

// kernelLinks opens links on a network interface, by kind.
var kernelLinks = map[string]func(ifname string) (transport.Link, error){
	"packet": func(ifname string) (transport.Link, error) { return packet.Open(ifname, packet.Config{}) },
	"ring":   func(ifname string) (transport.Link, error) { return ring.Open(ifname, ring.Config{}) },
}

// Member is this process as one node of several.
type Member struct {
	Endpoint   *mcd.Endpoint
	Membership *cluster.Membership
	recorder   *recorder
	session    *manager.Session // with the node's manager; nil without
	NIC        string
}

// Join opens this machine's link and meets the other nodes.
func (p *ClusterFlags) Join(ctx context.Context) (*Member, error) {
	cores, err := p.Cores()
	if err != nil {
		return nil, err
	}
	if len(cores) > 0 {
		if err := pinSelf(cores[0]); err != nil {
			return nil, err
		}
	}
	hosts, err := p.hosts()
	if err != nil {
		return nil, err
	}
	if err := p.choose(hosts); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	m := &Member{NIC: p.interfaces()[0]}
	if err := m.open(ctx, p, hosts); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// hosts reads the host file, if there is one.
func (p *ClusterFlags) hosts() ([]cluster.Host, error) {
	if p.Hostfile == "" {
		return nil, nil
	}
	hosts, err := cluster.ReadHostfile(p.Hostfile)
	if err != nil {
		return nil, err
	}
	if p.explicit("nodes") && p.Nodes != len(hosts) {
		return nil, cli.Misuse("--nodes %d: %s lists %d (leave --nodes out)", p.Nodes, p.Hostfile, len(hosts))
	}
	p.Nodes = len(hosts)
	if p.Nodes < 2 {
		return nil, fmt.Errorf("%s: one node alone (want two or more)", p.Hostfile)
	}
	return hosts, nil
}

// choose settles which node this is, and its interface.
func (p *ClusterFlags) choose(hosts []cluster.Host) error {
	if p.Node == NoNode && hosts == nil {
		return cli.Misuse("which node is this? Give --node, 0 to %d", p.Nodes-1)
	}
	if p.Node == NoNode {
		self, err := cluster.Self(hosts)
		if err != nil {
			return cli.Misuse("--node: not given, and %v", err)
		}
		p.Node = int(self.Node)
	}
	if p.Node >= p.Nodes {
		return cli.Misuse("--node %d: want 0 to %d", p.Node, p.Nodes-1)
	}
	if p.ifname == "" && hosts != nil {
		p.ifname = hosts[p.Node].NICs[0].Interface
	}
	if p.ifname == "" {
		var err error
		p.ifname, err = ChooseInterface()
		return err
	}
	return nil
}

// open attaches to the network. Addresses that the host file does not tell are found by discovery,
// which also makes sure that all are there.
func (m *Member) open(ctx context.Context, p *ClusterFlags, hosts []cluster.Host) error {
	router, err := p.router()
	if err != nil {
		return err
	}
	if p.Manager != "" {
		addr, err := manager.ParseAddr(p.Manager)
		if err != nil {
			return err
		}
		if m.session, err = manager.Dial(ctx, addr.Network, addr.Address); err != nil {
			return err
		}
		router = m.session.Table()
	}
	if m.recorder, err = p.recorder(); err != nil {
		return err
	}
	links, err := m.openLinks(p, hosts)
	for nic := range links {
		if err == nil {
			links[nic], err = p.Faults.wrap(links[nic], p.Node)
		}
	}
	if err == nil {
		m.Endpoint, err = mcd.Open(mcd.Config{Cluster: mcd.ClusterID(p.cluster), Node: mcd.NodeID(p.Node), Router: router}, links...)
	}
	if err != nil {
		for _, l := range links {
			err = errors.Join(err, l.Close())
		}
		return err
	}
	m.Membership, err = cluster.Join(ctx, m.Endpoint, cluster.Config{Nodes: p.Nodes})
	if err != nil {
		return fmt.Errorf("%s: %w", p.ifname, err)
	}
	return m.agrees(p, hosts)
}

// openLinks opens a link on each interface. With an error, those that are returned are still open.
func (m *Member) openLinks(p *ClusterFlags, hosts []cluster.Host) (links []transport.Link, err error) {
	for nic, name := range p.interfaces() {
		l, err := kernelLinks[p.Kind](name)
		if err != nil {
			return links, err
		}
		links = append(links, l)
		if nic > 0 {
			continue
		}
		if err := p.matches(hosts, l.MAC()); err != nil {
			return links, err
		}
		if links[0], err = m.recorder.wrap(l); err != nil {
			return links, err
		}
	}
	return links, nil
}

// matches checks that the interface is the one that the host file gives to this node.
func (p *ClusterFlags) matches(hosts []cluster.Host, mac transport.MAC) error {
	if hosts == nil {
		return nil
	}
	if nic := hosts[p.Node].NICs[0]; !nic.MAC.IsZero() && nic.MAC != mac {
		return fmt.Errorf("%s:%d: node %d has MAC %v, and %s here has %v (is --node right?)", p.Hostfile, nic.Line, p.Node, nic.MAC, p.ifname, mac)
	}
	return nil
}

// agrees checks that the nodes that were met are those of the host file.
func (m *Member) agrees(p *ClusterFlags, hosts []cluster.Host) error {
	for _, n := range m.Membership.Nodes() {
		if hosts == nil {
			break
		}
		if nic := hosts[n.ID].NICs[0]; !nic.MAC.IsZero() && !slices.Contains(n.MACs, nic.MAC) {
			return fmt.Errorf("%s:%d: node %d has MAC %v, and the one that was met has %v", p.Hostfile, nic.Line, n.ID, nic.MAC, n.MACs)
		}
	}
	return nil
}

func (m *Member) Close() error {
	var errs []error
	if m.Membership != nil {
		errs = append(errs, m.Membership.Close())
	}
	if m.Endpoint != nil {
		errs = append(errs, m.Endpoint.Close())
	}
	if m.session != nil {
		errs = append(errs, m.session.Close())
	}
	return errors.Join(append(errs, m.recorder.close())...)
}

// recorder writes a link's frames to a file. A nil recorder does nothing.
type recorder struct {
	out  *os.File
	file *capture.File
}

// recorder makes the file of --capture.
func (p *ClusterFlags) recorder() (*recorder, error) {
	if p.captureTo == "" {
		return nil, nil
	}
	out, err := os.Create(p.captureTo)
	var path *fs.PathError
	if errors.As(err, &path) {
		return nil, fmt.Errorf("--capture %s: %w", p.captureTo, path.Err)
	}
	return &recorder{out: out, file: capture.NewFile(out)}, err
}

// wrap returns l, or a link that records l.
func (r *recorder) wrap(l transport.Link) (transport.Link, error) {
	if r == nil {
		return l, nil
	}
	recorded, err := r.file.Wrap(l)
	if err != nil {
		return l, err
	}
	return recorded, nil
}

func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.file.Close(), r.out.Close())
}
