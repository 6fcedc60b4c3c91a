package topology

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/transport"
)

// ErrNoPath matches the errors of Path: the network has no such VLAN, or it does not connect the
// two hosts.
var ErrNoPath = errors.New("no path")

// Path returns the hops between switches for frames from host a to host b with a VID: none if both
// are at one switch. Errors: ErrNoPath, ErrInvalid. For many paths, make Paths once.
func (t *Topology) Path(a, b int, vid transport.VID) ([]Hop, error) {
	one := *t // with that VLAN alone, which saves the trees of the others
	one.VLANs = slices.DeleteFunc(slices.Clone(t.VLANs), func(v VLAN) bool { return v.VID != vid })
	p, err := NewPaths(&one)
	if err != nil {
		return nil, err
	}
	p.t = t // for messages
	return p.Append(nil, a, b, vid)
}

// Paths finds paths in a topology fast: in time for their length, and without allocation. It takes
// 16 bytes for each switch and VLAN. Several goroutines may use it at once.
type Paths struct {
	t     *Topology
	trees []*tree                     // as t.VLANs
	of    [transport.MaxVID + 1]int16 // the tree of each VID, counted from 1; 0 is none
}

// NewPaths prepares paths in t, which must not change from then on. The VLANs must not have loops,
// but need not connect all switches: the network may have lost cables. The error is ErrInvalid.
func NewPaths(t *Topology) (*Paths, error) {
	if err := t.checkParts(); err != nil {
		return nil, err
	}
	p := &Paths{t: t, trees: make([]*tree, len(t.VLANs))}
	for i, v := range t.VLANs {
		tr, err := t.tree(i)
		if err != nil {
			return nil, err
		}
		p.trees[i] = tr
		p.of[v.VID] = int16(i + 1)
	}
	return p, nil
}

// Topology returns the network of the paths.
func (p *Paths) Topology() *Topology { return p.t }

// Has reports whether the topology has a VLAN with a VID.
func (p *Paths) Has(vid transport.VID) bool { return vid <= transport.MaxVID && p.of[vid] != 0 }

// Connects reports whether there is a path between two hosts with a VID that the topology has.
func (p *Paths) Connects(a, b int, vid transport.VID) bool {
	root := p.trees[p.of[vid]-1].root
	return root[p.t.Hosts[a].Switch] == root[p.t.Hosts[b].Switch]
}

// Append appends to dst the hops that Topology.Path returns. With an error, dst comes back as it
// was.
func (p *Paths) Append(dst []Hop, a, b int, vid transport.VID) ([]Hop, error) {
	if min(a, b) < 0 || max(a, b) >= len(p.t.Hosts) {
		return dst, fmt.Errorf("%w: nodes %d and %d (want 0 to %d)", ErrNoPath, a, b, len(p.t.Hosts)-1)
	}
	if !p.Has(vid) {
		return dst, fmt.Errorf("%w: pair %d-%d: VID %d is not in the topology (it has %s)",
			ErrNoPath, a, b, vid, FormatVIDs(p.t.VIDs()))
	}
	from, to := p.t.Hosts[a].Switch, p.t.Hosts[b].Switch
	if !p.Connects(a, b, vid) {
		return dst, fmt.Errorf("%w: pair %d-%d: VLAN %d does not connect %s and %s",
			ErrNoPath, a, b, vid, p.t.Switches[from], p.t.Switches[to])
	}
	return p.trees[p.of[vid]-1].appendPath(dst, int32(from), int32(to)), nil
}
