package rib

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Sentinels: what was wrong with a change. The others are plan.ErrUnknownNode and plan.ErrInvalid.
var (
	// ErrNoPlan: there is no plan yet, so that no node and no VID is known.
	ErrNoPlan = errors.New("no plan")
	// ErrBadVID: a VID that cannot be used.
	ErrBadVID = errors.New("bad VID")
	// ErrOneSided: two VIDs for the two directions of a pair.
	ErrOneSided = errors.New("one-sided change")
)

// Change asks for a VID for both directions between two nodes. The order of the two does not
// matter.
type Change struct {
	A   transport.MAC `json:"a"`
	B   transport.MAC `json:"b"`
	VID transport.VID `json:"vid"`
}

// Peer returns the other node of the pair if one of the two is self.
func (c Change) Peer(self transport.MAC) (peer transport.MAC, own bool) {
	switch self {
	case c.A:
		return c.B, true
	case c.B:
		return c.A, true
	}
	return peer, false
}

// String formats c as "02:00:00:00:00:01-02:00:00:00:00:02 by VID 3".
func (c Change) String() string { return fmt.Sprintf("%v-%v by VID %d", c.A, c.B, c.VID) }

// check returns what is wrong with changes under the plan. With orDefault they may be of the
// default route.
func (r *RIB) check(changes []Change, orDefault bool) error {
	if r.plan == nil {
		return fmt.Errorf("%w (set one first: PUT /v1/table, or rawlane route load)", ErrNoPlan)
	}
	asked := make(map[plan.Pair]transport.VID, len(changes))
	for i, c := range changes {
		if peer, own := c.Peer(r.self); orDefault && own && peer == transport.Broadcast {
			if err := r.checkVID(c.VID); err != nil {
				return fmt.Errorf("pairs[%d]: %v: %w", i, c, err)
			}
			continue
		}
		pair, err := r.checkOne(c)
		if err == nil {
			if vid, again := asked[pair]; again && vid != c.VID {
				err = fmt.Errorf("%w: VID %d for one direction and VID %d for the other "+
					"(want one for both: switches learn addresses per VID)", ErrOneSided, vid, c.VID)
			}
		}
		if err != nil {
			return fmt.Errorf("pairs[%d]: %v: %w", i, c, err)
		}
		asked[pair] = c.VID
	}
	return nil
}

func (r *RIB) checkOne(c Change) (plan.Pair, error) {
	var ends [2]int
	for i, m := range []transport.MAC{c.A, c.B} {
		n, known := r.index[m]
		if !known {
			return plan.Pair{}, fmt.Errorf("%w %v: not in the plan (want the address of one of its %d nodes)",
				plan.ErrUnknownNode, m, len(r.plan.Nodes))
		}
		ends[i] = n
	}
	if ends[0] == ends[1] {
		return plan.Pair{}, fmt.Errorf("%w: a pair of one node (want two different nodes)", plan.ErrUnknownNode)
	}
	return plan.PairOf(ends[0], ends[1]), r.checkVID(c.VID)
}

func (r *RIB) checkVID(vid transport.VID) error {
	switch {
	case vid == 0 || vid > transport.MaxVID:
		return fmt.Errorf("%w %d (want 1 to %d, and one of the plan's: %s)",
			ErrBadVID, vid, transport.MaxVID, listVIDs(r.plan.VIDs))
	case !slices.Contains(r.plan.VIDs, vid):
		return fmt.Errorf("%w %d: not in the plan (want one of its: %s)", ErrBadVID, vid, listVIDs(r.plan.VIDs))
	}
	return nil
}

// shownVIDs bounds the VIDs that an error lists.
const shownVIDs = 16

func listVIDs(vids []transport.VID) string {
	var texts []string
	for _, vid := range vids[:min(len(vids), shownVIDs)] {
		texts = append(texts, fmt.Sprint(vid))
	}
	if more := len(vids) - shownVIDs; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}
