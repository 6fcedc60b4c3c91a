package engine

import (
	"time"

	"github.com/rawlane/rawlane/barrier/internal/agreement"
)

// The bounds of an engine, each with its reason.
const (
	// Numbers is how many barriers a group can have at once: a byte on the wire tells them apart.
	Numbers = 256
	// DefaultPeerTimeout is how long a member may be silent. A member answers whenever its process
	// runs, so the timeout outlasts a machine that swaps, or that has many processes for each core.
	DefaultPeerTimeout = 2 * time.Second
	// firstNack is the least time before the first nack: several slices of a scheduler, so that a
	// barrier that loses nothing sends none.
	firstNack = 3 * time.Millisecond
	// nackShare is what each member of a large group adds to that: all of them may await one, and
	// that one has so long for its answer to each.
	nackShare = 20 * time.Microsecond
	// nacksPerTimeout is the least number of nacks before a silent member counts as down.
	nacksPerTimeout = agreement.Queries
	// maxKnown is the most members of a group whose notifies tell incarnations: as long as a bye.
	// By links whose frames are shorter than Ethernet's it may be fewer. In a larger group a member
	// that begins anew is known to those that it sends messages to.
	maxKnown = 320
	// maxNamed is the most members that a fail message names: its sender, and the one it is about.
	maxNamed = 2
)
