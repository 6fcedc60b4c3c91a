package coordinator

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rawlane/rawlane/vlan/manager"
)

// ErrPlansDiffer: the managers of a cluster have different plans. The ends of a pair may send by
// different VIDs, which switches flood.
var ErrPlansDiffer = errors.New("managers have different plans")

// ErrUnwell: managers cannot do their work, or paths between nodes are down.
var ErrUnwell = errors.New("not all is well")

// maxNamed bounds the nodes that an error names.
const maxNamed = 8

// PlansError lists the plans of nodes that should have one. It is ErrPlansDiffer.
type PlansError struct {
	Plans []HeldPlan // that of most nodes first
}

// HeldPlan is a plan, and the nodes that have it.
type HeldPlan struct {
	ID     string   // empty: they have none
	Reason string   // given for it
	Nodes  []string // their names or addresses, and their managers
}

// Is makes errors.Is(err, ErrPlansDiffer) hold.
func (e *PlansError) Is(target error) bool { return target == ErrPlansDiffer }

func (e *PlansError) Error() string {
	var plans []string
	for _, p := range e.Plans {
		what := "plan " + p.ID
		if p.ID == "" {
			what = "no plan"
		}
		if p.Reason != "" {
			what += fmt.Sprintf(" (%s)", p.Reason)
		}
		plans = append(plans, what+": "+listSome(p.Nodes, ", "))
	}
	return fmt.Sprintf("%v: %s (give all of them one: rawlane route apply)", ErrPlansDiffer, strings.Join(plans, "; "))
}

// listSome lists items, up to maxNamed.
func listSome(items []string, separator string) string {
	if more := len(items) - maxNamed; more > 0 {
		items = append(items[:maxNamed:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(items, separator)
}

// GroupError holds the errors of nodes that have kept a plan from being applied. It matches
// whatever these match.
type GroupError struct {
	Act   string  // ask, prepare, commit or roll back
	Nodes []error // each names its manager
}

func (e *GroupError) Error() string {
	var causes []string
	for _, err := range e.Nodes {
		causes = append(causes, err.Error())
	}
	return fmt.Sprintf("%s: %d failed; %s", e.Act, len(e.Nodes), listSome(causes, "; "))
}

// Unwrap returns the nodes' errors.
func (e *GroupError) Unwrap() []error { return e.Nodes }

// lateError: a manager did not answer for as long as a phase of a change may take. It may be well,
// but it matches what its request has ended with, as that of one that is not.
type lateError struct {
	addr        manager.Addr
	wait, lease time.Duration
	err         error
}

func (e *lateError) Unwrap() error { return e.err }

func (e *lateError) Error() string {
	limit := e.wait.String()
	if e.wait == e.lease {
		limit = "the lease of " + limit
	}
	return fmt.Sprintf("manager %v: did not answer within %s (give a longer --lease)", e.addr, limit)
}
