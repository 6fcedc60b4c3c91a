package rib

import "github.com/rawlane/rawlane/transport"

// VID is the VID in force with a peer; 0 if the plan does not list the peer.
func (r *RIB) VID(peer transport.MAC) transport.VID { return r.vid(peer, true) }

// Peers is the number of peers with anything over the plan.
func (r *RIB) Peers() int { return len(r.peers) }
