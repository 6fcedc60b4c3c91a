package control

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// Notices returns what the latest Advance found to be wrong with the network, or with what the
// controller was told about it, in a line each: pairs that no VID of the plan connects, and nodes
// that send more than the topology says that their cables carry. Each is told once, and the pairs
// again under a plan from outside.
func (c *Controller) Notices() []string { return slices.Clone(c.notices) }

// isConnected reports whether a VID of the plan connects two nodes.
func (c *Controller) isConnected(a, b int) bool {
	return slices.ContainsFunc(c.vids, func(vid transport.VID) bool { return c.paths.Connects(a, b, vid) })
}

// leaveOut removes flows that no VID can carry: they load nothing, whatever is decided. Their pairs
// are told of.
func (c *Controller) leaveOut(flows traffic.Matrix) traffic.Matrix {
	var cutOff []plan.Pair
	flows = slices.DeleteFunc(flows, func(f traffic.Flow) bool {
		if c.isConnected(f.From, f.To) {
			return false
		}
		if p := plan.PairOf(f.From, f.To); !c.cutOff[p] {
			c.cutOff[p] = true
			cutOff = append(cutOff, p)
		}
		return true
	})
	if len(cutOff) > 0 {
		c.notices = append(c.notices, fmt.Sprintf("no VID of the plan connects these pairs, which send all the same:"+
			" %s: left out (has the network lost a cable, or the plan a VID?)", list(cutOff)))
	}
	return flows
}

// doubtRates tells of nodes that send more than their cables carry, as far as the controller knows.
func (c *Controller) doubtRates(nodes []int) {
	var fast []string
	for _, node := range nodes {
		if !c.fast[node] {
			c.fast[node] = true
			cable := c.topology.Hosts[node].Rate
			fast = append(fast, fmt.Sprintf("%d (%.1f times %v)", node, c.meter.nodes[node].total/cable, cable))
		}
	}
	if len(fast) > 0 {
		c.notices = append(c.notices, fmt.Sprintf("these nodes send more than their cables carry: %s:"+
			" are the topology's rates right?", list(fast)))
	}
}
