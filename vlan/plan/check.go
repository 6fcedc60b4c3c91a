package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Check reports why a network cannot carry the plan: nodes or VIDs that the network lacks, nodes
// that have the name of the host in another one's place, and pairs that their VID does not connect.
// The plan must be valid. Errors: ErrInvalid, with a bounded number of faults; topology.ErrInvalid.
func (p *Plan) Check(t *topology.Topology) error {
	if len(p.Nodes) != len(t.Hosts) {
		return fmt.Errorf("%w: %s, but the topology has %s (want as many)",
			ErrInvalid, count(len(p.Nodes), "node"), count(len(t.Hosts), "host"))
	}
	paths, err := topology.NewPaths(t)
	if err != nil {
		return err
	}
	var errs []error
	for _, vid := range p.VIDs {
		if !paths.Has(vid) {
			if len(errs) >= strictyaml.MaxFaults {
				return errors.Join(append(errs, errMore)...)
			}
			errs = append(errs, fmt.Errorf("%w: vid %d: the topology does not have it (it has %s)",
				ErrInvalid, vid, topology.FormatVIDs(t.VIDs())))
		}
	}
	if errs = append(errs, p.misplaced(t)...); len(errs) > strictyaml.MaxFaults {
		return errors.Join(append(errs[:strictyaml.MaxFaults], errMore)...)
	}
	for a := range p.Nodes {
		for b := a + 1; b < len(p.Nodes); b++ {
			vid := p.PairVID(a, b)
			if !paths.Has(vid) || paths.Connects(a, b, vid) {
				continue
			}
			if len(errs) >= strictyaml.MaxFaults {
				return errors.Join(append(errs, errMore)...)
			}
			errs = append(errs, fmt.Errorf("%w: pair %d-%d: vid %d does not connect %s and %s", ErrInvalid,
				a, b, vid, t.Switches[t.Hosts[a].Switch], t.Switches[t.Hosts[b].Switch]))
		}
	}
	return errors.Join(errs...)
}

// Usable returns the topology with those of its VLANs alone that pairs may get: the plan's, or all
// if the plan lists none.
func (p *Plan) Usable(t *topology.Topology) *topology.Topology {
	u := *t
	if len(p.VIDs) > 0 {
		other := func(v topology.VLAN) bool { return !slices.Contains(p.VIDs, v.VID) }
		u.VLANs = slices.DeleteFunc(slices.Clone(t.VLANs), other)
	}
	return &u
}

// misplaced returns an error for each node that has the name of another place's host.
func (p *Plan) misplaced(t *topology.Topology) (errs []error) {
	place := make(map[string]int, len(t.Hosts))
	for k, h := range t.Hosts {
		place[h.Name] = k
	}
	for k, n := range p.Nodes {
		if at, known := place[n.Name]; known && n.Name != "" && at != k && t.Hosts[k].Name != n.Name {
			errs = append(errs, fmt.Errorf("%w: node %d is %s, which is host %d of the topology"+
				" (want the same order in both)", ErrInvalid, k, n.Name, at))
		}
	}
	return errs
}

// errMore stands for the faults beyond strictyaml.MaxFaults.
var errMore = fmt.Errorf("%w: and more (mend these first)", ErrInvalid)

// count is a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
