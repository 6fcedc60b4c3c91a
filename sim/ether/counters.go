package ether

// Counters of a network, in frames. Each frame sent, and each copy that a switch makes of it, is
// delivered, not addressed, filtered, dropped or in flight:
//
//	Sent + Copies = Delivered + NotAddressed + Filtered + Dropped + InFlight
type Counters struct {
	Sent         uint64 `json:"sent"`          // by hosts
	Copies       uint64 `json:"copies"`        // made by flooding: a frame that leaves by three ports has two
	Delivered    uint64 `json:"delivered"`     // to the host with the destination address
	NotAddressed uint64 `json:"not_addressed"` // flooded to another host
	Filtered     uint64 `json:"filtered"`      // by switches
	Dropped      uint64 `json:"dropped"`       // by full queues
	InFlight     uint64 `json:"in_flight"`     // queued or on a wire
	Flooded      uint64 `json:"flooded"`       // forwarding decisions without a learned address
}

// Counters returns what passed since the network was made.
func (n *Network) Counters() Counters {
	c := n.count
	for i := range n.lines {
		c.Dropped += n.lines[i].dropped
		c.InFlight += uint64(n.lines[i].inFlight.len())
	}
	for _, s := range n.switches {
		c.Flooded += s.Counters().Flooded
	}
	return c
}
