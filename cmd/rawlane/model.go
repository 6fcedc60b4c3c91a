package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// algorithm returns the algorithm of that name, spread over the networks; Auto's by what messages cost here.
func (p *place) algorithm(name string) schedule.Algorithm {
	if name == "auto" {
		return schedule.Auto(p.model()...)
	}
	a, _ := schedule.Parse(name) // as the flag did
	if p.nics > 1 && !strings.Contains(name, "stripe:") && !strings.Contains(name, "redundant:") {
		a = schedule.Stripe(a, p.nics)
	}
	return a
}

// model is what messages cost here, one for each network.
func (p *place) model() (nics []schedule.LogP) {
	m := schedule.DefaultLogP
	cores, err := strconv.Atoi(os.Getenv(envLocal))
	if !p.here() {
		cores, err = runtime.NumCPU(), nil
	}
	if local, known := localCosts[p.kind]; known && err == nil {
		m = local
		m.Cores = cores
	}
	for range p.nics {
		nics = append(nics, m)
	}
	return nics
}

// localCosts are those of nodes that share a machine. They fit the barriers of 4 to 32 nodes on two cores: Os includes the
// kernel's work for the receiver, which the sender does; Copy is what a switch in software costs for each port.
var localCosts = map[string]schedule.LogP{
	"fabric": {Os: 350 * time.Nanosecond, L: 30 * time.Nanosecond, Or: 60 * time.Nanosecond, Copy: 80 * time.Nanosecond, Switch: 800 * time.Nanosecond},
	"ring":   {Os: 1440 * time.Nanosecond, L: 140 * time.Nanosecond, Or: 220 * time.Nanosecond, Copy: 400 * time.Nanosecond, Switch: 3200 * time.Nanosecond},
	"packet": {Os: 1440 * time.Nanosecond, L: 140 * time.Nanosecond, Or: 1100 * time.Nanosecond, Copy: 400 * time.Nanosecond, Switch: 3200 * time.Nanosecond},
}
