package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
)

// member is a node of a cluster, and what its manager has answered.
type member struct {
	client   *manager.Client
	table    *api.Table             // its routes sorted by destination; nil: it has not answered
	laidOver map[transport.MAC]bool // destinations whose route a program or a failover has chosen
	health   api.Health             // for a survey and a control
	err      error                  // of the latest request, but for those that undo a change
	past     *api.Past              // what the node had before its present plan, for a rollback
	paths    []api.Path             // for a control, as the next four; nil: all are up
	counters api.Counters
	counted  monotime.Time // when the counters were read
	started  time.Time     // the manager, when it was last read with the plan in force
	away     bool          // it could not be read, or was restarted, since then
	state    NodeState     // for a change, as the next
	answer   api.Committed
	replaced bool // it has another plan since the change
}

func membersOf(managers []*manager.Client) (all []*member) {
	for _, c := range managers {
		all = append(all, &member{client: c})
	}
	return all
}

// askAll calls f for all members at once, and returns a *GroupError of those that failed.
func askAll(all []*member, act string, f func(*member) error) error {
	errs := make([]error, len(all))
	var calls sync.WaitGroup
	for i, m := range all {
		calls.Go(func() { errs[i] = f(m) })
	}
	calls.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return &GroupError{Act: act, Nodes: errs}
}

func (m *member) readTable(ctx context.Context) error {
	table, err := m.client.Table(ctx)
	m.table, m.err = nil, err
	if err == nil {
		m.take(table)
	}
	return err
}

// take makes t the member's table, whose routes are looked up from then on.
func (m *member) take(t *api.Table) {
	slices.SortFunc(t.Routes, func(r, s api.Route) int { return compareDst(r, s.Dst) })
	m.table, m.laidOver = t, make(map[transport.MAC]bool)
	for _, p := range t.Pairs {
		if peer, own := p.Peer(t.MAC); own && !p.Covered && p.By != byOperator {
			m.laidOver[peer] = true
		}
	}
}

// label names a member that has answered: n3 at unix:/run/m3.
func (m *member) label() string {
	return cmp.Or(m.table.Name, m.table.MAC.String()) + " at " + m.client.Addr().String()
}

// present is the plan of a member, by its id, and the reason given for it.
func (m *member) present() (id, reason string) { return m.table.PlanID, m.table.PlanReason }

// differing returns a *PlansError unless the members whose latest request has succeeded have one
// and the same plan, by planOf.
func differing(all []*member, planOf func(*member) (id, reason string)) error {
	e := new(PlansError)
	for _, m := range all {
		if m.err != nil {
			continue
		}
		id, reason := planOf(m)
		i := slices.IndexFunc(e.Plans, func(p HeldPlan) bool { return p.ID == id })
		if i < 0 {
			i = len(e.Plans)
			e.Plans = append(e.Plans, HeldPlan{ID: id, Reason: reason})
		}
		e.Plans[i].Nodes = append(e.Plans[i].Nodes, m.label())
	}
	if len(e.Plans) < 2 {
		return nil
	}
	slices.SortStableFunc(e.Plans, func(a, b HeldPlan) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })
	return e
}

// Survey asks all managers at once for their plans. The Status has the answers, and the errors of
// those that do not answer.
func Survey(ctx context.Context, managers []*manager.Client) *Status {
	all := membersOf(managers)
	err := askAll(all, "ask", func(m *member) error {
		if m.readTable(ctx) == nil {
			m.health, m.err = m.client.Health(ctx)
		}
		return m.err
	})
	s := &Status{Schema: api.Schema, Nodes: []NodeStatus{},
		err: errors.Join(err, differing(all, (*member).present), unwell(all))}
	for _, m := range all {
		s.Nodes = append(s.Nodes, m.status())
	}
	return s
}

// unwell returns an error that is ErrUnwell and names the nodes whose managers cannot do their
// work, or that have paths which are down.
func unwell(all []*member) error {
	var nodes []string
	which := ""
	for _, m := range all {
		if m.err != nil {
			continue
		}
		h := &m.health
		if !h.OK {
			nodes = append(nodes, m.label()+": "+h.Why)
		}
		if h.PathsDown > 0 {
			which = " (which paths: GET /v1/paths of a node's manager)"
		}
		switch {
		case len(h.Unreachable) > 0:
			nodes = append(nodes, fmt.Sprintf("%s: no path to %s", m.label(), listSome(h.Unreachable, ", ")))
		case h.PathsDown > 0:
			nodes = append(nodes, fmt.Sprintf("%s: paths down: %d%s", m.label(), h.PathsDown, m.aboutDefault()))
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s%s", ErrUnwell, listSome(nodes, "; "), which)
}

// aboutDefault says, behind a comma, what is wrong with the VID of a node's frames to groups and to
// all, if something is.
func (m *member) aboutDefault() string {
	vid := m.vidTo(transport.Broadcast)
	about := ""
	if m.laidOver[transport.Broadcast] {
		about = fmt.Sprintf(", default VID %d: groups and all go by VID %d", m.plannedDefault(), vid)
	}
	switch missed := listSome(m.health.MissedByDefault, ", "); {
	case missed == "":
		return about
	case about == "":
		return fmt.Sprintf(", default VID %d does not reach %s", vid, missed)
	default:
		return fmt.Sprintf("%s, and do not reach %s", about, missed)
	}
}

// plannedDefault is the default VID of a member by its plan, or 0.
func (m *member) plannedDefault() transport.VID {
	if m.table.Plan == nil {
		return 0
	}
	node, ok := m.table.Plan.NodeOf(m.table.MAC)
	if !ok {
		return 0
	}
	return m.table.Plan.Nodes[node].VID
}

// Status is the plans of several nodes.
type Status struct {
	Schema int          `json:"schema"`
	Nodes  []NodeStatus `json:"nodes"` // in the managers' order
	err    error
}

// Err returns nil if all managers answer, have one and the same plan, do their work and know of no
// path that is down. Else it joins what holds of a *PlansError, a *GroupError of those that could
// not be asked, and ErrUnwell.
func (s *Status) Err() error { return s.err }

// NodeStatus is the plan of one node.
type NodeStatus struct {
	Manager string        `json:"manager"`
	MAC     transport.MAC `json:"mac"`
	Name    string        `json:"name,omitempty"`
	PlanID  string        `json:"plan_id,omitempty"` // empty: it has none
	// PlanVersion is the version of the latest change of the plan or of the operator's pairs,
	// Reason the reason given for it.
	PlanVersion api.Version `json:"plan_version,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	Pairs       int         `json:"pairs"`                 // whose VID is not the plan's
	Programs    int         `json:"programs"`              // that send by its routes
	Prepared    string      `json:"prepared,omitempty"`    // id of a change that waits for its commit
	Failover    bool        `json:"failover"`              // the paths are watched
	PathsDown   int         `json:"paths_down"`            // of those that are watched
	Unreachable []string    `json:"unreachable,omitempty"` // nodes to which all watched paths are down
	// DefaultVID is that of frames to groups and to all; 0: they are untagged. MissedByDefault are
	// the nodes to which its path is down, and another one is not.
	DefaultVID      transport.VID `json:"default_vid,omitempty"`
	MissedByDefault []string      `json:"missed_by_default,omitempty"`
	Why             string        `json:"why,omitempty"`   // the manager cannot do its work
	Error           string        `json:"error,omitempty"` // why it could not be asked
}

func (m *member) status() NodeStatus {
	n := NodeStatus{Manager: m.client.Addr().String()}
	if m.err != nil {
		n.Error = m.err.Error()
		return n
	}
	t := m.table
	n.MAC, n.Name, n.Programs = t.MAC, t.Name, len(t.Sessions)
	n.PlanID, n.PlanVersion, n.Reason = t.PlanID, t.PlanVersion, t.PlanReason
	h := &m.health
	n.Failover, n.PathsDown, n.Unreachable, n.Why = h.Failover, h.PathsDown, h.Unreachable, h.Why
	n.DefaultVID, n.MissedByDefault = m.vidTo(transport.Broadcast), h.MissedByDefault
	for _, p := range t.Pairs {
		if !p.Covered && p.B != transport.Broadcast {
			n.Pairs++
		}
	}
	if t.Prepared != nil {
		n.Prepared = t.Prepared.ID
	}
	return n
}

// Previous returns the plan that all nodes had before the present one, and until when: it is for
// Apply with Rollback. The nodes have to agree on it; where they do not, since one was changed
// alone, the error says which.
func Previous(ctx context.Context, managers []*manager.Client) (p *plan.Plan, until time.Time, err error) {
	g := &group{nodes: membersOf(managers), options: ApplyOptions{Lease: DefaultLease, Rollback: true}}
	err = g.ask(ctx)
	if err == nil && len(g.nodes) == 0 {
		err = errors.New("no managers")
	}
	if err != nil {
		return nil, until, fmt.Errorf("roll back: %w", err)
	}
	before := func(m *member) (id, reason string) { return api.PlanID(&m.past.Plan.Plan), m.past.Reason }
	if err := differing(g.nodes, before); err != nil {
		if differ := differing(g.nodes, (*member).present); differ != nil {
			return nil, until, fmt.Errorf("roll back: %w", differ)
		}
		return nil, until, fmt.Errorf("roll back: before the present plan, %w", err)
	}
	past := g.nodes[0].past
	return &past.Plan.Plan, past.Until, nil
}

// readPast reads the latest setting of a node whose plan is not the present one.
func (m *member) readPast(ctx context.Context) error {
	h, err := m.client.History(ctx)
	if err != nil {
		return err
	}
	for _, past := range slices.Backward(h.Past) {
		if past.Plan != nil && !past.Plan.Equal(m.table.Plan) {
			m.past = &past
			return nil
		}
	}
	return fmt.Errorf("manager %v: %w", m.client.Addr(), api.ErrNoHistory)
}
