package server

import (
	"slices"

	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// Acts of the log's entries.
const (
	actPlan     = "plan"
	actPairs    = "pairs"
	actReset    = "reset"
	actRollback = "rollback"
	actAbort    = "abort"
	actSession  = "session"
	actOverride = "failover"
	actRestore  = "restored"
)

// byOperator is the author of changes over HTTP.
const byOperator = "operator"

// changeLog keeps the latest changes, and the routes that they have brought.
type changeLog struct {
	entries []api.Entry // a ring once it is full
	next    int
}

func (l *changeLog) add(e api.Entry, routes []vlan.Route) {
	e.Routes = api.RoutesOf(routes[:min(len(routes), api.MaxShown)])
	if len(l.entries) < api.MaxLog {
		l.entries = append(l.entries, e)
		return
	}
	l.entries[l.next] = e
	l.next = (l.next + 1) % api.MaxLog
}

// list returns the entries, the latest last.
func (l *changeLog) list() []api.Entry {
	return slices.Concat(l.entries[l.next:], l.entries[:l.next])
}

// requestCounts are for the metrics.
type requestCounts struct {
	changes  map[string]uint64 // by the log's act
	refused  map[string]uint64 // by api.Error.Code
	requests uint64
}

func newRequestCounts() requestCounts {
	return requestCounts{changes: make(map[string]uint64), refused: make(map[string]uint64)}
}
