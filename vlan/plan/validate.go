package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
)

// ErrInvalid is matched by the errors of plans that cannot be carried out.
var ErrInvalid = errors.New("bad plan")

// part is a place in a plan that can be wrong: a list, an entry of it, or a field of that.
type part struct {
	list  string // vids, pcp, nodes, pairs or topology
	entry int    // of vids or nodes; whole for the list itself
	pair  Pair   // of pairs
	field string // of nodes: name, mac, vid, priority
}

const whole = -1

// String names the part that a fault is of, for the beginning of its text; a list has none.
func (p part) String() string {
	switch {
	case p.list == "nodes" && p.entry != whole:
		return fmt.Sprintf("node %d: ", p.entry)
	case p.list == "pairs" && p.entry != whole:
		return fmt.Sprintf("pair %v: ", p.pair)
	}
	return ""
}

// fault is what is wrong with a part of a plan, and what was expected.
type fault struct {
	part part
	text string
}

// Validate reports what makes the plan impossible: its faults, up to MaxFaults. The error is ErrInvalid.
func (p *Plan) Validate() error { return joinFaults(p.faults()) }

// validatePairs is Validate of a plan that was valid before some pairs were given other VIDs.
func (p *Plan) validatePairs(pairs map[Pair]transport.VID) error {
	v := validation{vids: make(map[transport.VID]bool)}
	for _, vid := range p.VIDs {
		v.vids[vid] = true
	}
	v.checkPairs(p, pairs)
	return joinFaults(v.faults)
}

func joinFaults(faults []fault) error {
	var errs []error
	for i, f := range faults {
		if i == strictyaml.MaxFaults {
			errs = append(errs, fmt.Errorf("%w: and more (mend these first)", ErrInvalid))
			break
		}
		errs = append(errs, fmt.Errorf("%w: %s", ErrInvalid, f.text))
	}
	return errors.Join(errs...)
}

// faults returns the faults of the plan: if there are more than MaxFaults, one more than that.
func (p *Plan) faults() []fault {
	v := validation{vids: make(map[transport.VID]bool)}
	v.topology(p.Topology)
	v.checkVIDs(p.VIDs)
	if p.PCP > 7 {
		v.add(part{list: "pcp"}, "pcp %d: want 0 to 7", p.PCP)
	}
	v.checkNodes(p.Nodes)
	v.checkPairs(p, p.Pairs)
	return v.faults
}

type validation struct {
	faults []fault
	vids   map[transport.VID]bool // that may be used
}

func (v *validation) add(at part, format string, args ...any) {
	if len(v.faults) <= strictyaml.MaxFaults {
		v.faults = append(v.faults, fault{at, at.String() + fmt.Sprintf(format, args...)})
	}
}

func (v *validation) topology(text string) {
	if len(text) > MaxName || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		v.add(part{list: "topology"}, "topology: want at most %d bytes of text on one line", MaxName)
	}
}

func validVID(vid transport.VID) bool { return vid >= 1 && vid <= transport.MaxVID }

func (v *validation) checkVIDs(vids []transport.VID) {
	if len(vids) == 0 || len(vids) > MaxVIDs {
		v.add(part{list: "vids", entry: whole}, "%d vids: want 1 to %d", len(vids), MaxVIDs)
	}
	for i, vid := range vids {
		switch at := (part{list: "vids", entry: i}); {
		case !validVID(vid):
			v.add(at, "vid %d: want 1 to %d", vid, transport.MaxVID)
		case v.vids[vid]:
			v.add(at, "vid %d: given twice", vid)
		}
		v.vids[vid] = true
	}
}

// checkUsed adds a fault if vid is not among those that may be used.
func (v *validation) checkUsed(at part, vid transport.VID) {
	switch {
	case !validVID(vid):
		v.add(at, "vid %d: want 1 to %d", vid, transport.MaxVID)
	case len(v.vids) > 0 && !v.vids[vid]:
		v.add(at, "vid %d: not among the plan's vids (want one of them)", vid)
	}
}

func (v *validation) checkNodes(nodes []Node) {
	if len(nodes) == 0 || len(nodes) > MaxNodes {
		v.add(part{list: "nodes", entry: whole}, "%d nodes: want 1 to %d", len(nodes), MaxNodes)
		return
	}
	names, macs := make(map[string]int, len(nodes)), make(map[transport.MAC]int, len(nodes))
	for i, s := range nodes {
		at := func(field string) part { return part{list: "nodes", entry: i, field: field} }
		switch first, taken := names[s.Name]; {
		case s.Name == "":
		case !validName(s.Name):
			v.add(at("name"), "name %.80q: want at most %d letters, digits, '.', '-' and '_', not digits alone", s.Name, MaxName)
		case taken:
			v.add(at("name"), "name %q: is node %d's, too (want another)", s.Name, first)
		default:
			names[s.Name] = i
		}
		switch first, taken := macs[s.MAC]; {
		case s.MAC.IsZero() || s.MAC.IsMulticast():
			v.add(at("mac"), "mac %v: no station's address (want a unicast MAC)", s.MAC)
		case taken:
			v.add(at("mac"), "mac %v: is node %d's, too (want one for each node)", s.MAC, first)
		default:
			macs[s.MAC] = i
		}
		v.checkUsed(at("vid"), s.VID)
		if s.Priority < -MaxPriority || s.Priority > MaxPriority {
			v.add(at("priority"), "priority %d: want %d to %d", s.Priority, -MaxPriority, MaxPriority)
		}
	}
}

// validName reports whether a name, which is not empty, can be told from a number, and written on one line.
func validName(s string) bool {
	if len(s) > MaxName {
		return false
	}
	digits := true
	for _, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '-' || c == '_'
		digit := c >= '0' && c <= '9'
		if !letter && !digit {
			return false
		}
		digits = digits && digit
	}
	return !digits
}

// checkPairs checks some of a plan's exceptions.
func (v *validation) checkPairs(p *Plan, pairs map[Pair]transport.VID) {
	if len(p.Pairs) > MaxPairs {
		v.add(part{list: "pairs", entry: whole}, "%d pairs: want at most %d (change the nodes' defaults instead)", len(p.Pairs), MaxPairs)
		return
	}
	if len(p.Nodes) == 0 {
		return // the fault is elsewhere
	}
	for _, pair := range sortedPairs(pairs) {
		at := part{list: "pairs", pair: pair}
		if p.hasPair(pair) {
			v.checkUsed(at, pairs[pair])
		} else {
			v.add(at, "want two nodes of 0 to %d, the lower one first", len(p.Nodes)-1)
		}
	}
}

// sortedPairs returns the keys of a map in their order.
func sortedPairs(pairs map[Pair]transport.VID) []Pair {
	keys := make([]Pair, 0, len(pairs))
	for pair := range pairs {
		keys = append(keys, pair)
	}
	slices.SortFunc(keys, Pair.Compare)
	return keys
}
