package vlan

import (
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// Route says which tag frames to a destination carry.
type Route struct {
	// Dst is a station, or transport.Broadcast: then the route is that of every destination without one of its own,
	// groups among them.
	Dst transport.MAC
	Tag transport.Tag
	// Untagged frames carry no tag at all; Tag must be zero.
	Untagged bool
}

// Count is what was sent by one route since it came into force.
type Count struct {
	Frames, Bytes atomic.Uint64
}

// Add counts frames that were sent, and their bytes: payload, EtherType, addresses and tag.
func (c *Count) Add(frames, bytes int) {
	c.Frames.Add(uint64(frames))
	c.Bytes.Add(uint64(bytes))
}
