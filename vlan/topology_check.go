package vlan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rawlane/rawlane/transport"
)

// ErrBadTopology is what all errors are that say what is wrong with a topology.
var ErrBadTopology = errors.New("bad topology")

// Validate reports what is wrong with t, as an ErrBadTopology: names that are not there or not unique, numbers of switches
// and links out of range, rates that are not positive, VIDs that are not 1 to 4094 or not ascending, a VLAN with a
// loop (the error names it), or one that does not connect all switches that have hosts (the error names one
// that is cut off). A topology without VLANs is valid: ComputeVLANs has yet to find them.
func (t *Topology) Validate() error {
	if err := t.checkParts(); err != nil {
		return err
	}
	for i := range t.VLANs {
		tree, err := t.tree(i)
		if err == nil {
			err = t.checkConnected(i, tree)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// badTopology returns an ErrBadTopology.
func badTopology(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrBadTopology, fmt.Errorf(format, args...))
}

// checkParts checks all but the shape of the VLANs.
func (t *Topology) checkParts() error {
	if len(t.Switches) == 0 {
		return badTopology("no switch (want one at least)")
	}
	if max(len(t.Switches), len(t.Hosts), len(t.Links)) > maxParts {
		return tooLarge("switches, hosts or links", maxParts)
	}
	if err := t.checkNames(); err != nil {
		return err
	}
	for _, h := range t.Hosts {
		if !t.hasSwitch(h.Switch) {
			return badTopology("host %s: switch %d (want 0 to %d)", h.Name, h.Switch, len(t.Switches)-1)
		}
		if !h.Rate.valid() {
			return badTopology("host %s: rate %v (want more than 0)", h.Name, float64(h.Rate))
		}
	}
	for i, l := range t.Links {
		if !t.hasSwitch(l.A) || !t.hasSwitch(l.B) {
			return badTopology("link %d: switches %d and %d (want 0 to %d)", i, l.A, l.B, len(t.Switches)-1)
		}
		if l.A == l.B {
			return badTopology("link %d: both ends are %s", i, t.Switches[l.A])
		}
		if !l.Rate.valid() {
			return badTopology("link %s: rate %v (want more than 0)", t.LinkName(i), float64(l.Rate))
		}
	}
	return t.checkVLANParts()
}

func (t *Topology) hasSwitch(i int) bool { return i >= 0 && i < len(t.Switches) }

func (t *Topology) checkNames() error {
	seen := make(map[string]bool, len(t.Switches)+len(t.Hosts))
	check := func(kind, name string) error {
		switch {
		case name == "":
			return badTopology("a %s without a name", kind)
		case len(name) > maxNameLen:
			return badTopology("%s %.20s...: a name of %d bytes (want %d at most)", kind, name, len(name), maxNameLen)
		case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }):
			return badTopology("%s %q: a name with spaces or control characters", kind, name)
		case seen[name]:
			return badTopology("%s %s: the name is taken already", kind, name)
		}
		seen[name] = true
		return nil
	}
	for _, name := range t.Switches {
		if err := check("switch", name); err != nil {
			return err
		}
	}
	for _, h := range t.Hosts {
		if err := check("host", h.Name); err != nil {
			return err
		}
	}
	return nil
}

func (t *Topology) checkVLANParts() error {
	var last transport.VID
	for _, v := range t.VLANs {
		if v.VID < 1 || v.VID > transport.MaxVID {
			return badTopology("VLAN %d: want a VID of 1 to %d", v.VID, transport.MaxVID)
		}
		if v.VID <= last {
			return badTopology("VLAN %d comes after VLAN %d (want each once, sorted)", v.VID, last)
		}
		last = v.VID
		for i, l := range v.Links {
			if l < 0 || l >= len(t.Links) {
				return badTopology("VLAN %d: link %d (want 0 to %d)", v.VID, l, len(t.Links)-1)
			}
			if i > 0 && l <= v.Links[i-1] {
				return badTopology("VLAN %d: link %d comes after link %d (want each once, sorted)", v.VID, l, v.Links[i-1])
			}
		}
	}
	return nil
}

// checkConnected makes sure that VLAN number i is one tree, with all switches that have hosts.
func (t *Topology) checkConnected(i int, tr *tree) error {
	root := int32(-1)
	for _, h := range t.Hosts {
		own := tr.root[h.Switch]
		if root < 0 {
			root = own
		}
		if own != root {
			return badTopology("VLAN %d: %s, where host %s is, is cut off from %s", t.VLANs[i].VID, t.Switches[h.Switch], h.Name, t.Switches[t.Hosts[0].Switch])
		}
	}
	for _, l := range t.VLANs[i].Links {
		own := tr.root[t.Links[l].A]
		if root < 0 {
			root = own
		}
		if own != root {
			return badTopology("VLAN %d: link %s is cut off from %s", t.VLANs[i].VID, t.LinkName(l), t.Switches[root])
		}
	}
	return nil
}

// LinkName returns what link i of Links is called in messages: leaf0-top1, or leaf0-top1#2 for the second one between
// the same two switches in the same order.
func (t *Topology) LinkName(i int) string {
	l, same := t.Links[i], 1
	for _, other := range t.Links[:i] {
		if other.A == l.A && other.B == l.B {
			same++
		}
	}
	name := t.Switches[l.A] + "-" + t.Switches[l.B]
	if same > 1 {
		name += fmt.Sprintf("#%d", same)
	}
	return name
}
