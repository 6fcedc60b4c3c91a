package pathtest

import (
	"context"
	"slices"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// Check looks for faults in the paths from this node to all others, by each of the given tags; by
// none there are none. Faults are sorted by node and tag, those of the whole network first. It
// takes several times Options.Timeout, as most faults show as silence. Errors: ctx's, and those of
// mcd.Endpoint.TryProbe, with the faults found until then.
func Check(ctx context.Context, ep *mcd.Endpoint, nic int, tags []transport.OptionalTag, o Options) ([]Fault, error) {
	if len(tags) == 0 {
		return nil, nil
	}
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	c := &checker{collector: collect(ep, o), o: o, nic: nic, tags: tags}
	defer c.stop()
	for _, step := range []func(context.Context) error{c.look, c.direct, c.fullSize} {
		if err := step(ctx); err != nil {
			return c.faults, err
		}
	}
	return c.faults, nil
}

// checker is one node's check in progress.
type checker struct {
	*collector
	o      Options
	nic    int
	tags   []transport.OptionalTag
	paths  []*checked // by node, then tag
	faults []Fault
}

// checked is a path and its state.
type checked struct {
	mcd.Path
	probes []uint32
	alive  bool
}

func (c *checker) found(f Fault) {
	f.From, f.NIC = c.ep.Node(), c.nic
	c.faults = append(c.faults, f)
}

// look probes all paths, and sends broadcasts that should not come back.
func (c *checker) look(ctx context.Context) error {
	for _, n := range c.ep.Nodes() {
		for _, tag := range c.tags {
			if n.ID != c.ep.Node() {
				c.paths = append(c.paths, &checked{Path: mcd.Path{Node: n.ID, NIC: c.nic, OptionalTag: tag}})
			}
		}
	}
	var broadcasts []uint32
	for _, tag := range c.tags {
		n, err := c.send(ctx, mcd.Path{Node: c.ep.Node(), NIC: c.nic, OptionalTag: tag}, mcd.ProbeOptions{})
		if err != nil {
			return err
		}
		broadcasts = append(broadcasts, n)
	}
	if len(c.paths) == 0 { // what comes back takes its time, where there is nobody to wait for, too
		if err := sleep(ctx, c.o.Timeout); err != nil {
			return err
		}
	}
	if err := c.probeAll(ctx, c.paths); err != nil {
		return err
	}
	if err := c.probeAll(ctx, c.silent()); err != nil { // nodes that stood still for all of the time
		return err
	}
	for i, n := range broadcasts {
		if times := len(c.answers(n)); times > 0 {
			c.found(Fault{Kind: Loop, To: c.ep.Node(), By: c.tags[i], Count: times})
		}
	}
	c.judgeAddresses()
	for _, p := range c.paths {
		c.judge(p)
	}
	return nil
}

// probeAll sends the probes of paths, and waits for all answers.
func (c *checker) probeAll(ctx context.Context, paths []*checked) error {
	if len(paths) == 0 {
		return nil
	}
	for range tries {
		for _, p := range paths {
			n, err := c.send(ctx, p.Path, mcd.ProbeOptions{AnyNode: true})
			if err != nil {
				return err
			}
			p.probes = append(p.probes, n)
		}
		if err := sleep(ctx, c.o.Timeout); err != nil { // all of it: an answer may come twice
			return err
		}
	}
	return nil
}

// silent returns the paths to the nodes that have answered by none.
func (c *checker) silent() (paths []*checked) {
	for node := range slices.Chunk(c.paths, len(c.tags)) {
		if !slices.ContainsFunc(node, func(p *checked) bool { return slices.ContainsFunc(p.probes, c.isAnswered) }) {
			paths = append(paths, node...)
		}
	}
	return paths
}

// judge finds the faults that the answers to a path's probes show.
func (c *checker) judge(p *checked) {
	most := 0
	there, here := p.OptionalTag, p.OptionalTag // with which probes arrive there, and answers here
	for _, n := range p.probes {
		answers := c.answers(n)
		same := 0
		for _, a := range answers {
			p.alive = true
			if a.incarnation == answers[0].incarnation {
				same++
			}
			if a.peerReceived != p.OptionalTag {
				there = a.peerReceived
			}
			if a.received != p.OptionalTag {
				here = a.received
			}
		}
		most = max(most, same)
	}
	if most > 1 {
		c.found(Fault{Kind: Loop, To: p.Node, By: p.OptionalTag, Count: most})
	}
	if there != p.OptionalTag {
		c.found(Fault{Kind: TagChanged, To: p.Node, By: p.OptionalTag, Toward: true, Arrive: there})
	}
	if here != p.OptionalTag {
		c.found(Fault{Kind: TagChanged, To: p.Node, By: p.OptionalTag, Arrive: here})
	}
}

// judgeAddresses finds addresses at which more than one endpoint answers.
func (c *checker) judgeAddresses() {
	type endpoint struct {
		node        mcd.NodeID
		incarnation uint32
	}
	type station struct {
		node      mcd.NodeID // the address's owner, by the node table
		endpoints []endpoint // that answer there
	}
	stations := make(map[transport.MAC]*station)
	var order []*station
	var macs []transport.MAC
	for _, p := range c.paths {
		for _, n := range p.probes {
			for _, a := range c.answers(n) {
				s := stations[a.src]
				if s == nil {
					s = &station{node: p.Node}
					stations[a.src] = s
					order, macs = append(order, s), append(macs, a.src)
				}
				if e := (endpoint{a.from, a.incarnation}); !slices.Contains(s.endpoints, e) {
					s.endpoints = append(s.endpoints, e)
				}
			}
		}
	}
	for i, s := range order {
		f := Fault{Kind: Duplicate, To: s.node, MACs: macs[i : i+1]}
		for _, e := range s.endpoints {
			f.Nodes = append(f.Nodes, e.node)
		}
		if !slices.Contains(f.Nodes, s.node) {
			f.Nodes = append(f.Nodes, s.node) // another node answers in its place
		}
		if slices.Sort(f.Nodes); len(f.Nodes) > 1 {
			c.found(f)
		}
	}
}

// direct finds out which direction of a path is dead. If the node answers by another tag, it can be
// asked to answer a probe by the dead tag with that one, and the other way round.
func (c *checker) direct(ctx context.Context) error {
	var dead []*checked
	var probes []probe // of each dead path, there and back
	for node := range slices.Chunk(c.paths, len(c.tags)) {
		at := slices.IndexFunc(node, func(p *checked) bool { return p.alive })
		if at < 0 {
			c.found(Fault{Kind: Unreachable, To: node[0].Node})
			continue
		}
		for _, p := range node {
			if !p.alive {
				dead = append(dead, p)
				probes = append(probes, probe{p.Path, mcd.ProbeOptions{ReplyTag: &node[at].OptionalTag}},
					probe{node[at].Path, mcd.ProbeOptions{ReplyTag: &p.OptionalTag}})
			}
		}
	}
	answered, err := c.answered(ctx, probes)
	if err != nil {
		return err
	}
	for i, p := range dead {
		f := Fault{Kind: BlackHole, To: p.Node, By: p.OptionalTag}
		switch there, back := answered[2*i], answered[2*i+1]; {
		case there && back: // it works by now: the node stood still, or its frames were lost by chance
			p.alive = true
			continue
		case there != back:
			f.Kind, f.Toward = OneWay, back
		}
		c.found(f)
	}
	return nil
}
