package barrier

import (
	"math/bits"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// localCosts are the costs of messages within a host, by their path.
var localCosts = map[transport.LocalPath]schedule.LogP{
	transport.ByKernel:  schedule.KernelCosts,
	transport.ByMemory:  schedule.MemoryCosts,
	transport.InProcess: schedule.FabricCosts,
}

// ShapeOf returns the shape of nodes by the places in a node table. It is unknown if that of one of
// them is.
func ShapeOf(nodes []mcd.NodeID, table []mcd.Node) schedule.Shape {
	return shapeAt(placesIn(table, nodes))
}

// placesIn returns the places that a table has of nodes, in their order.
func placesIn(table []mcd.Node, nodes []mcd.NodeID) []mcd.Place {
	known := make(map[mcd.NodeID]mcd.Place, len(nodes))
	for _, n := range nodes {
		known[n] = mcd.Place{}
	}
	for i := range table {
		if _, is := known[table[i].ID]; is {
			known[table[i].ID] = table[i].Place
		}
	}
	all := make([]mcd.Place, len(nodes))
	for rank, n := range nodes {
		all[rank] = known[n]
	}
	return all
}

// shapeAt returns the shape of ranks at places.
func shapeAt(places []mcd.Place) (s schedule.Shape) {
	index := map[uint64]int{}
	var hosts []host
	for i := range places {
		p := &places[i]
		if p.IsZero() {
			return schedule.Shape{}
		}
		h, seen := index[p.Host]
		if !seen {
			h = len(hosts)
			index[p.Host] = h
			hosts = append(hosts, host{path: p.Path})
		}
		hosts[h].add(p)
		s.Of = append(s.Of, h)
	}
	for i := range hosts {
		s.Hosts = append(s.Hosts, schedule.Host{Cores: hosts[i].count(), Local: localCosts[hosts[i].path]})
	}
	return s
}

// host is nodes that share a kernel.
type host struct {
	path      transport.LocalPath // that all of them have
	cores     uint64              // of all of them
	most, sum int                 // of those that one uses at one time, and all
}

func (h *host) add(p *mcd.Place) {
	if p.Path != h.path || p.Path > transport.InProcess {
		h.path = transport.ByKernel // it always leads there
	}
	h.cores |= p.Cores
	h.most = max(h.most, int(p.Usable))
	h.sum += int(p.Usable)
}

// count returns how many cores the nodes use at one time between them. Nodes of one process use the
// same; those of several use as many as all of them together, but no more than are in their sets.
// Of cores whose numbers differ by a multiple of 64 these have one (mcd.Place).
func (h *host) count() int {
	if h.path == transport.InProcess {
		return max(1, h.most)
	}
	return max(1, h.most, min(bits.OnesCount64(h.cores), h.sum))
}
