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
func ShapeOf(nodes []mcd.NodeID, table []mcd.Node) (s schedule.Shape) {
	places := make(map[mcd.NodeID]mcd.Place, len(table))
	for _, n := range table {
		places[n.ID] = n.Place
	}
	index := map[uint64]int{}
	var hosts []host
	for _, n := range nodes {
		p := places[n]
		if p.IsZero() {
			return schedule.Shape{}
		}
		h, seen := index[p.Host]
		if !seen {
			h = len(hosts)
			index[p.Host] = h
			hosts = append(hosts, host{path: p.Path})
		}
		hosts[h].add(&p)
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

// count returns how many cores the nodes have between them. Nodes of one process use the same;
// those of several may use as many as all of them together, but no more than there are.
func (h *host) count() int {
	if h.path == transport.InProcess {
		return max(1, h.most)
	}
	return max(1, h.most, min(bits.OnesCount64(h.cores), h.sum))
}
