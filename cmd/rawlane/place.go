package main

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

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
)

// place says where the nodes of a verb run: in memory, in network namespaces of their own, or on machines that each
// run this command.
type place struct {
	kind      string
	nodes     int
	nics      int
	node      int
	ifname    string // several, for several NICs, separated by commas
	hostfile  string
	cluster   uint32
	mtu       int
	vid, pcp  int
	dei       bool
	manager   string
	captureTo string
	pin       string
	timeout   time.Duration
	mode      string
	faults    faults
	grace     time.Duration // that the other nodes' processes get to end by themselves when one has failed
	explicit  func(flag string) bool
}

// Values of flags that mean "not given": none that anybody types, so that -1 is refused as other wrong numbers are.
const (
	noNode = math.MinInt
	noVID  = math.MinInt
)

// maxPlaceNodes keeps a typing error from taking the machine's memory.
const maxPlaceNodes = 250

func (p *place) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.kind, "link", "fabric", "kind of link: "+linkKinds())
	f.IntVar(&p.nodes, "nodes", 2, "number of nodes")
	f.IntVar(&p.mtu, "mtu", fabric.DefaultMTU, "MTU of the fabric or the namespaces' interfaces, in bytes")
	f.StringVar(&p.captureTo, "capture", "", "write node 0's frames to this file, as pcapng")
	f.StringVar(&p.pin, "pin", "auto", "processor cores, node by node (0,1), of one process per node; auto, or none")
	p.tagFlags(cmd)
	p.machineFlags(cmd)
}

// nicsFlag is for verbs that use several networks.
func (p *place) nicsFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.nics, "nics", 1, "networks: each node has a NIC on each")
}

// interfaces lists the names of --interface.
func (p *place) interfaces() []string { return strings.Split(p.ifname, ",") }

func (p *place) tagFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&p.vid, "vid", noVID, "send with this VLAN tag, 0 (priority only) to 4094")
	f.IntVar(&p.pcp, "pcp", 0, "priority in the tag, 0 to 7")
	f.BoolVar(&p.dei, "dei", false, "drop-eligible bit of the tag")
	f.Lookup("vid").DefValue = "untagged"
}

// machineFlags are those by which each machine of a real cluster says what it is.
func (p *place) machineFlags(cmd *cobra.Command) {
	p.nics = 1
	f := cmd.Flags()
	f.StringVar(&p.ifname, "interface", "", "run one node here, on this network interface; the others run the same elsewhere")
	f.StringVar(&p.hostfile, "hostfile", "", "file that lists the nodes: number, MAC or host name, interface")
	f.IntVar(&p.node, "node", noNode, "this node's number")
	f.Uint32Var(&p.cluster, "cluster", 1, "cluster id: tells this run from others on the segment")
	f.StringVar(&p.manager, "manager", "", "send by the routes of this node's manager: unix:PATH or HOST:PORT")
	f.DurationVar(&p.timeout, "timeout", 30*time.Second, "how long to look for the other nodes")
	f.Lookup("node").DefValue = "by the hostfile"
	p.explicit = f.Changed
}

// here reports whether this process is one node, and others are elsewhere.
func (p *place) here() bool { return p.ifname != "" || p.hostfile != "" || p.node != noNode }

// validate checks what can be told from the flags alone.
func (p *place) validate() error {
	if p.here() && !p.explicit("link") {
		p.kind = "ring"
	}
	if _, ok := sites[p.kind]; !ok {
		return misuse("--link %q: no such kind (want one of %s)", p.kind, linkKinds())
	}
	if p.nodes < 2 || p.nodes > maxPlaceNodes {
		return misuse("--nodes %d: want 2 to %d", p.nodes, maxPlaceNodes)
	}
	if p.here() && p.kind == "fabric" {
		return misuse("--link fabric is in memory, and --interface, --hostfile and --node are for real machines: give one or the other")
	}
	if p.nics < 1 || p.nics > testbed.MaxNICs {
		return misuse("--nics %d: want 1 to %d", p.nics, testbed.MaxNICs)
	}
	if p.ifname != "" && len(p.interfaces()) != p.nics {
		return misuse("--interface %s: names %d (want %d, one for each network)", p.ifname, len(p.interfaces()), p.nics)
	}
	if err := p.faults.validate(); err != nil {
		return err
	}
	if p.mtu < fabric.MinMTU || p.mtu > fabric.MaxMTU {
		return misuse("--mtu %d: want %d to %d", p.mtu, fabric.MinMTU, fabric.MaxMTU)
	}
	if p.here() && p.explicit("mtu") {
		return misuse("--mtu is for the fabric and for namespaces; set a real interface's with: ip link set %s mtu %d", cmp.Or(p.ifname, "NAME"), p.mtu)
	}
	if p.timeout <= 0 {
		return misuse("--timeout %v: want more than 0", p.timeout)
	}
	if p.node != noNode && (p.node < 0 || p.node >= p.nodes && p.hostfile == "") {
		return misuse("--node %d: want 0 to %d, or more --nodes", p.node, p.nodes-1)
	}
	if p.manager != "" && !p.here() {
		return misuse("--manager: is of one node: give --node, and run the others elsewhere")
	}
	if _, err := p.router(); err != nil {
		return asMisuse(err)
	}
	_, err := p.cores()
	return err
}

// router tags as the flags say.
func (p *place) router() (vlan.Router, error) {
	if p.manager != "" {
		if p.vid != noVID {
			return nil, fmt.Errorf("--vid and --manager: want one of the two")
		}
		_, err := manager.ParseAddr(p.manager)
		return nil, err // open asks it
	}
	if p.vid == noVID {
		if p.pcp != 0 || p.dei {
			return nil, fmt.Errorf("--pcp and --dei are parts of a tag: give --vid, too (0 for a tag with priority alone)")
		}
		return vlan.Untagged, nil
	}
	if p.vid < 0 || p.vid > int(transport.MaxVID) {
		return nil, fmt.Errorf("--vid %d: want 0 (priority only) to %d", p.vid, transport.MaxVID)
	}
	if p.pcp < 0 || p.pcp > 7 {
		return nil, fmt.Errorf("--pcp %d: want 0 to 7", p.pcp)
	}
	return vlan.Fixed(transport.Tag{VID: transport.VID(p.vid), PCP: transport.PCP(p.pcp), DEI: p.dei})
}

// cores returns the core of each node's process, in the order of the nodes; nil where the scheduler places them.
func (p *place) cores() ([]int, error) {
	switch {
	case p.pin == "none", p.kind == "fabric" && p.pin == "auto":
		return nil, nil
	case p.kind == "fabric":
		return nil, misuse("--pin: the fabric's nodes share one process")
	case p.pin == "auto" && (p.here() || p.nodes > len(allowedCores())):
		return nil, nil
	case p.pin == "auto":
		return allowedCores()[:p.nodes], nil
	}
	var cores []int
	for _, field := range strings.Split(p.pin, ",") {
		core, err := strconv.Atoi(field)
		if err != nil || !slices.Contains(allowedCores(), core) {
			return nil, misuse("--pin %q: want auto, none, or cores of %v", p.pin, allowedCores())
		}
		cores = append(cores, core)
	}
	processes := p.nodes
	if p.here() {
		processes = 1
	}
	if len(cores) != processes {
		return nil, misuse("--pin %q: want %d, one for each process here", p.pin, processes)
	}
	return cores, nil
}

// inMemory makes the nodes on a fabric, all on one switch per network.
func (p *place) inMemory() (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	f, err := fabric.New(fabric.Config{MTU: p.mtu})
	if err != nil {
		return nil, nil, err
	}
	links := make([][]transport.Link, p.nodes)
	for range p.nics {
		sw := f.AddSwitch("")
		for k := range links {
			l, err := f.Attach(sw, fabric.Station{})
			if err != nil {
				return nil, nil, err
			}
			links[k] = append(links[k], l)
		}
	}
	return p.open(links, func() error { return nil })
}

// inThreads makes the nodes in this process, in memory or with kernel links in namespaces of their own.
func (p *place) inThreads() (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	if p.kind == "fabric" {
		return p.inMemory()
	}
	if err := testbed.Reexec(); err != nil {
		return nil, nil, err
	}
	bed, err := testbed.New(testbed.Config{Nodes: p.nodes, NICs: p.nics, MTU: p.mtu})
	if err != nil {
		return nil, nil, err
	}
	links := make([][]transport.Link, p.nodes)
	for k := range links {
		for nic := range p.nics {
			err := bed.Node(k).Do(func() error {
				l, err := kernelLinks[p.kind](testbed.Interface(nic))
				links[k] = append(links[k], l)
				return err
			})
			if err != nil {
				_ = bed.Close() // the first error is the one to report
				return nil, nil, err
			}
		}
	}
	return p.open(links, bed.Close)
}

// open makes endpoints of each node's links.
func (p *place) open(links [][]transport.Link, closeSite func() error) (nodes []*mcd.Endpoint, closeAll func() error, err error) {
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
	table := make([]mcd.Node, p.nodes)
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
			if own[nic], err = p.faults.wrap(own[nic], k); err != nil {
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

// linkKinds lists what --link takes.
func linkKinds() string { return strings.Join(slices.Sorted(maps.Keys(sites)), ", ") }
