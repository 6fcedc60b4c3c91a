package manager

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/internal/claims"

	"github.com/rawlane/rawlane/vlan/plan"
)

// Schema is the version of the JSON objects below. Fields may be added to a version; what one means does not change.
const Schema = 1

// Change asks for a VID for both directions between two nodes. The order of the two does not matter.
type Change = claims.Change

// Table is a manager's answer about what is in force on its node.
type Table struct {
	Schema int `json:"schema"`
	// Version grows with each change of the routes, and across restarts.
	Version uint64 `json:"version"`
	// PlanVersion is the version at which the plan, or the operator's pairs, changed last.
	PlanVersion uint64 `json:"plan_version"`
	// PlanID is the plan's: see the function of that name. PlanReason is what was given for the latest change of the plan or the pairs.
	PlanID     string        `json:"plan_id,omitempty"`
	PlanReason string        `json:"plan_reason,omitempty"`
	MAC        transport.MAC `json:"mac"`
	Name       string        `json:"name,omitempty"` // of this node in the plan
	Plan       *Plan         `json:"plan"`           // null: none yet
	// Pairs are the wishes that lie over the plan.
	Pairs    []Pair    `json:"pairs"`
	Routes   []Route   `json:"routes"`
	Sessions []Program `json:"sessions"`
	// Prepared is a change that waits to be committed.
	Prepared *Prepared `json:"prepared,omitempty"`
}

// Plan is a plan.Plan as JSON.
type Plan struct{ plan.Plan }

type planJSON struct {
	Topology string                   `json:"topology,omitempty"`
	VIDs     []transport.VID          `json:"vids"`
	PCP      transport.PCP            `json:"pcp"`
	Nodes    []stationJSON            `json:"nodes"`
	Pairs    map[string]transport.VID `json:"pairs,omitempty"` // by two numbers of nodes: "2-8"
}

type stationJSON struct {
	Name     string        `json:"name,omitempty"`
	MAC      transport.MAC `json:"mac"`
	VID      transport.VID `json:"vid"`
	Priority int           `json:"priority,omitempty"`
}

// MarshalJSON implements json.Marshaler. Equal plans give equal bytes.
func (p Plan) MarshalJSON() ([]byte, error) {
	doc := planJSON{Topology: p.Topology, VIDs: p.VIDs, PCP: p.PCP, Pairs: make(map[string]transport.VID, len(p.Pairs))}
	for _, s := range p.Nodes {
		doc.Nodes = append(doc.Nodes, stationJSON(s))
	}
	for pair, vid := range p.Pairs {
		doc.Pairs[pair.String()] = vid
	}
	return json.Marshal(doc)
}

// UnmarshalJSON implements json.Unmarshaler. It refuses unknown fields and a pair that is given two VIDs, and else leaves it to
// Validate whether the plan makes sense.
func (p *Plan) UnmarshalJSON(b []byte) error {
	var doc planJSON
	if err := decodeStrict(b, &doc); err != nil {
		return err
	}
	pl := plan.Plan{Topology: doc.Topology, VIDs: doc.VIDs, PCP: doc.PCP}
	for _, s := range doc.Nodes {
		pl.Nodes = append(pl.Nodes, plan.Node(s))
	}
	if len(doc.Pairs) > 0 {
		pl.Pairs = make(map[plan.Pair]transport.VID, len(doc.Pairs))
	}
	for text, vid := range doc.Pairs {
		pair, err := plan.ParsePair(text)
		if err != nil {
			return badRequest("pairs: %v", err)
		}
		if other, again := pl.Pairs[pair]; again && other != vid {
			return &Error{Code: "one_sided", Message: fmt.Sprintf("pairs: %v: given twice, with VID %d and VID %d (want one for both directions)", pair, min(vid, other), max(vid, other))}
		}
		pl.Pairs[pair] = vid
	}
	p.Plan = pl
	return nil
}

// Pair is a wish for a pair, over the plan.
type Pair struct {
	A      transport.MAC `json:"a"`
	B      transport.MAC `json:"b"`
	VID    transport.VID `json:"vid"`
	By     string        `json:"by"` // operator, failover, or session N
	Reason string        `json:"reason,omitempty"`
	// Covered wishes are not in force: another one lies above them.
	Covered bool `json:"covered,omitempty"`
}

// Route is a vlan.Route as JSON.
type Route struct {
	Dst      transport.MAC `json:"dst"` // ff:ff:ff:ff:ff:ff: all that have no route of their own
	VID      transport.VID `json:"vid,omitempty"`
	PCP      transport.PCP `json:"pcp,omitempty"`
	Untagged bool          `json:"untagged,omitempty"`
}

func routesJSON(routes []vlan.Route) []Route {
	docs := make([]Route, len(routes))
	for i, r := range routes {
		docs[i] = Route{r.Dst, r.Tag.VID, r.Tag.PCP, !r.Tagged}
	}
	return docs
}

func (r Route) route() vlan.Route {
	tag := transport.OptionalTag{Tagged: !r.Untagged, Tag: transport.Tag{VID: r.VID, PCP: r.PCP}}
	return vlan.Route{Dst: r.Dst, OptionalTag: tag}
}

// Program is a session that the manager serves.
type Program struct {
	Number  uint64 `json:"number"`
	Program string `json:"program,omitempty"`
	Applied uint64 `json:"applied"` // the version that it has said to send by
}

// Prepared is a change that waits to be committed.
type Prepared struct {
	ID      string    `json:"id"`
	Reason  string    `json:"reason,omitempty"`
	Expires time.Time `json:"expires"`
	Changes int       `json:"changes"` // routes of this node
}

// Changed is a manager's answer to a change.
type Changed struct {
	Schema  int    `json:"schema"`
	Version uint64 `json:"version"`
	Routes  int    `json:"routes"`            // that have changed
	Ignored int    `json:"ignored,omitempty"` // pairs of other nodes
	// Dropped are the programs' wishes that a new plan cannot fulfil.
	Dropped []Change `json:"dropped,omitempty"`
	// Warning says that the change is in force and a restart finds it, but a power failure may take it back.
	Warning string `json:"warning,omitempty"`
}

// Counters is a manager's answer about what this node's programs have sent by their routes.
type Counters struct {
	Schema  int    `json:"schema"`
	Version uint64 `json:"version"`
	// Silent sessions did not report in time: of them, these are the counters of their last report.
	Silent int     `json:"silent,omitempty"`
	Nodes  []Count `json:"nodes"`
	VIDs   []Count `json:"vids"`
}

// Count is what was sent to a destination with a VID, or with a VID to all.
type Count struct {
	Dst    *transport.MAC `json:"dst,omitempty"` // ff:ff:ff:ff:ff:ff: all that had no route of their own
	Name   string         `json:"name,omitempty"`
	VID    transport.VID  `json:"vid"` // 0: untagged
	Frames uint64         `json:"frames"`
	Bytes  uint64         `json:"bytes"`
}

// Entry is one change, in the log.
type Entry struct {
	Time    time.Time `json:"time"`
	Version uint64    `json:"version"`
	Act     string    `json:"act"`
	By      string    `json:"by"`
	Reason  string    `json:"reason,omitempty"`
	Routes  []Route   `json:"routes,omitempty"` // as they are since; at most MaxShown
	Count   int       `json:"count"`            // of routes that have changed
}

// MaxShown bounds the routes that an entry of the log lists.
const MaxShown = 64

// About is a manager's answer about itself.
type About struct {
	Schema    int           `json:"schema"`
	Protocol  int           `json:"protocol"` // of sessions
	Program   string        `json:"program"`
	MAC       transport.MAC `json:"mac"`
	Interface string        `json:"interface,omitempty"`
	Started   time.Time     `json:"started"`
	PID       int           `json:"pid"`
}
