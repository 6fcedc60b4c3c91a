package ether

import (
	"fmt"

	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// socket is where a cable ends: a port of a switch, or a host.
type socket struct {
	device int // switch or host number
	port   int // of the switch; hostPort
}

const hostPort = -1

// cable joins two sockets.
type cable struct {
	a, b socket
	rate vlan.Rate
}

// wire makes a topology's switches. A switch's ports are its hosts, in their order, and then its links, in theirs; each port
// carries tagged frames alone. Cables are in the same order: hosts, then links.
func wire(t *vlan.Topology, c l2switch.Config) ([]*l2switch.Switch, []cable, error) {
	switches := make([]*l2switch.Switch, len(t.Switches))
	for i := range switches {
		switches[i] = l2switch.New(c)
	}
	all, ofLink := vids(t)
	var cables []cable
	plug := func(s int, vids []transport.VID) (socket, error) {
		if s < 0 || s >= len(switches) {
			return socket{}, fmt.Errorf("no switch %d (there are %d)", s, len(switches))
		}
		port, err := switches[s].AddPort(l2switch.Trunk(vids...))
		return socket{s, port}, err
	}
	for i, h := range t.Hosts {
		end, err := plug(h.Switch, all)
		if err != nil {
			return nil, nil, fmt.Errorf("host %d: %w", i, err)
		}
		cables = append(cables, cable{socket{i, hostPort}, end, h.Rate})
	}
	for i, l := range t.Links {
		a, err := plug(l.A, ofLink[i])
		if err != nil {
			return nil, nil, fmt.Errorf("link %d: %w", i, err)
		}
		b, err := plug(l.B, ofLink[i])
		if err != nil {
			return nil, nil, fmt.Errorf("link %d: %w", i, err)
		}
		cables = append(cables, cable{a, b, l.Rate})
	}
	return switches, cables, nil
}

// vids returns the VIDs of the network, and those that each link carries.
func vids(t *vlan.Topology) (all []transport.VID, ofLink [][]transport.VID) {
	ofLink = make([][]transport.VID, len(t.Links))
	for _, v := range t.VLANs {
		all = append(all, v.VID)
		for _, l := range v.Links {
			ofLink[l] = append(ofLink[l], v.VID)
		}
	}
	return all, ofLink
}
