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
	// ErrMismatch: members run different algorithms. A *MismatchError names them.
	ErrMismatch = errors.New("members disagree")
	// ErrIncomplete: the wait ended before the barrier did. An *IncompleteError names the missing
	// nodes.
	ErrIncomplete = errors.New("barrier incomplete")
	// ErrPending: the barrier was entered, and its ticket is out. Wait with the ticket.
	ErrPending = errors.New("barrier was entered and not left (wait with its ticket)")
	// ErrNotMember: this node is not among the members.
	ErrNotMember = errors.New("this node is not a member")
	// ErrClosed: the group or the service was closed. Is mcd.ErrClosed and net.ErrClosed.
	ErrClosed = fmt.Errorf("group closed: %w", mcd.ErrClosed)
)

// Reason is why a member takes part no more.
type Reason uint8

// The reasons.
const (
	Silent    = Reason(engine.Silent)    // it has not answered for PeerTimeout
	Left      = Reason(engine.Left)      // it said goodbye before it entered
	Restarted = Reason(engine.Restarted) // it has begun anew, or is not at the same generation
)

// String names r.
func (r Reason) String() string { return engine.Reason(r).String() }

// NodeDownError names members that take part no more. It is ErrNodeDown. Group.Without makes a
// group of the others.
type NodeDownError struct {
	Number     uint8  // of the barrier
	Generation uint32 // counted from 1
	Nodes      []mcd.NodeID
	More       int // how many other nodes there are, which did not fit a frame
	Reason     Reason
	Timeout    time.Duration // if Silent: GroupConfig.PeerTimeout
}

func (e *NodeDownError) Error() string {
	why := "said goodbye before they entered"
	switch e.Reason {
	case Silent:
		why = fmt.Sprintf("silent for more than %v", e.Timeout)
	case Restarted:
		why = "begun anew, or not at the same generation (close the group, and make it anew)"
	}
	return fmt.Sprintf("barrier %d, generation %d: %s: %s", e.Number, e.Generation, names(e.Nodes, e.More), why)
}

// Is makes errors.Is(err, ErrNodeDown) hold.
func (e *NodeDownError) Is(target error) bool { return target == ErrNodeDown }

// MismatchError names members of which at least one runs another algorithm. It is ErrMismatch.
type MismatchError struct {
	Number     uint8
	Generation uint32
	Nodes      []mcd.NodeID
	Algorithm  schedule.Algorithm // this node's
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("barrier %d, generation %d: %s: another algorithm than %v at one of them (give all the same)",
		e.Number, e.Generation, names(e.Nodes, 0), e.Algorithm)
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
		e.Number, e.Generation, names(e.Missing, 0), e.Err)
}

// Is makes errors.Is(err, ErrIncomplete) hold.
func (e *IncompleteError) Is(target error) bool { return target == ErrIncomplete }

// Unwrap returns what ended the wait.
func (e *IncompleteError) Unwrap() error { return e.Err }

// namesShown is how many nodes a message names.
const namesShown = 8

// names formats nodes as "node 3" or "nodes 1, 2, 5 and 7 more".
func names(nodes []mcd.NodeID, more int) string {
	if len(nodes) > namesShown {
		more += len(nodes) - namesShown
		nodes = nodes[:namesShown]
	}
	var words []string
	for _, n := range nodes {
		words = append(words, fmt.Sprint(n))
	}
	text := strings.Join(words, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(nodes)+more == 1 {
		return "node " + text
	}
	return "nodes " + text
}
