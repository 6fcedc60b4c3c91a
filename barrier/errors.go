package barrier

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
)

// Sentinels: test with errors.Is.
var (
	// ErrNodeDown: a member takes part no more. A *NodeDownError names it.
	ErrNodeDown = errors.New("node down")
	// ErrExcluded: this node takes part no more, to the other members. A *NodeDownError says so.
	ErrExcluded = errors.New("excluded by the other members")
	// ErrNoQuorum: fewer members are left than GroupConfig.Quorum.
	ErrNoQuorum = errors.New("no quorum")
	// ErrMismatch: members run different algorithms, as they were given, or chose when one of them
	// had begun anew elsewhere. A *MismatchError names them.
	ErrMismatch = errors.New("members disagree")
	// ErrIncomplete: the wait ended before the barrier did. An *IncompleteError names the missing
	// nodes.
	ErrIncomplete = errors.New("barrier incomplete")
	// ErrPending: the barrier was entered, and its ticket is out, or another goroutine's. Wait with
	// the ticket; goroutines that synchronise side by side have a number each (Options.Number).
	ErrPending = errors.New("barrier was entered and not left (wait with its ticket, or take another number)")
	// ErrNotMember: this node is not among the members.
	ErrNotMember = errors.New("this node is not a member")
	// ErrUnit: Config.Unit cannot count for the endpoint.
	ErrUnit = errors.New("the unit cannot count")
	// ErrClosed: the group or the service was closed. Is mcd.ErrClosed and net.ErrClosed.
	ErrClosed = fmt.Errorf("group closed: %w", mcd.ErrClosed)

	errNoBarrier = errors.New("ticket of no barrier (its Arrive has failed)")
)

// Reason is why a member takes part no more.
type Reason uint8

// The reasons.
const (
	Silent      = Reason(engine.Silent)      // it has not answered for PeerTimeout
	Unreachable = Reason(engine.Unreachable) // it answers, but not by the route to it
	Left        = Reason(engine.Left)        // it said goodbye before it had completed the barrier
	Restarted   = Reason(engine.Restarted)   // it has begun anew, or is not at the same generation
)

// String names r.
func (r Reason) String() string { return engine.ReasonName(engine.Reason(r)) }

// NodeDownError names members that take part no more. It is ErrNodeDown. All members that get it
// for one group get the same nodes, unless one of them is among the other's: see the package's
// comment. Group.Without makes a group of the others.
type NodeDownError struct {
	Number     uint8  // of the barrier
	Generation uint32 // counted from 1
	Nodes      []mcd.NodeID
	Reasons    []Reason      // by index in Nodes
	Timeout    time.Duration // GroupConfig.PeerTimeout
	// Excluded: this node is among them. The others took it for gone while it stood still, or could
	// not be heard, and go on without it. It is ErrExcluded, too.
	Excluded bool
	// Survivors is how many other members there are, and Quorum the least of them that may go on
	// (GroupConfig.Quorum; 0 of a mask). If there are fewer the error is ErrNoQuorum, too.
	Survivors, Quorum int
	// LinkErrs are why nothing can be received by links of this node, if one is Silent:
	// mcd.Endpoint.LinkErr.
	LinkErrs []error
}

func (e *NodeDownError) Error() string {
	var all []string
	for i := 0; i < len(e.Nodes); {
		why, nodes := e.Reasons[i], []mcd.NodeID{}
		for ; i < len(e.Nodes) && e.Reasons[i] == why; i++ {
			nodes = append(nodes, e.Nodes[i])
		}
		all = append(all, names(nodes)+": "+e.explain(why))
	}
	text := fmt.Sprintf("barrier %d, generation %d: %s", e.Number, e.Generation, strings.Join(all, "; "))
	for _, err := range e.LinkErrs {
		text += fmt.Sprintf("; %v", err)
	}
	switch {
	case e.Excluded:
		text += "; this node is among them, and the others go on without it " +
			"(close the group, and make it anew as they do)"
	case e.Survivors < e.Quorum:
		text += fmt.Sprintf("; %d members are left, fewer than the quorum of %d", e.Survivors, e.Quorum)
	}
	return text
}

func (e *NodeDownError) explain(why Reason) string {
	switch why {
	case Silent:
		return fmt.Sprintf("silent for more than %v", e.Timeout)
	case Unreachable:
		return fmt.Sprintf("not to be reached for more than %v, though alive on other paths (rawlane ping tries each)",
			e.Timeout)
	case Restarted:
		return "begun anew, or not at the same generation (close the group, and make it anew)"
	}
	return "said goodbye before they had completed it"
}

// Is makes errors.Is hold for ErrNodeDown, and for ErrExcluded and ErrNoQuorum where they apply.
func (e *NodeDownError) Is(target error) bool {
	return target == ErrNodeDown || target == ErrExcluded && e.Excluded ||
		target == ErrNoQuorum && e.Survivors < e.Quorum
}

// MismatchError names members of which at least one runs another algorithm: they gave others or, if
// they gave none, have made the group with other places in their tables. It is ErrMismatch.
type MismatchError struct {
	Number     uint8
	Generation uint32
	Nodes      []mcd.NodeID
	Algorithm  schedule.Algorithm // this node's
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("barrier %d, generation %d: %s: another algorithm than %v at one of them "+
		"(give all the same, or a member's place has changed: close the group, and make it anew)",
		e.Number, e.Generation, names(e.Nodes), e.Algorithm)
}

// Is makes errors.Is(err, ErrMismatch) hold.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// IncompleteError says which members are missing in a barrier whose wait was given up. It is
// ErrIncomplete, and what ended the wait. The barrier stays entered: Ticket.Wait goes on with it,
// and so does the next Arrive or Barrier of its number.
type IncompleteError struct {
	Number     uint8
	Generation uint32
	Missing    []mcd.NodeID // whose messages are awaited now; they may wait for others in turn: see Group.Status
	Ticket     Ticket
	Err        error // the context's, or mcd.ErrClosed
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("barrier %d, generation %d: waiting for %s: %v",
		e.Number, e.Generation, names(e.Missing), e.Err)
}

// Is makes errors.Is(err, ErrIncomplete) hold.
func (e *IncompleteError) Is(target error) bool { return target == ErrIncomplete }

// Unwrap returns what ended the wait.
func (e *IncompleteError) Unwrap() error { return e.Err }

// namesShown is how many nodes a message names.
const namesShown = 8

// names formats nodes as "node 3" or "nodes 1, 2, 5 and 7 more".
func names(nodes []mcd.NodeID) string {
	shown := nodes[:min(len(nodes), namesShown)]
	var words []string
	for _, n := range shown {
		words = append(words, fmt.Sprint(n))
	}
	text := strings.Join(words, ", ")
	if more := len(nodes) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(nodes) == 1 {
		return "node " + text
	}
	return "nodes " + text
}
