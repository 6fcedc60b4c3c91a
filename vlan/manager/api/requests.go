package api

import (
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// PrepareRequest asks a manager to stage a change of several nodes until its commit or the end of
// its lease.
type PrepareRequest struct {
	ID      string `json:"id"`
	LeaseMS int    `json:"lease_ms"`
	Plan    *Plan  `json:"plan,omitempty"`
	// Rollback stages the plan before the present one, in place of Plan.
	Rollback bool   `json:"rollback,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// SessionStart begins a session. The answer is a stream of events that lasts as long as the
// session: its end is the session's.
type SessionStart struct {
	// Session is an id of 1 to 64 bytes that no other session has.
	Session string `json:"session"`
	Program string `json:"program,omitempty"`
	// Pairs are what the program asks for, each since the version of its answer: the session of a
	// program that comes back gets its old place among the others.
	Pairs []SessionPair `json:"pairs,omitempty"`
}

// SessionPair is a pair of a session's, and since when.
type SessionPair struct {
	Change
	Since Version `json:"since,omitempty"`
}

// SessionEvent is one line of a session's stream.
type SessionEvent struct {
	// MAC is the node's address; only the first event has it.
	MAC *transport.MAC `json:"mac,omitempty"`
	// Version is that of Routes.
	Version Version `json:"version"`
	Routes  []Route `json:"routes,omitempty"`
	Full    bool    `json:"full,omitempty"` // Routes are all that there are; else they are those that have changed
	// Urgent: Routes avoid a path that is down, so that draining it is of no use.
	Urgent  bool     `json:"urgent,omitempty"`
	Dropped []Change `json:"dropped,omitempty"` // pairs of the session's that the manager has taken back
	// Ack asks the program to say, by POST applied, when it sends by Routes.
	Ack bool `json:"ack,omitempty"`
	// Report asks the program for its counters, by POST counters with this number. 0: it does not.
	Report uint64 `json:"report,omitempty"`
}

// SessionReport is a program's counters since its start.
type SessionReport struct {
	Report uint64      `json:"report,omitempty"` // the number of the event that asked
	Counts []vlan.Sent `json:"counts"`
}

// SessionApplied says that a program sends by a version.
type SessionApplied struct {
	Version Version `json:"version"`
}
