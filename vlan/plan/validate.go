package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
)

const (
	// MaxNodes bounds a Plan. A pass over all its pairs, as Diff makes, is then 8 million steps.
	MaxNodes = 4096
	// MaxVIDs bounds the VIDs of a Plan: few switches carry more VLANs at once.
	MaxVIDs = 1024
	// MaxPairs bounds the exceptions of a Plan: all pairs of 1,024 nodes.
	MaxPairs = 1 << 19

	maxPriority = 1_000_000 // above and below 0
	maxName     = 255       // bytes, of a node or a topology
)

// ErrInvalid matches the errors of plans that cannot be carried out.
var ErrInvalid = errors.New("bad plan")

// part is a place in a plan that can be wrong: a list, an entry of it, or a field of that.
type part struct {
	list  string // vids, nodes, pairs, or topology and pcp, which are no lists
	entry int    // of vids or nodes; whole for the list itself
	pair  Pair   // of pairs
	field string // of nodes: name, mac, vid, priority
}

const whole = -1

// prefix names the part at the beginning of a fault; a list has no name.
func (p part) prefix() string {
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

// Validate reports what makes the plan impossible: a bounded number of faults. The error is
// ErrInvalid.
func (p *Plan) Validate() error { return joinFaults(p.faults()) }

// faults returns the faults of the plan: if there are more than strictyaml.MaxFaults, one more than
// that.
func (p *Plan) faults() []fault {
	v := validation{plan: p}
	v.checkTopology()
	v.checkVIDs()
	if p.PCP > 7 {
		v.add(part{list: "pcp"}, "pcp %d: want 0 to 7", p.PCP)
	}
	v.checkNodes()
	v.checkPairs(p.Pairs)
	return v.faults
}

// validatePairs is Validate of a valid plan in which some pairs get other VIDs.
func (p *Plan) validatePairs(pairs map[Pair]transport.VID) error {
	v := validation{plan: p}
	v.checkPairs(pairs)
	return joinFaults(v.faults)
}

func joinFaults(faults []fault) error {
	var errs []error
	for i, f := range faults {
		if i == strictyaml.MaxFaults {
			errs = append(errs, errMore)
			break
		}
		errs = append(errs, fmt.Errorf("%w: %s", ErrInvalid, f.text))
	}
	return errors.Join(errs...)
}

type validation struct {
	plan   *Plan
	faults []fault
}

func (v *validation) add(at part, format string, args ...any) {
	if len(v.faults) <= strictyaml.MaxFaults {
		v.faults = append(v.faults, fault{at, at.prefix() + fmt.Sprintf(format, args...)})
	}
}

func (v *validation) checkTopology() {
	text := v.plan.Topology
	isBad := func(r rune) bool {
		isBreak := r == '\u2028' || r == '\u2029' // of a line, for readers of YAML, too
		return unicode.IsControl(r) || isBreak || r == '\ufffe' || r == '\uffff'
	}
	if len(text) > maxName || !utf8.ValidString(text) || strings.ContainsFunc(text, isBad) {
		v.add(part{list: "topology"}, "topology: want at most %d bytes of text on one line", maxName)
	}
}

func (v *validation) checkVIDs() {
	vids := v.plan.VIDs
	if len(vids) == 0 || len(vids) > MaxVIDs {
		v.add(part{list: "vids", entry: whole}, "%d vids: want 1 to %d", len(vids), MaxVIDs)
	}
	seen := make(map[transport.VID]bool)
	for i, vid := range vids {
		at := part{list: "vids", entry: i}
		if v.checkRange(at, vid) && seen[vid] {
			v.add(at, "vid %d: given twice", vid)
		}
		seen[vid] = true
	}
}

func (v *validation) checkRange(at part, vid transport.VID) bool {
	ok := vid >= 1 && vid <= transport.MaxVID
	if !ok {
		v.add(at, "vid %d: want 1 to %d", vid, transport.MaxVID)
	}
	return ok
}

// checkUsed checks the VID of a node or pair.
func (v *validation) checkUsed(at part, vid transport.VID, usable map[transport.VID]bool) {
	if v.checkRange(at, vid) && len(usable) > 0 && !usable[vid] {
		v.add(at, "vid %d: not among the plan's vids (want one of them)", vid)
	}
}

// usable returns the set of the plan's VIDs.
func (v *validation) usable() map[transport.VID]bool {
	usable := make(map[transport.VID]bool)
	for _, vid := range v.plan.VIDs {
		usable[vid] = true
	}
	return usable
}

func (v *validation) checkNodes() {
	nodes := v.plan.Nodes
	if len(nodes) == 0 || len(nodes) > MaxNodes {
		v.add(part{list: "nodes", entry: whole}, "%d nodes: want 1 to %d", len(nodes), MaxNodes)
		return
	}
	names, macs, usable := make(map[string]int), make(map[transport.MAC]int), v.usable()
	for i, n := range nodes {
		at := func(field string) part { return part{list: "nodes", entry: i, field: field} }
		switch first, taken := names[n.Name]; {
		case n.Name == "":
		case !ValidName(n.Name):
			v.add(at("name"), "name %.80q: want at most %d letters, digits, '.', '-' and '_', not digits alone",
				n.Name, maxName)
		case taken:
			v.add(at("name"), "name %q: is node %d's, too (want another)", n.Name, first)
		default:
			names[n.Name] = i
		}
		switch first, taken := macs[n.MAC]; {
		case n.MAC.IsZero() || n.MAC.IsMulticast():
			v.add(at("mac"), "mac %v: no station's address (want a unicast MAC)", n.MAC)
		case taken:
			v.add(at("mac"), "mac %v: is node %d's, too (want one for each node)", n.MAC, first)
		default:
			macs[n.MAC] = i
		}
		v.checkUsed(at("vid"), n.VID, usable)
		if n.Priority < -maxPriority || n.Priority > maxPriority {
			v.add(at("priority"), "priority %d: want %d to %d", n.Priority, -maxPriority, maxPriority)
		}
	}
}

// ValidName reports whether a node may have a name: one that can be told from a number, and written
// on one line.
func ValidName(s string) bool {
	const digits = "0123456789"
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_"
	return len(s) <= maxName && strings.Trim(s, digits) != "" && strings.Trim(s, digits+letters) == ""
}

// checkPairs checks some of a plan's exceptions.
func (v *validation) checkPairs(pairs map[Pair]transport.VID) {
	if len(v.plan.Pairs) > MaxPairs || len(pairs) > MaxPairs {
		v.add(part{list: "pairs", entry: whole}, "%d pairs: want at most %d (change the nodes' defaults instead)",
			max(len(v.plan.Pairs), len(pairs)), MaxPairs)
		return
	}
	if len(v.plan.Nodes) == 0 {
		return // which is a fault of its own
	}
	usable := v.usable()
	for _, pair := range sortedPairs(pairs) {
		at := part{list: "pairs", pair: pair}
		if pair.A >= 0 && pair.A < pair.B && pair.B < len(v.plan.Nodes) {
			v.checkUsed(at, pairs[pair], usable)
		} else {
			v.add(at, "want two nodes of 0 to %d, the lower one first", len(v.plan.Nodes)-1)
		}
	}
}

// sortedPairs returns the keys of a map in their order.
func sortedPairs(pairs map[Pair]transport.VID) []Pair {
	return slices.SortedFunc(maps.Keys(pairs), Pair.Compare)
}
