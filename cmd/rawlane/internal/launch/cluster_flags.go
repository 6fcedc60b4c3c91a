// Package launch starts the nodes that a verb needs: in memory, in network namespaces, or one of
// them on this machine. It has the flags that say where, opens links and endpoints, and brings
// results back.
package launch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
)

// place says where the nodes of a verb run: in memory, in network namespaces of their own, or on
// machines that each run this command.
type ClusterFlags struct {
	Kind      string
	Nodes     int
	NICs      int
	Node      int
	ifname    string // several, for several NICs, separated by commas
	Hostfile  string
	cluster   uint32
	MTU       int
	VID, PCP  int
	dei       bool
	Manager   string
	captureTo string
	Pin       string
	timeout   time.Duration
	Mode      string
	Faults    Faults
	Grace     time.Duration // that the other nodes' processes get to end by themselves when one has failed
	explicit  func(flag string) bool
}

// Values of flags that mean "not given": none that anybody types, so that -1 is refused as other
// wrong numbers are.
const (
	NoNode = math.MinInt
	NoVID  = math.MinInt
)

// maxNodes keeps a typing error from taking the machine's memory.
const maxNodes = 250

func (p *ClusterFlags) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.Kind, "link", "fabric", "kind of link: "+LinkKinds())
	f.IntVar(&p.Nodes, "nodes", 2, "number of nodes")
	f.IntVar(&p.MTU, "mtu", fabric.DefaultMTU, "MTU of the fabric or the namespaces' interfaces, in bytes")
	f.StringVar(&p.captureTo, "capture", "", "write node 0's frames to this file, as pcapng")
	f.StringVar(&p.Pin, "pin", "auto", "processor cores, node by node (0,1), of one process per node; auto, or none")
	p.TagFlags(cmd)
	p.MachineFlags(cmd)
}

// NICsFlag is for verbs that use several networks.
func (p *ClusterFlags) NICsFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.NICs, "nics", 1, "networks: each node has a NIC on each")
}

// interfaces lists the names of --interface.
func (p *ClusterFlags) interfaces() []string { return strings.Split(p.ifname, ",") }

func (p *ClusterFlags) TagFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&p.VID, "vid", NoVID, "send with this VLAN tag, 0 (priority only) to 4094")
	f.IntVar(&p.PCP, "pcp", 0, "priority in the tag, 0 to 7")
	f.BoolVar(&p.dei, "dei", false, "drop-eligible bit of the tag")
	f.Lookup("vid").DefValue = "untagged"
}

// MachineFlags are those by which each machine of a real cluster says what it is.
func (p *ClusterFlags) MachineFlags(cmd *cobra.Command) {
	p.NICs = 1
	f := cmd.Flags()
	f.StringVar(&p.ifname, "interface", "", "run one node here, on this network interface; the others run the same elsewhere")
	f.StringVar(&p.Hostfile, "hostfile", "", "file that lists the nodes: number, MAC or host name, interface")
	f.IntVar(&p.Node, "node", NoNode, "this node's number")
	f.Uint32Var(&p.cluster, "cluster", 1, "cluster id: tells this run from others on the segment")
	f.StringVar(&p.Manager, "manager", "", "send by the routes of this node's manager: unix:PATH or HOST:PORT")
	f.DurationVar(&p.timeout, "timeout", 30*time.Second, "how long to look for the other nodes")
	f.Lookup("node").DefValue = "by the hostfile"
	p.explicit = f.Changed
}

// Here reports whether this process is one node, and others are elsewhere.
func (p *ClusterFlags) Here() bool { return p.ifname != "" || p.Hostfile != "" || p.Node != NoNode }

// Validate checks what can be told from the flags alone.
func (p *ClusterFlags) Validate() error {
	if p.Here() && !p.explicit("link") {
		p.Kind = "ring"
	}
	if _, ok := demoNets[p.Kind]; !ok {
		return cli.Misuse("--link %q: no such kind (want one of %s)", p.Kind, LinkKinds())
	}
	if p.Nodes < 2 || p.Nodes > maxNodes {
		return cli.Misuse("--nodes %d: want 2 to %d", p.Nodes, maxNodes)
	}
	if p.Here() && p.Kind == "fabric" {
		return cli.Misuse("--link fabric is in memory, and --interface, --hostfile and --node are for real machines: give one or the other")
	}
	if p.NICs < 1 || p.NICs > testbed.MaxNICs {
		return cli.Misuse("--nics %d: want 1 to %d", p.NICs, testbed.MaxNICs)
	}
	if p.ifname != "" && len(p.interfaces()) != p.NICs {
		return cli.Misuse("--interface %s: names %d (want %d, one for each network)", p.ifname, len(p.interfaces()), p.NICs)
	}
	if err := p.Faults.validate(); err != nil {
		return err
	}
	if p.MTU < fabric.MinMTU || p.MTU > fabric.MaxMTU {
		return cli.Misuse("--mtu %d: want %d to %d", p.MTU, fabric.MinMTU, fabric.MaxMTU)
	}
	if p.Here() && p.explicit("mtu") {
		return cli.Misuse("--mtu is for the fabric and for namespaces; set a real interface's with: ip link set %s mtu %d", cmp.Or(p.ifname, "NAME"), p.MTU)
	}
	if p.timeout <= 0 {
		return cli.Misuse("--timeout %v: want more than 0", p.timeout)
	}
	if p.Node != NoNode && (p.Node < 0 || p.Node >= p.Nodes && p.Hostfile == "") {
		return cli.Misuse("--node %d: want 0 to %d, or more --nodes", p.Node, p.Nodes-1)
	}
	if p.Manager != "" && !p.Here() {
		return cli.Misuse("--manager: is of one node: give --node, and run the others elsewhere")
	}
	if _, err := p.router(); err != nil {
		return cli.AsMisuse(err)
	}
	_, err := p.Cores()
	return err
}

// router tags as the flags say.
func (p *ClusterFlags) router() (vlan.Router, error) {
	if p.Manager != "" {
		if p.VID != NoVID {
			return nil, fmt.Errorf("--vid and --manager: want one of the two")
		}
		_, err := manager.ParseAddr(p.Manager)
		return nil, err // open asks it
	}
	if p.VID == NoVID {
		if p.PCP != 0 || p.dei {
			return nil, fmt.Errorf("--pcp and --dei are parts of a tag: give --vid, too (0 for a tag with priority alone)")
		}
		return vlan.Untagged, nil
	}
	if p.VID < 0 || p.VID > int(transport.MaxVID) {
		return nil, fmt.Errorf("--vid %d: want 0 (priority only) to %d", p.VID, transport.MaxVID)
	}
	if p.PCP < 0 || p.PCP > 7 {
		return nil, fmt.Errorf("--pcp %d: want 0 to 7", p.PCP)
	}
	return vlan.Fixed(transport.Tag{VID: transport.VID(p.VID), PCP: transport.PCP(p.PCP), DEI: p.dei})
}

// Cores returns the core of each node's process, in the order of the nodes; nil where the scheduler
// places them.
func (p *ClusterFlags) Cores() ([]int, error) {
	switch {
	case p.Pin == "none", p.Kind == "fabric" && p.Pin == "auto":
		return nil, nil
	case p.Kind == "fabric":
		return nil, cli.Misuse("--pin: the fabric's nodes share one process")
	case p.Pin == "auto" && (p.Here() || p.Nodes > len(AllowedCores())):
		return nil, nil
	case p.Pin == "auto":
		return AllowedCores()[:p.Nodes], nil
	}
	var cores []int
	for _, field := range strings.Split(p.Pin, ",") {
		core, err := strconv.Atoi(field)
		if err != nil || !slices.Contains(AllowedCores(), core) {
			return nil, cli.Misuse("--pin %q: want auto, none, or cores of %v", p.Pin, AllowedCores())
		}
		cores = append(cores, core)
	}
	processes := p.Nodes
	if p.Here() {
		processes = 1
	}
	if len(cores) != processes {
		return nil, cli.Misuse("--pin %q: want %d, one for each process here", p.Pin, processes)
	}
	return cores, nil
}

// InMemory makes the nodes on a fabric, all on one switch per network.
func (p *ClusterFlags) InMemory() (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	f, err := fabric.New(fabric.Config{MTU: p.MTU})
	if err != nil {
		return nil, nil, err
	}
	links := make([][]transport.Link, p.Nodes)
	for range p.NICs {
		sw := f.AddSwitch("")
		for k := range links {
			l, err := f.Attach(sw, fabric.Station{})
			if err != nil {
				return nil, nil, err
			}
			links[k] = append(links[k], l)
		}
	}
	return p.Open(links, func() error { return nil })
}

// inThreads makes the nodes in this process, in memory or with kernel links in namespaces of their
// own.
func (p *ClusterFlags) inThreads() (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	if p.Kind == "fabric" {
		return p.InMemory()
	}
	if err := testbed.Reexec(); err != nil {
		return nil, nil, err
	}
	bed, err := testbed.New(testbed.Config{Nodes: p.Nodes, NICs: p.NICs, MTU: p.MTU})
	if err != nil {
		return nil, nil, err
	}
	links := make([][]transport.Link, p.Nodes)
	for k := range links {
		for nic := range p.NICs {
			err := bed.Node(k).Do(func() error {
				l, err := kernelLinks[p.Kind](testbed.Interface(nic))
				links[k] = append(links[k], l)
				return err
			})
			if err != nil {
				_ = bed.Close() // the first error is the one to report
				return nil, nil, err
			}
		}
	}
	return p.Open(links, bed.Close)
}

// Open makes endpoints of each node's links.
func (p *ClusterFlags) Open(links [][]transport.Link, closeSite func() error) (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	router, err := p.router()
	if err != nil {
		return nil, nil, err
	}
	rec, err := p.recorder()
	if err != nil {
		return nil, nil, err
	}
	closeAll = func() error {
		var errs []error
		for _, e := range nodes {
			errs = append(errs, e.Close())
		}
		return errors.Join(append(errs, rec.close(), closeSite())...)
	}
	table := make([]mcd.Node, p.Nodes)
	for k := range links {
		table[k] = mcd.Node{ID: mcd.NodeID(k)}
		for _, l := range links[k] {
			table[k].MACs = append(table[k].MACs, l.MAC())
		}
	}
	if links[0][0], err = rec.wrap(links[0][0]); err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	for k, own := range links {
		for nic := range own {
			if own[nic], err = p.Faults.wrap(own[nic], k); err != nil {
				return nil, nil, errors.Join(err, closeAll())
			}
		}
		e, err := mcd.Open(mcd.Config{Cluster: mcd.ClusterID(p.cluster), Node: mcd.NodeID(k), Nodes: table, Router: router}, own...)
		if err != nil {
			_ = closeAll() // the first error is the one to report
			return nil, nil, err
		}
		nodes = append(nodes, e)
	}
	return nodes, closeAll, nil
}

// LinkKinds lists what --link takes.
func LinkKinds() string { return strings.Join(slices.Sorted(maps.Keys(demoNets)), ", ") }
