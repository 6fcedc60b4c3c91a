package pathtest

import (
	"context"
	"slices"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// Check looks for what is wrong with the paths from one node to all others, by each of the given tags. What it finds is sorted by node
// and tag, the network's as a whole first. It takes some times Options.Timeout, for most faults are silence. Errors: ctx's, and those of
// mcd.Endpoint.TryProbe: then the faults are those that were found before.
func Check(ctx context.Context, ep *mcd.Endpoint, nic int, tags []transport.OptionalTag, o Options) ([]Fault, error) {
	o.setDefaults()
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

// checked is a path, and what is known of it.
type checked struct {
	mcd.Path
	alive bool
}

func (c *checker) found(f Fault) {
	f.From, f.NIC = c.ep.Node(), c.nic
	c.faults = append(c.faults, f)
}

// look probes all paths, and lets the broadcasts be heard that should not come back.
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
	probes := make([][]uint32, len(c.paths))
	for range tries {
		for i, p := range c.paths {
			n, err := c.send(ctx, p.Path, mcd.ProbeOptions{AnyNode: true})
			if err != nil {
				return err
			}
			probes[i] = append(probes[i], n)
		}
		if err := sleep(ctx, c.o.Timeout); err != nil { // the whole of it: something may come twice
			return err
		}
	}
	for i, n := range broadcasts {
		if times := len(c.answers(n)); times > 0 {
			c.found(Fault{Kind: Loop, To: c.ep.Node(), By: c.tags[i], Count: times})
		}
	}
	c.judgeAddresses(probes)
	for i, p := range c.paths {
		c.judge(p, probes[i])
	}
	return nil
}

// judge says what the answers to a path's probes show.
func (c *checker) judge(p *checked, probes []uint32) {
	most := 0
	changed, arrives := false, transport.Untagged
	for _, n := range probes {
		answers := c.answers(n)
		same := 0
		for _, a := range answers {
			p.alive = true
			if a.instance == answers[0].instance {
				same++
			}
			switch {
			case a.seen != p.OptionalTag:
				changed, arrives = true, a.seen
			case a.came != p.OptionalTag:
				changed, arrives = true, a.came
			}
		}
		most = max(most, same)
	}
	if most > 1 {
		c.found(Fault{Kind: Loop, To: p.Node, By: p.OptionalTag, Count: most})
	}
	if changed {
		c.found(Fault{Kind: TagChanged, To: p.Node, By: p.OptionalTag, Arrive: arrives})
	}
}

// judgeAddresses finds addresses at which more than one endpoint answers.
func (c *checker) judgeAddresses(probes [][]uint32) {
	type life struct {
		node     mcd.NodeID
		instance uint32
	}
	type station struct {
		node  mcd.NodeID // whose address it is, by the table
		lives []life     // that answer there
	}
	stations := make(map[transport.MAC]*station)
	var order []*station
	var macs []transport.MAC
	for i, p := range c.paths {
		for _, n := range probes[i] {
			for _, a := range c.answers(n) {
				s := stations[a.src]
				if s == nil {
					s = &station{node: p.Node}
					stations[a.src] = s
					order, macs = append(order, s), append(macs, a.src)
				}
				if l := (life{a.from, a.instance}); !slices.Contains(s.lives, l) {
					s.lives = append(s.lives, l)
				}
			}
		}
	}
	for i, s := range order {
		f := Fault{Kind: Duplicate, To: s.node, MACs: macs[i : i+1]}
		for _, l := range s.lives {
			f.Nodes = append(f.Nodes, l.node)
		}
		if !slices.Contains(f.Nodes, s.node) {
			f.Nodes = append(f.Nodes, s.node) // somebody else answers in its place
		}
		if slices.Sort(f.Nodes); len(f.Nodes) > 1 {
			c.found(f)
		}
	}
}

// direct finds out which direction of a path is dead: where a node answers by another tag, it can be asked to answer by that one
// to a probe by the dead one, and the other way round.
func (c *checker) direct(ctx context.Context) error {
	type question struct {
		path        *checked
		there, back []uint32
	}
	var questions []*question
	for i := 0; i < len(c.paths); i += len(c.tags) {
		node := c.paths[i : i+len(c.tags)]
		at := slices.IndexFunc(node, func(p *checked) bool { return p.alive })
		if at < 0 {
			c.found(Fault{Kind: Unreachable, To: node[0].Node})
			continue
		}
		for _, p := range node {
			if !p.alive {
				questions = append(questions, &question{path: p})
				q := questions[len(questions)-1]
				for range tries {
					there, err := c.send(ctx, p.Path, mcd.ProbeOptions{ReplyTag: &node[at].OptionalTag})
					if err != nil {
						return err
					}
					back, err := c.send(ctx, node[at].Path, mcd.ProbeOptions{ReplyTag: &p.OptionalTag})
					if err != nil {
						return err
					}
					q.there, q.back = append(q.there, there), append(q.back, back)
				}
			}
		}
	}
	if len(questions) == 0 {
		return nil
	}
	if err := sleep(ctx, c.o.Timeout); err != nil {
		return err
	}
	any := func(n uint32) bool { return len(c.answers(n)) > 0 }
	for _, q := range questions {
		f := Fault{Kind: BlackHole, To: q.path.Node, By: q.path.OptionalTag}
		there, back := slices.ContainsFunc(q.there, any), slices.ContainsFunc(q.back, any)
		if there != back {
			f.Kind, f.Toward = OneWay, back
		}
		c.found(f)
	}
	return nil
}
