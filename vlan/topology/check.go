package topology

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rawlane/rawlane/transport"
)

// Bounds on topologies, so that a spec of a few bytes cannot ask for all memory.
const (
	maxParts   = 1 << 20 // hosts, switches, or links: what the simulator can still run
	maxMembers = 1 << 24 // links in all VLANs together: 128 MiB
	maxName    = 255     // bytes
)

// ErrInvalid is what all errors are that say what is wrong with a topology.
var ErrInvalid = errors.New("bad topology")

// Validate reports what is wrong with t, as an ErrInvalid: names that are not there or not unique, numbers of switches
// and links out of range, rates that are not positive, VIDs that are not 1 to 4094 or not ascending, a VLAN with a
// loop (the error names it), or one that does not connect all switches that have hosts (the error names one
// that is cut off). A topology without VLANs is valid: ComputeVLANs has yet to find them.
func (t *Topology) Validate() error {
	if err := t.checkParts(); err != nil {
		return err
	}
	for i := range t.VLANs {
		tree, err := t.Tree(i)
		if err == nil {
			err = t.checkConnected(i, tree)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// badTopology returns an ErrInvalid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// The lists of a topology, as its file calls them.
const (
	switchList = "switches"
	hostList   = "hosts"
	linkList   = "links"
	vlanList   = "vlans"
)

// flaw is an ErrInvalid of an entry of one of a topology's lists, so that the reader of a file can say where.
type flaw struct {
	list  string // switches, hosts, links or vlans
	entry int
	err   error
}

func (f *flaw) Error() string { return f.err.Error() }
func (f *flaw) Unwrap() error { return f.err }

// flawed returns what is wrong with an entry.
func flawed(list string, entry int, format string, args ...any) error {
	return &flaw{list, entry, invalid(format, args...)}
}

// checkParts checks all but the shape of the VLANs.
func (t *Topology) checkParts() error {
	if len(t.Switches) == 0 {
		return invalid("no switch (want one at least)")
	}
	if max(len(t.Switches), len(t.Hosts), len(t.Links)) > maxParts {
		return tooLarge("switches, hosts or links", maxParts)
	}
	if err := t.checkNames(); err != nil {
		return err
	}
	for i, h := range t.Hosts {
		if !t.hasSwitch(h.Switch) {
			return flawed(hostList, i, "host %s: switch %d (want 0 to %d)", h.Name, h.Switch, len(t.Switches)-1)
		}
		if !h.Rate.Valid() {
			return flawed(hostList, i, "host %s: rate %v (want more than 0)", h.Name, float64(h.Rate))
		}
	}
	for i, l := range t.Links {
		if !t.hasSwitch(l.A) || !t.hasSwitch(l.B) {
			return flawed(linkList, i, "link %d: switches %d and %d (want 0 to %d)", i, l.A, l.B, len(t.Switches)-1)
		}
		if l.A == l.B {
			return flawed(linkList, i, "link %d: both ends are %s", i, t.Switches[l.A])
		}
		if !l.Rate.Valid() {
			return flawed(linkList, i, "link %s: rate %v (want more than 0)", t.LinkName(i), float64(l.Rate))
		}
	}
	if err := t.checkLinkNames(); err != nil {
		return err
	}
	return t.checkVLANParts()
}

func (t *Topology) hasSwitch(i int) bool { return i >= 0 && i < len(t.Switches) }

// printable reports whether a name can be put on a line among others.
func printable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) })
}

func (t *Topology) checkNames() error {
	seen := make(map[string]bool, len(t.Switches)+len(t.Hosts))
	check := func(list string, i int, name string) error {
		kind := "host"
		if list == switchList {
			kind = "switch"
		}
		switch {
		case name == "":
			return flawed(list, i, "a %s without a name", kind)
		case len(name) > maxName:
			return flawed(list, i, "%s %.20s...: a name of %d bytes (want %d at most)", kind, name, len(name), maxName)
		case !printable(name):
			return flawed(list, i, "%s %q: a name with spaces or what cannot be printed", kind, name)
		case seen[name]:
			return flawed(list, i, "%s %s: the name is taken already", kind, name)
		}
		seen[name] = true
		return nil
	}
	for i, name := range t.Switches {
		if err := check(switchList, i, name); err != nil {
			return err
		}
	}
	for i, h := range t.Hosts {
		if err := check(hostList, i, h.Name); err != nil {
			return err
		}
	}
	return nil
}

// checkLinkNames makes sure that a link's name stands for that link alone: a-b and c are joined by a-b-c, and so are a and
// b-c.
func (t *Topology) checkLinkNames() error {
	seen := make(map[string]bool, len(t.Links))
	for i, name := range t.LinkNames() {
		if seen[name] {
			return flawed(linkList, i, "link %s: the name is taken already (call a switch otherwise)", name)
		}
		seen[name] = true
	}
	return nil
}

func (t *Topology) checkVLANParts() error {
	var last transport.VID
	for n, v := range t.VLANs {
		if v.VID < 1 || v.VID > transport.MaxVID {
			return flawed(vlanList, n, "VLAN %d: want a VID of 1 to %d", v.VID, transport.MaxVID)
		}
		if v.VID <= last {
			return flawed(vlanList, n, "VLAN %d comes after VLAN %d (want each once, sorted)", v.VID, last)
		}
		last = v.VID
		for i, l := range v.Links {
			if l < 0 || l >= len(t.Links) {
				return flawed(vlanList, n, "VLAN %d: link %d (want 0 to %d)", v.VID, l, len(t.Links)-1)
			}
			if i > 0 && l <= v.Links[i-1] {
				return flawed(vlanList, n, "VLAN %d: link %d comes after link %d (want each once, sorted)", v.VID, l, v.Links[i-1])
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
			return flawed(vlanList, i, "VLAN %d: %s, where host %s is, is cut off from %s", t.VLANs[i].VID, t.Switches[h.Switch], h.Name, t.Switches[t.Hosts[0].Switch])
		}
	}
	for _, l := range t.VLANs[i].Links {
		own := tr.root[t.Links[l].A]
		if root < 0 {
			root = own
		}
		if own != root {
			return flawed(vlanList, i, "VLAN %d: link %s is cut off from %s", t.VLANs[i].VID, t.LinkName(l), t.Switches[root])
		}
	}
	return nil
}
