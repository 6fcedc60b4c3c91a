package topology

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/transport"
)

// ErrNoPath is what the errors of Path are: the network has no such VLAN, or the VLAN does not connect the two nodes.
var ErrNoPath = errors.New("no path")

// Index numbers hops: a link's two directions are 2*Link and 2*Link+1. What is kept per direction can be a slice.
func (h Hop) Index() int {
	if h.Back {
		return 2*h.Link + 1
	}
	return 2 * h.Link
}

// HopAt returns the hop with that Index.
func HopAt(index int) Hop { return Hop{Link: index / 2, Back: index%2 == 1} }

// Reverse returns the way back.
func (h Hop) Reverse() Hop { return Hop{Link: h.Link, Back: !h.Back} }

// end returns the switch that a hop leads to.
func (t *Topology) End(h Hop) int {
	if h.Back {
		return t.Links[h.Link].A
	}
	return t.Links[h.Link].B
}

// Path returns the hops between switches that frames from host a to host b take with a VID: none if both are at
// one switch. Errors: ErrNoPath; ErrInvalid. For many paths, make Paths once.
func (t *Topology) Path(a, b int, vid transport.VID) ([]Hop, error) {
	one := *t
	one.VLANs = nil
	for _, v := range t.VLANs {
		if v.VID == vid {
			one.VLANs = []VLAN{v}
		}
	}
	p, err := NewPaths(&one)
	if err != nil {
		return nil, err
	}
	p.t = t // for messages
	return p.Append(nil, a, b, vid)
}

// Paths finds paths in a topology fast: in time for their length, and without allocation. It takes memory for the switches
// times the VLANs (16 bytes each). It may be used by several goroutines at once.
type Paths struct {
	t     *Topology
	trees []*tree                     // as t.VLANs
	of    [transport.MaxVID + 1]int16 // the tree of each VID, counted from 1; 0 is none
}

// NewPaths prepares paths in t, which must not change from then on. Its VLANs must not have loops, but need not connect
// all: so paths can be asked for in a network of which some cables are gone. Errors: ErrInvalid.
func NewPaths(t *Topology) (*Paths, error) {
	if err := t.checkParts(); err != nil {
		return nil, err
	}
	p := &Paths{t: t, trees: make([]*tree, len(t.VLANs))}
	for i, v := range t.VLANs {
		tr, err := t.Tree(i)
		if err != nil {
			return nil, err
		}
		p.trees[i] = tr
		p.of[v.VID] = int16(i + 1)
	}
	return p, nil
}

// Topology returns what the paths are in.
func (p *Paths) Topology() *Topology { return p.t }

// Has reports whether the topology has a VLAN with a VID.
func (p *Paths) Has(vid transport.VID) bool { return vid <= transport.MaxVID && p.of[vid] != 0 }

// Append appends to dst the hops that Topology.Path returns. With an error, dst comes back as it was.
func (p *Paths) Append(dst []Hop, a, b int, vid transport.VID) ([]Hop, error) {
	if a < 0 || b < 0 || a >= len(p.t.Hosts) || b >= len(p.t.Hosts) {
		return dst, fmt.Errorf("%w: nodes %d and %d (want 0 to %d)", ErrNoPath, a, b, len(p.t.Hosts)-1)
	}
	if !p.Has(vid) {
		return dst, p.unknown(a, b, vid)
	}
	tr := p.trees[p.of[vid]-1]
	from, to := int32(p.t.Hosts[a].Switch), int32(p.t.Hosts[b].Switch)
	if tr.root[from] != tr.root[to] {
		return dst, fmt.Errorf("%w: pair %d-%d: VLAN %d does not connect %s and %s", ErrNoPath, a, b, vid, p.t.Switches[from], p.t.Switches[to])
	}
	return tr.appendPath(dst, from, to), nil
}

// appendPath appends the hops between two switches of one tree: up to where the ways to the root meet, and down.
func (tr *tree) appendPath(dst []Hop, from, to int32) []Hop {
	down := to
	for from != to {
		if tr.depth[from] >= tr.depth[to] {
			dst = append(dst, HopAt(int(tr.up[from])))
			from = tr.Parent[from]
		} else {
			to = tr.Parent[to]
		}
	}
	top, begin := from, len(dst)
	for ; down != top; down = tr.Parent[down] {
		dst = append(dst, HopAt(int(tr.up[down])).Reverse())
	}
	slices.Reverse(dst[begin:])
	return dst
}

func (p *Paths) unknown(a, b int, vid transport.VID) error {
	vids := make([]transport.VID, len(p.t.VLANs))
	for i, v := range p.t.VLANs {
		vids[i] = v.VID
	}
	return fmt.Errorf("%w: pair %d-%d: VID %d is not in the topology (it has %s)", ErrNoPath, a, b, vid, FormatVIDs(vids))
}
