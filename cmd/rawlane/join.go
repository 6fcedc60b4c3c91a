package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/rawlane/rawlane/cluster"
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

// member is this process as one node of several.
type member struct {
	ep         *mcd.Endpoint
	membership *cluster.Membership
	recorder   *recorder
	session    *manager.Session // with the node's manager; nil without
	nic        string
}

// join opens this machine's link and meets the other nodes.
func (p *place) join(ctx context.Context) (*member, error) {
	cores, err := p.cores()
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
	m := &member{nic: p.interfaces()[0]}
	if err := m.open(ctx, p, hosts); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// hosts reads the host file, if there is one.
func (p *place) hosts() ([]cluster.Host, error) {
	if p.hostfile == "" {
		return nil, nil
	}
	hosts, err := cluster.ReadHostfile(p.hostfile)
	if err != nil {
		return nil, err
	}
	if p.explicit("nodes") && p.nodes != len(hosts) {
		return nil, misuse("--nodes %d: %s lists %d (leave --nodes out)", p.nodes, p.hostfile, len(hosts))
	}
	p.nodes = len(hosts)
	if p.nodes < 2 {
		return nil, fmt.Errorf("%s: one node alone (want two or more)", p.hostfile)
	}
	return hosts, nil
}

// choose settles which node this is, and its interface.
func (p *place) choose(hosts []cluster.Host) error {
	if p.node == noNode && hosts == nil {
		return misuse("which node is this? Give --node, 0 to %d", p.nodes-1)
	}
	if p.node == noNode {
		self, err := cluster.Self(hosts)
		if err != nil {
			return misuse("--node: not given, and %v", err)
		}
		p.node = int(self.Node)
	}
	if p.node >= p.nodes {
		return misuse("--node %d: want 0 to %d", p.node, p.nodes-1)
	}
	if p.ifname == "" && hosts != nil {
		p.ifname = hosts[p.node].NICs[0].Interface
	}
	if p.ifname == "" {
		var err error
		p.ifname, err = chooseInterface()
		return err
	}
	return nil
}

// open attaches to the network. Addresses that the host file does not tell are found by discovery, which also makes
// sure that all are there.
func (m *member) open(ctx context.Context, p *place, hosts []cluster.Host) error {
	router, err := p.router()
	if err != nil {
		return err
	}
	if p.manager != "" {
		addr, err := manager.ParseAddr(p.manager)
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
			links[nic], err = p.faults.wrap(links[nic], p.node)
		}
	}
	if err == nil {
		m.ep, err = mcd.Open(mcd.Config{Cluster: mcd.ClusterID(p.cluster), Node: mcd.NodeID(p.node), Router: router}, links...)
	}
	if err != nil {
		for _, l := range links {
			err = errors.Join(err, l.Close())
		}
		return err
	}
	m.membership, err = cluster.Join(ctx, m.ep, cluster.Config{Nodes: p.nodes})
	if err != nil {
		return fmt.Errorf("%s: %w", p.ifname, err)
	}
	return m.agrees(p, hosts)
}

// openLinks opens a link on each interface. With an error, those that are returned are still open.
func (m *member) openLinks(p *place, hosts []cluster.Host) (links []transport.Link, err error) {
	for nic, name := range p.interfaces() {
		l, err := kernelLinks[p.kind](name)
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
func (p *place) matches(hosts []cluster.Host, mac transport.MAC) error {
	if hosts == nil {
		return nil
	}
	if nic := hosts[p.node].NICs[0]; !nic.MAC.IsZero() && nic.MAC != mac {
		return fmt.Errorf("%s:%d: node %d has MAC %v, and %s here has %v (is --node right?)", p.hostfile, nic.Line, p.node, nic.MAC, p.ifname, mac)
	}
	return nil
}

// agrees checks that the nodes that were met are those of the host file.
func (m *member) agrees(p *place, hosts []cluster.Host) error {
	for _, n := range m.membership.Nodes() {
		if hosts == nil {
			break
		}
		if nic := hosts[n.ID].NICs[0]; !nic.MAC.IsZero() && !slices.Contains(n.MACs, nic.MAC) {
			return fmt.Errorf("%s:%d: node %d has MAC %v, and the one that was met has %v", p.hostfile, nic.Line, n.ID, nic.MAC, n.MACs)
		}
	}
	return nil
}

func (m *member) close() error {
	var errs []error
	if m.membership != nil {
		errs = append(errs, m.membership.Close())
	}
	if m.ep != nil {
		errs = append(errs, m.ep.Close())
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
func (p *place) recorder() (*recorder, error) {
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
