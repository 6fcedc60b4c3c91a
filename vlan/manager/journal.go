package manager

import (
	"slices"

	"github.com/rawlane/rawlane/vlan"
)

// journal keeps the latest changes, and which routes they left.
type journal struct {
	entries []Entry // a ring once it is full
	next    int
}

func (j *journal) add(e Entry, routes []vlan.Route) {
	e.Routes = routesJSON(routes[:min(len(routes), MaxShown)])
	if len(j.entries) < MaxJournal {
		j.entries = append(j.entries, e)
		return
	}
	j.entries[j.next] = e
	j.next = (j.next + 1) % MaxJournal
}

// list returns the entries, the latest last.
func (j *journal) list() []Entry {
	return slices.Concat(j.entries[j.next:], j.entries[:j.next])
}

// tally counts what has happened, for the metrics.
type tally struct {
	changes  map[string]uint64 // by Entry.Act
	refused  map[string]uint64 // by Error.Code
	requests uint64
}
