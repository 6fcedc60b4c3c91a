package memfifo

import "github.com/rawlane/rawlane/memfifo/internal/reliable"

// Counters of a domain. Those of its connections count frames: Sent, Retransmitted (of these) and
// Acks (that went alone); Delivered, OutOfOrder (kept, as one before was missing), Duplicate,
// BeyondWindow (no room), StaleIncarnation (of or for a former one) and TooLong.
type Counters struct {
	reliable.Counters
	Malformed   uint64 `json:"malformed"`    // frames and records that make no sense
	UnknownNode uint64 `json:"unknown_node"` // frames of nodes that the table does not have
	Refused     uint64 `json:"refused"`      // operations of other nodes
	Orphans     uint64 `json:"orphans"`      // replies to requests that were given up, or never made
}

// Counters returns the domain's counters.
func (d *Domain) Counters() Counters {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.stats
	for _, p := range d.peers {
		if p == nil {
			continue
		}
		n := p.conn.Counters()
		c.Sent += n.Sent
		c.Retransmitted += n.Retransmitted
		c.Acks += n.Acks
		c.Delivered += n.Delivered
		c.OutOfOrder += n.OutOfOrder
		c.Duplicate += n.Duplicate
		c.BeyondWindow += n.BeyondWindow
		c.StaleIncarnation += n.StaleIncarnation
		c.TooLong += n.TooLong
	}
	return c
}
