package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/cluster/internal/discovery"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// Errors to test for with errors.Is.
var (
	// ErrIncomplete: the context ended before all nodes were heard. An *IncompleteError names the
	// missing ones.
	ErrIncomplete = errors.New("nodes are missing")
	// ErrMismatch: a node expects another cluster. A *MismatchError says how it differs.
	ErrMismatch = errors.New("nodes expect different clusters")
	// ErrVersion: a node uses another version of the wire format. An *IncompleteError is one if
	// such a node was heard.
	ErrVersion = errors.New("another wire version")
	// ErrRestart: nodes have no round of an Exchanger in common, as one of them has begun anew. A
	// *RestartError names them.
	ErrRestart = errors.New("a node has begun anew")
)

// MismatchError is an ErrMismatch: how the cluster that another node expects differs.
type MismatchError struct {
	Self, Other mcd.Node
	Msg         string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("cluster: node %d (MAC %v) and this one, node %d: %s",
		e.Other.ID, e.Other.MACs, e.Self.ID, e.Msg)
}

// Is makes errors.Is(err, ErrMismatch) hold.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// IncompleteError says which nodes were heard and which were not. It is ErrIncomplete, it is
// ErrVersion if Foreign is set, mcd.ErrKeyMismatch if Keys is, ErrMismatch if Mismatch is, and it
// wraps the context's error.
type IncompleteError struct {
	Cluster        mcd.ClusterID
	Links          []transport.MAC // on which this node listened
	Heard          []Peer
	Missing        []mcd.NodeID
	Foreign        transport.MAC // a node with another wire version, if one was heard
	ForeignVersion int
	Keys           error          // mcd.ErrKeyMismatch, if a node with other keys was heard, or with none
	Mismatch       *MismatchError // a missing node that expects another cluster, if one was heard
	Malformed      uint64         // messages to the discovery port that were no announcements
	Stood          time.Duration  // for which this machine stood still meanwhile, if it did for seconds
	LinkErrs       []error        // of links by which nothing can be received: mcd.Endpoint.LinkErr
	Err            error
}

// shown bounds how many nodes the text lists.
const shown = 16

func (e *IncompleteError) Error() string {
	var b strings.Builder
	missing := list(e.Missing, func(n mcd.NodeID) string { return fmt.Sprint(n) })
	heard := list(e.Heard, func(p Peer) string {
		return strings.TrimSpace(fmt.Sprintf("%d %v on link %d %s", p.ID, p.MACs, p.NIC, p.Name))
	})
	fmt.Fprintf(&b, "cluster %d: %v: nodes missing: %s; heard: %s", e.Cluster, e.Err, missing, heard)
	fmt.Fprintf(&b, "; listened on %v%s", e.Links, stood(e.Stood))
	switch {
	case e.Keys != nil:
		fmt.Fprintf(&b, "; %v", e.Keys)
	case e.ForeignVersion != 0:
		fmt.Fprintf(&b, "; %v uses wire version %d, this program version %d: bring both up to date",
			e.Foreign, e.ForeignVersion, mcd.WireVersion)
	case e.Mismatch != nil:
		fmt.Fprintf(&b, "; %v", e.Mismatch)
	case len(e.Missing) == 0:
		b.WriteString(" (all are there, but the time to hear of conflicts was not over: allow a few milliseconds more)")
	case len(e.LinkErrs) > 0:
		for _, err := range e.LinkErrs {
			fmt.Fprintf(&b, "; %v", err)
		}
	default:
		b.WriteString(" (are the missing ones started, with the same cluster id, and do frames reach them:" +
			" on the same switch and VLAN, or over UDP at the right addresses?" +
			" Those that know this node at another address do not answer: who begins anew keeps its address)")
	}
	if e.Malformed > 0 {
		fmt.Fprintf(&b, "; messages to port %d that were no announcements: %d (bring all nodes to one version)",
			DiscoveryPort, e.Malformed)
	}
	return b.String()
}

// stood tells of a standstill, if there was one.
func stood(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("; this machine stood still for %v of the time", d.Round(time.Second/10))
}

func list[T any](all []T, text func(T) string) string {
	var parts []string
	for _, v := range all[:min(len(all), shown)] {
		parts = append(parts, text(v))
	}
	if len(all) > shown {
		parts = append(parts, fmt.Sprintf("and %d more", len(all)-shown))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// Is makes errors.Is hold for ErrIncomplete, and for ErrVersion, mcd.ErrKeyMismatch, ErrMismatch
// and LinkErrs where they apply.
func (e *IncompleteError) Is(target error) bool {
	return errors.Is(errors.Join(e.LinkErrs...), target) ||
		target == ErrIncomplete || target == ErrVersion && e.ForeignVersion != 0 ||
		target == mcd.ErrKeyMismatch && e.Keys != nil || target == ErrMismatch && e.Mismatch != nil
}

// Unwrap returns the context's error.
func (e *IncompleteError) Unwrap() error { return e.Err }

// MissingError names the nodes that an Exchanger waited for in vain. It is ErrIncomplete, and
// wraps the context's error.
type MissingError struct {
	Operation string // exchange, gather or ask
	Nodes     []mcd.NodeID
	Silent    time.Duration // for which they were, if ExchangerConfig.PeerTimeout ended the wait
	Stood     time.Duration // for which this machine stood still meanwhile, if it did for seconds
	Err       error         // the context's, if that did
}

func (e *MissingError) Error() string {
	nodes := list(e.Nodes, func(n mcd.NodeID) string { return fmt.Sprint(n) })
	if e.Silent > 0 {
		return fmt.Sprintf("cluster: %s: no answer for %v from nodes: %s (have they ended, or is a cable out?)",
			e.Operation, e.Silent, nodes)
	}
	return fmt.Sprintf("cluster: %s: %v: nodes missing: %s%s (have they all made the same call?)",
		e.Operation, e.Err, nodes, stood(e.Stood))
}

// Is makes errors.Is hold for ErrIncomplete.
func (e *MissingError) Is(target error) bool { return target == ErrIncomplete }

// Unwrap returns the context's error, or nil.
func (e *MissingError) Unwrap() error { return e.Err }

// RestartError names the nodes that have no round of an Exchanger in common with this one, as
// either has begun anew since the other one completed a round. It is ErrRestart.
type RestartError struct {
	Operation string       // exchange or gather
	Anew      []mcd.NodeID // have begun anew
	Former    []mcd.NodeID // go on with a former life of this node, or of its Exchanger
}

func (e *RestartError) Error() string {
	var parts []string
	number := func(n mcd.NodeID) string { return fmt.Sprint(n) }
	if len(e.Anew) > 0 {
		parts = append(parts, "nodes that have begun anew since a round was completed here: "+list(e.Anew, number))
	}
	if len(e.Former) > 0 {
		parts = append(parts,
			"nodes that have completed a round with a former life of this node: "+list(e.Former, number))
	}
	return fmt.Sprintf("cluster: %s: %s (to go on, all nodes close their Exchangers and open new ones)",
		e.Operation, strings.Join(parts, "; "))
}

// Is makes errors.Is hold for ErrRestart.
func (e *RestartError) Is(target error) bool { return target == ErrRestart }

func (m *Membership) incomplete(cause error, stood time.Duration) error {
	e := &IncompleteError{Cluster: m.ep.Cluster(), Err: cause, Heard: m.Peers(), Stood: stood}
	for nic := range m.ep.NICs() {
		e.Links = append(e.Links, m.ep.MAC(nic))
		if err := m.ep.LinkErr(nic); err != nil {
			e.LinkErrs = append(e.LinkErrs, err)
		}
	}
	m.mu.Lock()
	for _, k := range m.core.Missing() {
		e.Missing = append(e.Missing, mcd.NodeID(k))
	}
	f := m.core.Fault()
	e.Malformed = m.malformed
	m.mu.Unlock()
	if b := f.B.Node; f.Kind != discovery.NoFault && !slices.ContainsFunc(e.Heard, func(p Peer) bool {
		return uint16(p.ID) == b
	}) {
		_ = errors.As(m.fault(), &e.Mismatch) // it has said so less often than is sure
	}
	if from, version, ok := m.ep.Foreign(); ok {
		e.Foreign, e.ForeignVersion = from, version
	}
	if e.Keys = m.ep.KeyMismatch(); e.Keys != nil {
		e.Foreign, e.ForeignVersion = transport.MAC{}, 0
	}
	return e
}

// fault returns the core's fault as an error.
func (m *Membership) fault() error {
	m.mu.Lock()
	f := m.core.Fault()
	m.mu.Unlock()
	a, b := peer(f.A).Node, peer(f.B).Node
	switch f.Kind {
	case discovery.SameNumber, discovery.SameAddress:
		err := fmt.Errorf("cluster %d: %w", m.ep.Cluster(), &mcd.ConflictError{A: a, B: b})
		if a.ID == b.ID && slices.Equal(a.MACs, b.MACs) {
			err = fmt.Errorf("%w, on two hosts: is one a clone of the other? "+
				"(give each a MAC and a number of its own)", err)
		}
		return err
	case discovery.OtherSize:
		return &MismatchError{Self: a, Other: b,
			Msg: fmt.Sprintf("it expects %d nodes (give all the same number)", f.Size)}
	case discovery.OutOfRange:
		return &MismatchError{Self: a, Other: b, Msg: "its number is not below the number of nodes"}
	}
	return &MismatchError{Self: a, Other: b, Msg: otherNetwork(len(a.MACs), len(b.MACs))}
}

// otherNetwork says what may be wrong where the NICs of two nodes, so many each, do not meet in
// order.
func otherNetwork(own, others int) string {
	if own != others {
		return fmt.Sprintf("it has %d NICs, this one %d, or they are cabled in another order", others, own)
	}
	return "its NICs and this one's are cabled in another order, or links of two networks share a segment"
}
