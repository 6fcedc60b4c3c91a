package launch

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// Algorithm returns the algorithm with a name, spread over the networks. "auto" is none: the group
// chooses, as one does whose config is empty.
func (c *ClusterFlags) Algorithm(name string) schedule.Algorithm {
	if name == "auto" {
		return schedule.Algorithm{}
	}
	a, _ := schedule.Parse(name) // the flag has checked it
	if c.NICs == 1 || strings.Contains(name, "stripe:") || strings.Contains(name, "redundant:") {
		return a
	}
	return schedule.Stripe(a, c.NICs)
}

// Model returns the cost of messages here, one for each network. It is for predictions: no
// algorithm is chosen by it.
func (c *ClusterFlags) Model() (nics []schedule.LogP) {
	m := schedule.DefaultLogP
	cores, err := strconv.Atoi(os.Getenv(cli.EnvLocal))
	if !c.Here() {
		cores, err = runtime.NumCPU(), nil
	}
	if err == nil {
		m = schedule.KernelCosts
		if local, known := localCosts[c.Kind]; known {
			m = local
		}
		m.Cores = cores
	}
	for range c.NICs {
		nics = append(nics, m)
	}
	return nics
}

// localCosts are the costs between nodes on one machine over links other than rings.
var localCosts = map[string]schedule.LogP{
	"shm":    schedule.MemoryCosts,
	"fabric": schedule.FabricCosts,
	"packet": schedule.PacketCosts,
}
