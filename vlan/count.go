package vlan

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// Count is what was sent to one destination with one VID.
type Count struct {
	Frames, Bytes atomic.Uint64
}

// Add counts frames that were sent, and their bytes: payload, EtherType, addresses and tag.
func (c *Count) Add(frames, bytes int) {
	c.Frames.Add(uint64(frames))
	c.Bytes.Add(uint64(bytes))
}

// Sent is how much was sent to a destination with a VID since its Table was made.
type Sent struct {
	// Dst is Broadcast for all destinations that had no route of their own, and zero in a sum over
	// all.
	Dst    transport.MAC `json:"dst,omitzero"`
	VID    transport.VID `json:"vid"` // 0: untagged
	Frames uint64        `json:"frames"`
	Bytes  uint64        `json:"bytes"`
}

// Counts returns what was sent to each destination with each VID that was ever its route's, sorted
// by destination, then VID: the default is the last. Frames that are being sent may be missing.
//
// Source: VFREC §4.1 (3).
func (t *Table) Counts() []Sent {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Sent, 0, t.counts)
	for d := range t.all {
		for _, e := range d.past {
			if e.first {
				all = append(all, Sent{d.mac, e.tag.Tag.VID, e.count.Frames.Load(), e.count.Bytes.Load()})
			}
		}
	}
	slices.SortFunc(all, func(a, b Sent) int { return cmp.Or(a.Dst.Compare(b.Dst), cmp.Compare(a.VID, b.VID)) })
	return all
}

// PerVID sums counts up by VID, and sorts them by it.
func PerVID(counts []Sent) []Sent {
	var sums []Sent
	for _, c := range counts {
		i, found := slices.BinarySearchFunc(sums, c.VID,
			func(s Sent, vid transport.VID) int { return cmp.Compare(s.VID, vid) })
		if !found {
			sums = slices.Insert(sums, i, Sent{VID: c.VID})
		}
		sums[i].Frames += c.Frames
		sums[i].Bytes += c.Bytes
	}
	return sums
}
