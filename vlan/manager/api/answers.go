package api

import (
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
)

// Change asks for a VID for both directions between two nodes. The order of the two does not
// matter.
type Change = rib.Change

// Table is the routes in force on a manager's node, and their origin.
type Table struct {
	Schema int `json:"schema"`
	// Version grows with each change of the routes or of what programs ask for, and across
	// restarts.
	Version Version `json:"version"`
	// PlanVersion is the version of the latest change of the plan or of the operator's pairs,
	// PlanReason the reason given for it.
	PlanVersion Version       `json:"plan_version"`
	PlanID      string        `json:"plan_id,omitempty"` // see the function of that name
	PlanReason  string        `json:"plan_reason,omitempty"`
	PlanFrom    string        `json:"plan_from,omitempty"` // who has made that change: see Entry
	MAC         transport.MAC `json:"mac"`
	Name        string        `json:"name,omitempty"` // of this node in the plan
	Plan        *Plan         `json:"plan"`           // null: none yet
	Pairs       []Pair        `json:"pairs"`          // what lies over the plan
	Routes      []Route       `json:"routes"`
	Sessions    []Program     `json:"sessions"`
	Prepared    *Prepared     `json:"prepared,omitempty"` // a change that waits for its commit
}

// Pair is a VID for a pair, over the plan. One with transport.Broadcast as B, by a failover, is
// that of the default route.
type Pair struct {
	Change
	By      string `json:"by"` // operator, failover, or session N
	Reason  string `json:"reason,omitempty"`
	Covered bool   `json:"covered,omitempty"` // another one lies above it and is in force
}

// Route is a vlan.Route as JSON.
type Route struct {
	Dst      transport.MAC `json:"dst"` // ff:ff:ff:ff:ff:ff: all destinations without a route of their own
	VID      transport.VID `json:"vid,omitempty"`
	PCP      transport.PCP `json:"pcp,omitempty"`
	Untagged bool          `json:"untagged,omitempty"`
}

// RouteOf returns r as JSON has it.
func RouteOf(r vlan.Route) Route { return Route{r.Dst, r.Tag.VID, r.Tag.PCP, !r.Tagged} }

// Route returns r as tables have it.
func (r Route) Route() vlan.Route {
	tag := transport.OptionalTag{Tagged: !r.Untagged, Tag: transport.Tag{VID: r.VID, PCP: r.PCP}}
	return vlan.Route{Dst: r.Dst, OptionalTag: tag}
}

// RoutesOf returns routes as JSON has them.
func RoutesOf(routes []vlan.Route) []Route {
	docs := make([]Route, len(routes))
	for i, r := range routes {
		docs[i] = RouteOf(r)
	}
	return docs
}

// Program is a session that the manager serves.
type Program struct {
	Number  uint64  `json:"number"`
	Program string  `json:"program,omitempty"`
	From    string  `json:"from,omitempty"` // as in an Entry
	Applied Version `json:"applied"`        // the program has said that it sends by this version
}

// Changed is the answer to a change.
type Changed struct {
	Schema  int      `json:"schema"`
	Version Version  `json:"version"`
	Routes  int      `json:"routes"`            // that have changed
	Ignored int      `json:"ignored,omitempty"` // pairs of other nodes
	Dropped []Change `json:"dropped,omitempty"` // programs' pairs that the new plan cannot fulfil
	// Warning says that the change is in force and a restart finds it, but a power failure may undo
	// it.
	Warning string `json:"warning,omitempty"`
}

// Prepared is a change that waits for its commit.
type Prepared struct {
	ID      string    `json:"id"`
	Reason  string    `json:"reason,omitempty"`
	Expires time.Time `json:"expires"`
	Changes int       `json:"changes"` // of this node's routes
}

// ConfirmWait bounds the wait of a commit's answer for the programs to confirm that they send by
// the new routes.
const ConfirmWait = 500 * time.Millisecond

// Committed is the answer to a commit.
type Committed struct {
	Changed
	Late  int  `json:"late,omitempty"`  // programs that have not said yet that they send by the new routes
	Again bool `json:"again,omitempty"` // it had been committed before
}

// Log is the latest changes of a manager's routes, in their order.
type Log struct {
	Schema  int     `json:"schema"`
	Entries []Entry `json:"entries"`
}

// Entry is one change, in the log.
type Entry struct {
	Time    time.Time `json:"time"`
	Version Version   `json:"version"`
	Act     string    `json:"act"`
	By      string    `json:"by"`
	// From is the other end of the request's connection: the user, group and process by a Unix
	// socket, the certificate and the address by TLS, else the address.
	From   string  `json:"from,omitempty"`
	Reason string  `json:"reason,omitempty"`
	Routes []Route `json:"routes,omitempty"` // the new routes; at most MaxShown
	Count  int     `json:"count"`            // of routes that have changed
}

// History is the settings before the one in force, in their order: a rollback goes back to the
// last.
type History struct {
	Schema int    `json:"schema"`
	Past   []Past `json:"past"`
}

// Past is a setting that was in force before.
type Past struct {
	Until  time.Time `json:"until"`
	ID     string    `json:"id,omitempty"` // of the group change that brought it
	Reason string    `json:"reason,omitempty"`
	From   string    `json:"from,omitempty"` // as in an Entry
	Plan   *Plan     `json:"plan"`
	Pairs  []Change  `json:"pairs,omitempty"`
}

// Counters is what a node's programs have sent by their routes.
type Counters struct {
	Schema  int     `json:"schema"`
	Version Version `json:"version"`
	// Silent programs did not report in time: their last report counts.
	Silent int         `json:"silent,omitempty"`
	Nodes  []Sent      `json:"nodes"`
	VIDs   []vlan.Sent `json:"vids"` // to all destinations
}

// Sent is what was sent to a destination with a VID.
type Sent struct {
	Dst    transport.MAC `json:"dst"` // ff:ff:ff:ff:ff:ff: all destinations without a route of their own
	Name   string        `json:"name,omitempty"`
	VID    transport.VID `json:"vid"` // 0: untagged
	Frames uint64        `json:"frames"`
	Bytes  uint64        `json:"bytes"`
}

// NIC is the node's network interface.
type NIC struct {
	Schema    int           `json:"schema"`
	Interface string        `json:"interface"`
	MAC       transport.MAC `json:"mac"`
	MTU       int           `json:"mtu,omitempty"`
	Driver    string        `json:"driver,omitempty"`     // empty: the system does not tell
	SpeedMbps int           `json:"speed_mbps,omitempty"` // 0: the driver does not tell
	Up        bool          `json:"up"`                   // it is set up
	Carrier   bool          `json:"carrier"`              // and has a link partner
}

// About is a manager's program and process.
type About struct {
	Schema    int           `json:"schema"`
	Program   string        `json:"program"`
	MAC       transport.MAC `json:"mac"`
	Interface string        `json:"interface,omitempty"`
	Started   time.Time     `json:"started"`
	PID       int           `json:"pid"`
}

// Health is whether a manager does its work.
type Health struct {
	Schema int `json:"schema"`
	// OK: it keeps its state on the disk and, if it has a failover, watches the plan's paths.
	OK       bool    `json:"ok"`
	Why      string  `json:"why,omitempty"` // it is not
	Version  Version `json:"version"`
	HasPlan  bool    `json:"has_plan"`
	PlanID   string  `json:"plan_id,omitempty"` // see the function of that name
	Sessions int     `json:"sessions"`
	UptimeS  int64   `json:"uptime_s"`
	// Started is when the manager started: another instant than before means that it was restarted.
	Started  time.Time `json:"started"`
	Failover bool      `json:"failover"` // the paths are watched
	// PathsDown is the number of watched paths that carry nothing, PathsRestoring that of those
	// that answer again and have not held for long enough yet. Unreachable are the nodes to which
	// all paths are down, and MissedByDefault those to which the path by the VID of frames to
	// groups and to all is, and another one is not; by name or address, at most MaxShown of each.
	// None of it is the manager's fault.
	PathsDown       int      `json:"paths_down"`
	PathsRestoring  int      `json:"paths_restoring,omitempty"`
	Unreachable     []string `json:"unreachable,omitempty"`
	MissedByDefault []string `json:"missed_by_default,omitempty"`
}

// Failover is what a node's failover watches.
type Failover struct {
	Schema   int    `json:"schema"`
	Watching bool   `json:"watching"`
	Error    string `json:"error,omitempty"` // why it cannot watch
	Paths    []Path `json:"paths"`           // by peer and VID
}

// Path is the state of the path to a node by a VID, as a failover finds it.
type Path struct {
	Peer      transport.MAC `json:"peer"`
	Name      string        `json:"name,omitempty"` // of the peer in the plan
	VID       transport.VID `json:"vid"`
	State     string        `json:"state"` // up, suspect, wait-to-restore or down
	Used      bool          `json:"used"`
	Preferred bool          `json:"preferred"`
}

// States of a Path: see control.PathState.
const (
	PathUp            = "up"
	PathSuspect       = "suspect"
	PathWaitToRestore = "wait-to-restore"
	PathDown          = "down" // it carries nothing
)
