package launch

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// Algorithm returns the algorithm of that name, spread over the networks; Auto's by what messages
// cost here.
func (p *ClusterFlags) Algorithm(name string) schedule.Algorithm {
	if name == "auto" {
		return schedule.Auto(p.Model()...)
	}
	a, _ := schedule.Parse(name) // as the flag did
	if p.NICs > 1 && !strings.Contains(name, "stripe:") && !strings.Contains(name, "redundant:") {
		a = schedule.Stripe(a, p.NICs)
	}
	return a
}

// Model is what messages cost here, one for each network.
func (p *ClusterFlags) Model() (nics []schedule.LogP) {
	m := schedule.DefaultLogP
	cores, err := strconv.Atoi(os.Getenv(cli.EnvLocal))
	if !p.Here() {
		cores, err = runtime.NumCPU(), nil
	}
	if local, known := localCosts[p.Kind]; known && err == nil {
		m = local
		m.Cores = cores
	}
	for range p.NICs {
		nics = append(nics, m)
	}
	return nics
}

// localCosts are those of nodes that share a machine. They fit the barriers of 4 to 32 nodes on two
// cores: Os includes the kernel's work for the receiver, which the sender does; Copy is what a
// switch in software costs for each port.
var localCosts = map[string]schedule.LogP{
	"fabric": {Os: 350 * time.Nanosecond, L: 30 * time.Nanosecond, Or: 60 * time.Nanosecond, Copy: 80 * time.Nanosecond, Switch: 800 * time.Nanosecond},
	"ring":   {Os: 1440 * time.Nanosecond, L: 140 * time.Nanosecond, Or: 220 * time.Nanosecond, Copy: 400 * time.Nanosecond, Switch: 3200 * time.Nanosecond},
	"packet": {Os: 1440 * time.Nanosecond, L: 140 * time.Nanosecond, Or: 1100 * time.Nanosecond, Copy: 400 * time.Nanosecond, Switch: 3200 * time.Nanosecond},
}
