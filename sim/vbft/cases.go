package vbft

import (
	"fmt"

	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// Case is a network and its routes.
type Case struct {
	Name     string
	Topology *topology.Topology
	Plan     *plan.Plan
	Reroute  map[plan.Pair]transport.VID // in each iteration: see CG
}

// Cases returns the five cases of the paper, for a network with several VIDs. All are compared with
// the first:
//
//	flat       all hosts at one switch
//	tree       all pairs on the network's first VID: one tree, as in a network without VLANs
//	default    the default plan: VIDs in turn
//	optimised  the plan of optimize.Plan for CG's exchanges between switches
//	rerouted   the default plan; each iteration sets these exchanges' pairs to the optimised one
//
// The errors are those of traffic.Pattern, plan.RoundRobin and optimize.Plan; topology.ErrInvalid
// where there is no VLAN.
//
// Source: VFREC §5.3.
func Cases(t *topology.Topology) ([]Case, error) {
	demand, err := traffic.Pattern("cg", len(t.Hosts))
	if err != nil {
		return nil, err
	}
	if len(t.VLANs) == 0 {
		return nil, fmt.Errorf("cases: %w: no VLAN (want one at least)", topology.ErrInvalid)
	}
	flat, err := topology.Flat(len(t.Hosts))
	if err != nil {
		return nil, err
	}
	flat.SetRates(t.Hosts[0].Rate, t.Hosts[0].Rate)
	plans := make([]*plan.Plan, 3)
	for i, vids := range [][]transport.VID{flat.VIDs(), t.VIDs()[:1], t.VIDs()} {
		if plans[i], err = roundRobin(len(t.Hosts), vids); err != nil {
			return nil, err
		}
	}
	optimised, _, err := optimize.Plan(t, demand, plans[2], optimize.Options{})
	if err != nil {
		return nil, err
	}
	reroute := make(map[plan.Pair]transport.VID)
	for _, p := range demand.Pairs() {
		reroute[p] = optimised.PairVID(p.A, p.B)
	}
	return []Case{
		{"flat", flat, plans[0], nil},
		{"tree", t, plans[1], nil},
		{"default", t, plans[2], nil},
		{"optimised", t, optimised, nil},
		{"rerouted", t, plans[2], reroute},
	}, nil
}

// roundRobin returns the default plan for hosts of package ether.
func roundRobin(hosts int, vids []transport.VID) (*plan.Plan, error) {
	macs := make([]transport.MAC, hosts)
	for i := range macs {
		macs[i] = ether.Address(i)
	}
	return plan.RoundRobin(macs, vids)
}
