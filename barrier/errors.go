package barrier

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

// Sentinels: test with errors.Is.
var (
	// ErrNodeDown: a member does not take part any more. A *NodeDownError names it.
	ErrNodeDown = errors.New("node down")
	// ErrMismatch: the members do not do the same. A *MismatchError says who and what.
	ErrMismatch = errors.New("members disagree")
	// ErrIncomplete: the wait was ended before the barrier was. An *IncompleteError says who is missing.
	ErrIncomplete = errors.New("barrier incomplete")
	// ErrPending: the barrier was entered before, and not left. Wait for it with its Ticket, or leave the group.
	ErrPending = errors.New("barrier was entered and not left (wait with its ticket)")
	// ErrNotMember: this node is not among the members.
	ErrNotMember = errors.New("this node is not a member")
	// ErrClosed: the group was closed. Is mcd.ErrClosed and net.ErrClosed.
	ErrClosed = fmt.Errorf("group closed: %w", mcd.ErrClosed)
)

// NodeDownError names members that do not take part any more. It is ErrNodeDown. Group.Without makes a group of
// the others.
type NodeDownError struct {
	Barrier    uint8  // its number
	Generation uint32 // counted from 1
	Nodes      []mcd.NodeID
	More       int           // how many others there are, which did not fit a frame
	Reason     string        // "silent", "left" or "restarted"
	Limit      time.Duration // Config.Limit
}

func (e *NodeDownError) Error() string {
	why := "said goodbye before they entered"
	switch e.Reason {
	case reasonSilent:
		why = fmt.Sprintf("silent for more than %v", e.Limit)
	case reasonRestarted:
		why = "begun anew, or not at the same generation"
	}
	return fmt.Sprintf("barrier %d, generation %d: %s: %s", e.Barrier, e.Generation, names(e.Nodes, e.More), why)
}

// Is makes errors.Is(err, ErrNodeDown) hold.
func (e *NodeDownError) Is(target error) bool { return target == ErrNodeDown }

const (
	reasonSilent    = "silent"
	reasonRestarted = "restarted"
)

// MismatchError names members that contradict each other. It is ErrMismatch.
type MismatchError struct {
	Barrier    uint8
	Generation uint32
	Nodes      []mcd.NodeID
	What       string // what differs
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("barrier %d, generation %d: %s: %s", e.Barrier, e.Generation, names(e.Nodes, 0), e.What)
}

// Is makes errors.Is(err, ErrMismatch) hold.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// IncompleteError says who is missing in a barrier that was not waited for any longer. It is ErrIncomplete, and what
// ended the wait.
type IncompleteError struct {
	Barrier    uint8
	Generation uint32
	Missing    []mcd.NodeID // those whose messages are awaited now; they may wait for others in turn: see Group.RollCall
	Err        error        // the context's
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("barrier %d, generation %d: waiting for %s: %v", e.Barrier, e.Generation, names(e.Missing, 0), e.Err)
}

// Is makes errors.Is(err, ErrIncomplete) hold.
func (e *IncompleteError) Is(target error) bool { return target == ErrIncomplete }

// Unwrap returns the context's error.
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
