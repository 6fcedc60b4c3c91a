package engine

import (
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/sim"
)

// costs are a simulated network's, as schedules want them.
func costs(c sim.Config) schedule.LogP { return schedule.LogP{Os: c.Os, L: c.L, Or: c.Or, Gap: c.Gap} }
