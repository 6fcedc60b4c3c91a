package traffic

import (
	"cmp"
	"fmt"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Load is the traffic that each link of a topology has to carry, in each direction. It may be more
// than the link can.
type Load struct {
	Topology *topology.Topology
	Links    []topology.Rate // by Hop.Index
}

// Load returns the load of each link if each pair of nodes uses the VID that vid returns for it,
// such as plan.Plan.PairVID. Errors: ErrInvalid, topology.ErrInvalid; topology.ErrNoPath where a
// VID does not connect a pair.
func (m Matrix) Load(t *topology.Topology, vid func(a, b int) transport.VID) (*Load, error) {
	paths, err := topology.NewPaths(t)
	if err != nil {
		return nil, err
	}
	if err := m.Validate(len(t.Hosts)); err != nil {
		return nil, err
	}
	l, err := m.LoadOf(paths, vid)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return l, nil
}

// LoadOf is Load for a matrix that is known to be valid, in the network of the paths. With an error
// it is the load by the flows that have a path.
func (m Matrix) LoadOf(paths *topology.Paths, vid func(a, b int) transport.VID) (l *Load, err error) {
	t := paths.Topology()
	l = &Load{t, make([]topology.Rate, 2*len(t.Links))}
	var path []topology.Hop
	for _, f := range m {
		hops, cutOff := paths.Append(path[:0], f.From, f.To, vid(f.From, f.To))
		if path = hops; cutOff != nil {
			err = cmp.Or(err, cutOff)
			continue
		}
		for _, h := range path {
			l.Links[h.Index()] += f.Rate
		}
	}
	return l, err
}

// Utilisation returns the share of its rate that a link carries in one direction: 1 is all of it.
func (l *Load) Utilisation(h topology.Hop) float64 {
	return float64(l.Links[h.Index()] / l.Topology.Links[h.Link].Rate)
}

// MaxLink returns the direction of a link with the highest utilisation, the first of several, and
// that utilisation. If no link carries anything, it is 0, and the hop means nothing.
func (l *Load) MaxLink() (worst topology.Hop, utilisation float64) {
	for i := range l.Links {
		if u := l.Utilisation(topology.HopAt(i)); u > utilisation {
			worst, utilisation = topology.HopAt(i), u
		}
	}
	return worst, utilisation
}
