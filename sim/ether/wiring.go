package ether

import (
	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/topology"
)

// socket is one end of a cable: a port of a switch, or a host.
type socket struct {
	device int // number of the switch or host
	port   int // of the switch; atHost
}

const atHost = -1

// cable joins two sockets.
type cable struct {
	a, b socket
	rate topology.Rate
}

// build makes a valid topology's switches. The ports of a switch are its hosts, then its links, in
// their orders. All carry tagged frames only: those to hosts of all VIDs. Cables come in the same
// order, hosts' first.
func build(t *topology.Topology, c l2switch.Config) ([]*l2switch.Switch, []cable, error) {
	switches := make([]*l2switch.Switch, len(t.Switches))
	for i := range switches {
		switches[i] = l2switch.New(c)
	}
	var failed error
	plug := func(s int, vids []transport.VID) socket {
		port, err := switches[s].AddPort(l2switch.Trunk(vids...))
		if err != nil && failed == nil {
			failed = err
		}
		return socket{s, port}
	}
	all, ofLink := t.VIDs(), t.LinkVIDs()
	var cables []cable
	for i, h := range t.Hosts {
		cables = append(cables, cable{socket{i, atHost}, plug(h.Switch, all), h.Rate})
	}
	for i, l := range t.Links {
		cables = append(cables, cable{plug(l.A, ofLink[i]), plug(l.B, ofLink[i]), l.Rate})
	}
	return switches, cables, failed
}
