package server

import (
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

// changeLog is the latest changes, the latest last, and the routes that they have brought. Entries
// do not change: an answer may hold a part of it.
type changeLog []api.Entry

func (l *changeLog) add(e api.Entry, routes []vlan.Route) {
	e.Routes = api.RoutesOf(routes[:min(len(routes), api.MaxShown)])
	*l = append((*l)[max(0, len(*l)+1-api.MaxLog):], e)
}
