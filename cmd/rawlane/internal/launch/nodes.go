package launch

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/udp"
	"github.com/rawlane/rawlane/transport/xdp"
)

// inMemory is the kind of link that is not the kernel's.
const inMemory = "fabric"

// linkOptions are what flags say of links, each of some kinds.
type linkOptions struct {
	noTrains bool     // packet and ring; those of udp send trains anyway
	mode     xdp.Mode // xdp
}

// kernelLinks open a link on a network interface, by kind.
var kernelLinks = map[string]func(ifname string, o linkOptions) (transport.Link, error){
	"packet": func(ifname string, o linkOptions) (transport.Link, error) {
		return packet.Open(ifname, packet.Config{NoTrains: o.noTrains})
	},
	"udp": func(ifname string, _ linkOptions) (transport.Link, error) {
		return udp.OpenInterface(ifname, udp.Config{})
	},
	"ring": func(ifname string, o linkOptions) (transport.Link, error) {
		return ring.Open(ifname, ring.Config{NoTrains: o.noTrains})
	},
	"xdp": func(ifname string, o linkOptions) (transport.Link, error) {
		return xdp.Open(ifname, xdp.Config{Mode: o.mode})
	},
}

// options are those of the flags.
func (c *ClusterFlags) options() linkOptions {
	mode, _ := xdp.ParseMode(c.xdpMode) // the flag was checked
	return linkOptions{noTrains: !c.Trains, mode: mode}
}

// onFabric makes the nodes on a fabric, with one switch per network.
func (c *ClusterFlags) onFabric() (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	f, err := fabric.New(fabric.Config{MTU: c.MTU})
	if err != nil {
		return nil, nil, err
	}
	links := make([][]transport.Link, c.Nodes)
	for range c.NICs {
		sw := f.AddSwitch("")
		for k := range links {
			l, err := f.Attach(sw, fabric.Station{})
			if err != nil {
				return nil, nil, err
			}
			links[k] = append(links[k], l)
		}
	}
	return c.Open(links, func() error { return nil })
}

// inThreads makes the nodes in this process: in memory, or with kernel links in namespaces.
func (c *ClusterFlags) inThreads() (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	if c.Kind == inMemory {
		return c.onFabric()
	}
	if c.Kind == OverSHM {
		links := make([][]transport.Link, c.Nodes)
		closeNet, err := c.inSegments(links)
		if err != nil {
			return nil, nil, err
		}
		return c.Open(links, closeNet)
	}
	links, bed, err := inNamespaces(c.Kind, c.options(), c.bed())
	if c.Kind == overUDP && Refused(err) {
		c.note(NoNamespaces, err)
		if links, err = onLoopback(c.bed()); err != nil {
			return nil, nil, err
		}
		return c.Open(links, func() error { return nil })
	}
	if err != nil {
		return nil, nil, err
	}
	closeNet := bed.Close
	if c.segment != "" {
		closeDir, err := c.inSegments(links)
		if err != nil {
			return nil, nil, errors.Join(err, bed.Close())
		}
		closeNet = func() error { return errors.Join(closeDir(), bed.Close()) }
	}
	return c.Open(links, closeNet)
}

// bed returns the configuration of network namespaces for the nodes.
func (c *ClusterFlags) bed() testbed.Config {
	return testbed.Config{Nodes: c.Nodes, NICs: c.NICs, MTU: c.MTU}
}

// inNamespaces makes network namespaces, with a kernel link on each NIC.
func inNamespaces(
	kind string, o linkOptions, cfg testbed.Config,
) (links [][]transport.Link, bed *testbed.Bed, err error) {
	if bed, err = testbed.Open(cfg); err != nil {
		return nil, nil, err
	}
	links = make([][]transport.Link, cfg.Nodes)
	for k := range links {
		err := bed.Node(k).Do(func() error {
			for nic := range cfg.NICs {
				l, err := kernelLinks[kind](testbed.Interface(nic), o)
				if err != nil {
					return err
				}
				links[k] = append(links[k], l)
			}
			return nil
		})
		if err != nil {
			return nil, nil, errors.Join(err, closeLinks(links), bed.Close())
		}
	}
	return links, bed, nil
}

// Open makes an endpoint of each node's links. closeAll closes the endpoints and calls closeNet; an
// Open that fails has done so.
func (c *ClusterFlags) Open(
	links [][]transport.Link, closeNet func() error,
) (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	router, err := c.router()
	var rec *recorder
	if err == nil {
		rec, err = c.recorder()
	}
	if err != nil {
		return nil, nil, errors.Join(err, closeLinks(links), closeNet())
	}
	closeRecorder := rec.close
	closeAll = func() error {
		var errs []error
		for _, e := range nodes {
			errs = append(errs, e.Close())
		}
		return errors.Join(append(errs, closeRecorder(), closeNet())...)
	}
	table := make([]mcd.Node, len(links))
	for k := range links {
		table[k].ID, table[k].Place = mcd.NodeID(k), mcd.Here(links[k]...)
		for _, l := range links[k] {
			table[k].MACs = append(table[k].MACs, l.MAC())
		}
	}
	for k, own := range links {
		e, err := c.endpoint(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Router: router}, rec, own)
		if err != nil {
			return nil, nil, errors.Join(err, closeLinks(links[k:]), closeAll())
		}
		nodes = append(nodes, e)
		rec = nil // it records node 0
	}
	return nodes, closeAll, nil
}

// closeLinks closes nodes' links.
func closeLinks(links [][]transport.Link) (err error) {
	for _, l := range slices.Concat(links...) {
		err = errors.Join(err, l.Close())
	}
	return err
}

// endpoint opens an endpoint on links with the faults of the flags, recorded if rec is not nil.
func (c *ClusterFlags) endpoint(cfg mcd.Config, rec *recorder, links []transport.Link) (*mcd.Endpoint, error) {
	if c.Wrap != nil {
		wrapped, err := c.Wrap(links[0])
		if err != nil {
			return nil, err
		}
		links[0] = wrapped
	}
	if err := rec.wrap(links); err != nil {
		return nil, err
	}
	if err := c.Faults.wrapAll(links, int(cfg.Node)); err != nil {
		return nil, err
	}
	cfg.Cluster = mcd.ClusterID(c.cluster)
	cfg.KeyFile = c.KeyFile
	cfg.Checksum = c.Checksum
	if cfg.Spin = c.Spin; c.Spin == 0 && c.Given("spin") {
		cfg.Spin = -1 // not at all
	}
	e, err := mcd.Open(cfg, links...)
	if errors.Is(err, mcd.ErrNoKeys) {
		err = fmt.Errorf("%w (by flags: --key-file FILE, or --listen and a private address)", err)
	}
	return e, err
}
