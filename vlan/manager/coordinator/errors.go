package coordinator

import (
	"errors"
	"fmt"
	"strings"
)

// ErrPlansDiffer: the managers of a cluster have different plans. The ends of a pair may send by
// different VIDs, which switches flood.
var ErrPlansDiffer = errors.New("managers have different plans")

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
	var s strings.Builder
	s.WriteString(ErrPlansDiffer.Error())
	for i, p := range e.Plans {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		what := "plan " + p.ID
		if p.ID == "" {
			what = "no plan"
		}
		if p.Reason != "" {
			what += fmt.Sprintf(" (%s)", p.Reason)
		}
		fmt.Fprintf(&s, "%s%s: %s", separator, what, listNames(p.Nodes))
	}
	s.WriteString(" (give all of them one: rawlane route apply)")
	return s.String()
}

// listNames lists names, up to maxNamed.
func listNames(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

// GroupError holds the errors of nodes that have kept a plan from being applied. It matches
// whatever these match.
type GroupError struct {
	Act   string  // ask, prepare, commit or roll back
	Nodes []error // each names its manager
}

func (e *GroupError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %d failed", e.Act, len(e.Nodes))
	for i, err := range e.Nodes {
		if i == maxNamed {
			fmt.Fprintf(&s, "; and %d more", len(e.Nodes)-i)
			break
		}
		fmt.Fprintf(&s, "; %v", err)
	}
	return s.String()
}

// Unwrap returns the nodes' errors.
func (e *GroupError) Unwrap() []error { return e.Nodes }
