package barrier

import (
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

// An error says who is down and why, each reason once, and what follows from it: that this node is
// excluded, or that there is no quorum. It is ErrExcluded and ErrNoQuorum where they apply.
func TestNodeDownError(t *testing.T) {
	for _, c := range []struct {
		err                *NodeDownError
		excluded, noQuorum bool
		says               string
	}{
		{&NodeDownError{Number: 3, Generation: 7, Nodes: []mcd.NodeID{4}, Reasons: []Reason{Silent}, Timeout: time.Second,
			Survivors: 2, Quorum: 2}, false, false, "barrier 3, generation 7: node 4: silent for more than 1s"},
		{&NodeDownError{Nodes: []mcd.NodeID{4}, Reasons: []Reason{Left}, Survivors: 1, Quorum: 2},
			false, true, "barrier 0, generation 0: node 4: said goodbye before they had completed it; " +
				"1 members are left, fewer than the quorum of 2"},
		{&NodeDownError{Nodes: []mcd.NodeID{1, 2, 5}, Reasons: []Reason{Restarted, Restarted, Unreachable},
			Timeout: time.Second}, false, false, "barrier 0, generation 0: " +
			"nodes 1, 2: begun anew, or not at the same generation (close the group, and make it anew); " +
			"node 5: not to be reached for more than 1s, though alive on other paths (rawlane ping tries each)"},
		{&NodeDownError{Nodes: []mcd.NodeID{0}, Reasons: []Reason{Left}, Excluded: true, Survivors: 1, Quorum: 2},
			true, true, "barrier 0, generation 0: node 0: said goodbye before they had completed it; this node is among them, " +
				"and the others go on without it (close the group, and make it anew as they do)"},
	} {
		if c.err.Error() != c.says {
			t.Errorf("it says\n%s, want\n%s", c.err, c.says)
		}
		for target, want := range map[error]bool{
			ErrNodeDown: true, ErrExcluded: c.excluded, ErrNoQuorum: c.noQuorum, ErrClosed: false,
		} {
			if errors.Is(c.err, target) != want {
				t.Errorf("%q is %q: want %v", c.err, target, want)
			}
		}
	}
}

// Reasons have names.
func TestReason_String(t *testing.T) {
	for r, want := range map[Reason]string{
		Silent: "silent", Unreachable: "unreachable", Left: "left", Restarted: "restarted", 200: "reason 200",
	} {
		if r.String() != want {
			t.Errorf("reason %d is %q, want %q", r, r, want)
		}
	}
}
