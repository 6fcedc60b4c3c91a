package plan

import (
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Check reports why the plan cannot be carried out in a network: nodes that the network does not have, VIDs that it does not
// carry, pairs that their VID does not connect. The plan and the network must be valid by themselves. The error is ErrInvalid,
// and has up to MaxFaults faults.
func (p *Plan) Check(t *topology.Topology) error {
	if len(p.Nodes) != len(t.Hosts) {
		return fmt.Errorf("%w: %s, but the topology has %s (want as many)", ErrInvalid, things(len(p.Nodes), "node"), things(len(t.Hosts), "host"))
	}
	in := make(map[transport.VID][]int)
	for _, v := range t.VLANs {
		in[v.VID] = parts(t, v)
	}
	var errs []error
	for _, vid := range p.VIDs {
		if in[vid] == nil {
			errs = append(errs, fmt.Errorf("%w: vid %d: the topology does not have it (it has %s)", ErrInvalid, vid, topology.FormatVIDs(t.VIDs())))
		}
	}
	for a := range p.Nodes {
		for b := a + 1; b < len(p.Nodes); b++ {
			vid := p.PairVID(a, b)
			part, from, to := in[vid], t.Hosts[a].Switch, t.Hosts[b].Switch
			if part == nil || part[from] == part[to] {
				continue
			}
			errs = append(errs, fmt.Errorf("%w: pair %v: vid %d does not connect %s and %s", ErrInvalid, Pair{a, b}, vid, t.Switches[from], t.Switches[to]))
			if len(errs) > strictyaml.MaxFaults {
				errs[strictyaml.MaxFaults] = fmt.Errorf("%w: and more (mend these first)", ErrInvalid)
				return errors.Join(errs...)
			}
		}
	}
	return errors.Join(errs...)
}

// parts returns for each switch a number that it shares with those that a VLAN connects it with.
func parts(t *topology.Topology, v topology.VLAN) []int {
	part := make([]int, len(t.Switches))
	for s := range part {
		part[s] = s
	}
	find := func(s int) int {
		for part[s] != s {
			part[s] = part[part[s]]
			s = part[s]
		}
		return s
	}
	for _, l := range v.Links {
		part[find(t.Links[l].A)] = find(t.Links[l].B)
	}
	for s := range part {
		part[s] = find(s)
	}
	return part
}

// things is a number of things in words.
func things(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
