package engine

import "time"

// The bounds of an engine, each with its reason.
const (
	// Numbers is how many barriers a group can have at once: a byte on the wire tells them apart.
	Numbers = 256
	// MaxSize is the most members: what the wire's 16 bits tell apart.
	MaxSize = 1 << 16
	// DefaultLimit is how long a member may stay silent. Members answer whenever their process runs, whatever their program
	// does; so this is to outlast a machine that swaps, or has many processes for each core.
	DefaultLimit = 2 * time.Second
	// firstAsk is how long a message is awaited before it is asked for, at least: several times a scheduler's slice, so
	// that nobody asks in a barrier that loses nothing.
	firstAsk = 3 * time.Millisecond
	// asksPerLimit is how often a silent member is asked before it counts as down, at least: where 30 % of all frames are
	// lost, half of the answers are, and 20 in a row once in a million times.
	asksPerLimit = 20
	// maxAbsences is how often a member that was heard in the group has to say that it has no such group, before that is
	// believed.
	maxAbsences = 3
	// maxNamed is how many members a failure names: what fits the smallest frame's payload well. The others it counts.
	maxNamed = 16
)
