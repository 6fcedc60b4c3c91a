package control

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// ControllerConfig says how eager a Controller is. The zero value of a field stands for its
// default.
type ControllerConfig struct {
	// Period is the time between two readings of the counters, and two decisions: 1 s. Less than a
	// millisecond is refused.
	Period time.Duration
	// Weight is the weight of the latest period in the average traffic: 0.5.
	Weight float64
	// Gain is the part by which the worst link must become lower: 0.1.
	Gain float64
	// Cost is added to Gain for each pair that changes: until switches have learned a pair's new
	// path, they flood its frames (VFREC §5.2). 0.002.
	Cost float64
	// Hysteresis is the number of periods in a row that must show such a gain before anything
	// changes: 3, and MaxHysteresis at most.
	Hysteresis int
	// MaxChanges is the largest number of pairs that change in one period: 8.
	MaxChanges int
	// FlapDamping is how long a pair that has changed is left alone: 10 periods. It doubles each
	// time that the pair changes again soon after, and halves for each such time that it does not.
	FlapDamping time.Duration
	// MinUtilization is the utilisation of the worst link below which nothing changes, unless a VID
	// does not connect its pair: 0.1. (Programs that compute and exchange in turn collide although
	// their links are idle most of the time.)
	MinUtilization float64
}

const (
	// MaxHysteresis bounds the periods that a Controller remembers.
	MaxHysteresis = 60
	// minTime is the least period, or time of a FailoverConfig: in less no answer comes, and most
	// often the unit was forgotten.
	minTime = time.Millisecond
)

// complete fills in the defaults, and returns an error that names a field out of range.
func (c *ControllerConfig) complete() error {
	c.Period = cmp.Or(c.Period, time.Second)
	c.Weight = cmp.Or(c.Weight, 0.5)
	c.Gain = cmp.Or(c.Gain, 0.1)
	c.Cost = cmp.Or(c.Cost, 0.002)
	c.Hysteresis = cmp.Or(c.Hysteresis, 3)
	c.MaxChanges = cmp.Or(c.MaxChanges, 8)
	c.FlapDamping = cmp.Or(c.FlapDamping, 10*c.Period)
	c.MinUtilization = cmp.Or(c.MinUtilization, 0.1)
	switch {
	case c.Period < minTime:
		return fmt.Errorf("control: period %v (want %v or more; a number without a unit is in nanoseconds)",
			c.Period, minTime)
	case !(c.Weight > 0 && c.Weight <= 1):
		return fmt.Errorf("control: weight %v (want more than 0, to 1)", c.Weight)
	case !(c.Gain > 0 && c.Gain < 1):
		return fmt.Errorf("control: gain %v (want between 0 and 1)", c.Gain)
	case !(c.Cost >= 0 && c.Cost < 1):
		return fmt.Errorf("control: cost %v (want 0 or more, below 1)", c.Cost)
	case c.Hysteresis < 1 || c.Hysteresis > MaxHysteresis:
		return fmt.Errorf("control: hysteresis %d (want 1 to %d periods)", c.Hysteresis, MaxHysteresis)
	case c.MaxChanges < 1:
		return fmt.Errorf("control: max changes %d (want 1 at least)", c.MaxChanges)
	case c.FlapDamping < 0:
		return fmt.Errorf("control: flap damping %v (want 0 or more)", c.FlapDamping)
	case !(c.MinUtilization >= 0):
		return fmt.Errorf("control: min utilization %v (want 0 or more)", c.MinUtilization)
	}
	return nil
}

// FailoverConfig says what is watched, and how closely. Zero durations and numbers stand for the
// defaults: with them, a dead path is left after 150 to 250 ms, and a node that has 15 peers on 4
// VIDs sends 200 probes a second. With 1,023 peers it sends 13,300, and answers as many: in a
// cluster of that size Probe and StandbyInterval should be longer, and dead paths are left later.
// Times of less than a millisecond are refused.
type FailoverConfig struct {
	// VIDs are those that pairs may be moved to: 1 to MaxFailoverVIDs of them. All ends must have
	// the same.
	VIDs []transport.VID
	// Probe is the time between two probes of the VID in use, and of all VIDs while that is not up:
	// 100 ms.
	Probe time.Duration
	// StandbyInterval is the time between two probes of the other VIDs: 1 s.
	StandbyInterval time.Duration
	// Timeout is the wait for an answer after which its probe counts as missed: 50 ms, since a peer
	// that must be woken on a busy machine takes some. A later answer counts as well, until the
	// path is given up.
	Timeout time.Duration
	// Misses is the number of missed probes in a row that is too many: 3. A path is given up only
	// when its peer has answered by another one since the first miss, or has missed as many by all.
	Misses int
	// WaitToRestore is how long a path must have answered without a miss before it is up again: 5
	// s.
	WaitToRestore time.Duration
}

const (
	// DefaultProbe is the default of FailoverConfig.Probe.
	DefaultProbe = 100 * time.Millisecond
	// DefaultWaitToRestore is the default of FailoverConfig.WaitToRestore.
	DefaultWaitToRestore = 5 * time.Second
	// MaxFailoverVIDs is the number of VIDs that fit a short frame's worth of probe.
	MaxFailoverVIDs = 64
	// maxFailoverTime bounds the times of a FailoverConfig, and maxMisses its misses: a product of
	// both fits a time.Duration.
	maxFailoverTime = 24 * time.Hour
	maxMisses       = 1000
)

// complete fills in the defaults, and returns an error that names a field out of range.
func (c *FailoverConfig) complete() error {
	if n := len(c.VIDs); n < 1 || n > MaxFailoverVIDs {
		return fmt.Errorf("failover: %d VIDs (want 1 to %d)", n, MaxFailoverVIDs)
	}
	c.VIDs = slices.Sorted(slices.Values(c.VIDs))
	for i, vid := range c.VIDs {
		if vid < 1 || vid > transport.MaxVID {
			return fmt.Errorf("failover: %w: VID %d (want 1 to %d)", transport.ErrBadTag, vid, transport.MaxVID)
		}
		if i > 0 && vid == c.VIDs[i-1] {
			return fmt.Errorf("failover: VID %d is listed twice", vid)
		}
	}
	wrong := func(t time.Duration) bool { return t != 0 && (t < minTime || t > maxFailoverTime) }
	if slices.ContainsFunc([]time.Duration{c.Probe, c.StandbyInterval, c.Timeout, c.WaitToRestore}, wrong) ||
		c.Misses < 0 || c.Misses > maxMisses {
		return fmt.Errorf("failover: probe %v, standby interval %v, timeout %v, wait to restore %v, misses %d"+
			" (want 0, or times of %v to %v and misses of %d at most; a number without a unit is in nanoseconds)",
			c.Probe, c.StandbyInterval, c.Timeout, c.WaitToRestore, c.Misses, minTime, maxFailoverTime, maxMisses)
	}
	c.Probe = cmp.Or(c.Probe, DefaultProbe)
	c.StandbyInterval = max(c.Probe, cmp.Or(c.StandbyInterval, time.Second))
	c.Timeout = cmp.Or(c.Timeout, 50*time.Millisecond)
	c.Misses = cmp.Or(c.Misses, 3)
	c.WaitToRestore = cmp.Or(c.WaitToRestore, DefaultWaitToRestore)
	return nil
}
