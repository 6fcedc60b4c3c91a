package vlan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rawlane/rawlane/transport"
)

// ErrBadPlan is matched by the errors of plans that cannot be carried out.
var ErrBadPlan = errors.New("bad plan")

// part is a place in a plan that can be wrong: a list, an entry of it, or a field of that.
type part struct {
	list  string // vids, pcp, nodes, pairs or topology
	entry int    // of vids or nodes; whole for the list itself
	pair  Pair   // of pairs
	field string // of nodes: name, mac, vid, priority
}

const whole = -1

// fault is what is wrong with a part of a plan, and what was expected.
type fault struct {
	part part
	text string
}

// Validate reports what makes the plan impossible: its faults, up to MaxFaults. The error is ErrBadPlan.
func (p *Plan) Validate() error {
	var errs []error
	for i, f := range p.faults() {
		if i == MaxFaults {
			errs = append(errs, fmt.Errorf("%w: and more (mend these first)", ErrBadPlan))
			break
		}
		errs = append(errs, fmt.Errorf("%w: %s", ErrBadPlan, f.text))
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
	v.checkPairs(p)
	return v.faults
}

type validation struct {
	faults []fault
	vids   map[transport.VID]bool // that may be used
}

func (v *validation) add(at part, format string, args ...any) {
	if len(v.faults) <= MaxFaults {
		v.faults = append(v.faults, fault{at, fmt.Sprintf(format, args...)})
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
func (v *validation) checkUsed(at part, vid transport.VID, of string) {
	switch {
	case !validVID(vid):
		v.add(at, "%s: vid %d: want 1 to %d", of, vid, transport.MaxVID)
	case len(v.vids) > 0 && !v.vids[vid]:
		v.add(at, "%s: vid %d: not among the plan's vids (want one of them)", of, vid)
	}
}

func (v *validation) checkNodes(nodes []Station) {
	if len(nodes) == 0 || len(nodes) > MaxNodes {
		v.add(part{list: "nodes", entry: whole}, "%d nodes: want 1 to %d", len(nodes), MaxNodes)
		return
	}
	names, macs := make(map[string]int), make(map[transport.MAC]int)
	for i, s := range nodes {
		at := func(field string) part { return part{list: "nodes", entry: i, field: field} }
		of := fmt.Sprintf("node %d", i)
		switch first, taken := names[s.Name]; {
		case !validName(s.Name):
			v.add(at("name"), "%s: name %.80q: want at most %d letters, digits, '.', '-' and '_', not digits alone", of, s.Name, MaxName)
		case taken && s.Name != "":
			v.add(at("name"), "%s: name %q: is node %d's, too (want another)", of, s.Name, first)
		default:
			names[s.Name] = i
		}
		switch first, taken := macs[s.MAC]; {
		case s.MAC.IsZero() || s.MAC.IsMulticast():
			v.add(at("mac"), "%s: mac %v: no station's address (want a unicast MAC)", of, s.MAC)
		case taken:
			v.add(at("mac"), "%s: mac %v: is node %d's, too (want one for each node)", of, s.MAC, first)
		default:
			macs[s.MAC] = i
		}
		v.checkUsed(at("vid"), s.VID, of)
		if s.Priority < -MaxPriority || s.Priority > MaxPriority {
			v.add(at("priority"), "%s: priority %d: want %d to %d", of, s.Priority, -MaxPriority, MaxPriority)
		}
	}
}

// validName reports whether a name can be told from a number, and written on one line without quotes.
func validName(s string) bool {
	if len(s) > MaxName {
		return false
	}
	digits := s != ""
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

func (v *validation) checkPairs(p *Plan) {
	if len(p.Pairs) > MaxPairs {
		v.add(part{list: "pairs", entry: whole}, "%d pairs: want at most %d (change the nodes' defaults instead)", len(p.Pairs), MaxPairs)
		return
	}
	if len(p.Nodes) == 0 {
		return // the fault is elsewhere
	}
	for _, pair := range sortedPairs(p.Pairs) {
		at := part{list: "pairs", pair: pair}
		if pair.A < 0 || pair.A >= pair.B || pair.B >= len(p.Nodes) {
			v.add(at, "pair %v: want two nodes of 0 to %d, the lower one first", pair, len(p.Nodes)-1)
			continue
		}
		v.checkUsed(at, p.Pairs[pair], fmt.Sprintf("pair %v", pair))
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
