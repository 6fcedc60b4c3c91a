package server

import (
	"cmp"
	"slices"
	"time"

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

var acts = []string{actPlan, actPairs, actReset, actRollback, actAbort, actSession, actOverride, actRestore}

// byOperator is the author of changes over HTTP.
const byOperator = "operator"

// changeLog is the latest changes, and the routes that they have brought: those of operators and of
// failovers apart from those of programs, which may be many and must not push the others out.
// Entries do not change: an answer may hold a part of it.
type changeLog struct{ operators, programs []api.Entry }

func (l *changeLog) add(e api.Entry, routes []vlan.Route) {
	e.Routes = api.RoutesOf(routes[:min(len(routes), api.MaxShown)])
	of := &l.operators
	if e.Act == actSession {
		of = &l.programs
	}
	*of = append((*of)[max(0, len(*of)+1-api.MaxLog):], e)
}

// all returns the entries in the order of their versions.
func (l *changeLog) all() []api.Entry {
	all := slices.Concat(l.operators, l.programs)
	slices.SortStableFunc(all, func(a, b api.Entry) int { return cmp.Compare(a.Version, b.Version) })
	return all
}

// latest returns the time of the latest entry, if there is one.
func (l *changeLog) latest() (at time.Time, ok bool) {
	for _, entries := range [][]api.Entry{l.operators, l.programs} {
		if n := len(entries); n > 0 && entries[n-1].Time.After(at) {
			at, ok = entries[n-1].Time, true
		}
	}
	return at, ok
}
