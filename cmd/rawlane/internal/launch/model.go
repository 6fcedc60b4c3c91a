package launch

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// Algorithm returns the algorithm with a name, spread over the networks. "auto" chooses by the cost
// of messages here.
func (c *ClusterFlags) Algorithm(name string) schedule.Algorithm {
	if name == "auto" {
		return schedule.Auto(c.Model()...)
	}
	a, _ := schedule.Parse(name) // the flag has checked it
	if c.NICs > 1 && !strings.Contains(name, "stripe:") && !strings.Contains(name, "redundant:") {
		a = schedule.Stripe(a, c.NICs)
	}
	return a
}

// Model returns the cost of messages here, one for each network.
func (c *ClusterFlags) Model() (nics []schedule.LogP) {
	m := schedule.DefaultLogP
	cores, err := strconv.Atoi(os.Getenv(cli.EnvLocal))
	if !c.Here() {
		cores, err = runtime.NumCPU(), nil
	}
	if local, known := localCosts[c.Kind]; known && err == nil {
		m = local
		m.Cores = cores
	}
	for range c.NICs {
		nics = append(nics, m)
	}
	return nics
}

// localCosts are the costs between nodes on one machine. They fit the barriers of 4 to 32 nodes on
// two cores: Os includes the kernel's work for the receiver, which the sender does; Copy is the
// cost of a software switch for each port.
var localCosts = map[string]schedule.LogP{
	"fabric": {Os: 350, L: 30, Or: 60, Copy: 80, Switch: 800}, // ns
	"ring":   {Os: 1440, L: 140, Or: 220, Copy: 400, Switch: 3200},
	"packet": {Os: 1440, L: 140, Or: 1100, Copy: 400, Switch: 3200},
}
