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
	maxParts   = 1 << 20 // hosts, switches, or links: as many as the simulator can run
	maxMembers = 1 << 24 // links in all VLANs together: 128 MiB
	maxReach   = 1 << 26 // switches times VLANs: 1 GiB in Paths
	maxName    = 255     // bytes
)

// ErrInvalid matches the errors that say what is wrong with a topology.
var ErrInvalid = errors.New("bad topology")

// invalid returns an ErrInvalid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

func tooLarge(what string, most int) error {
	return invalid("too large: more than %d %s", most, what)
}

// reach is what maxReach bounds.
const reach = "switches, each counted once for each VLAN"

// The lists of a topology, as its file calls them.
const (
	switchList = "switches"
	hostList   = "hosts"
	linkList   = "links"
	vlanList   = "vlans"
)

// flaw is an ErrInvalid of an entry of one of the lists, so that the reader of a file can say where
// it is.
type flaw struct {
	list  string
	entry int
	error
}

func (f *flaw) Unwrap() error { return f.error }

// flawed returns what is wrong with an entry.
func flawed(list string, entry int, format string, args ...any) error {
	return &flaw{list, entry, invalid(format, args...)}
}

// Validate reports what is wrong with t, as ErrInvalid: names that are missing or not unique,
// numbers of switches and links out of range, rates that are not positive, VIDs that are not 1 to
// 4094 or not ascending, a VLAN with a loop (the error names it), or one that does not connect all
// switches with hosts (the error names one that is cut off). A topology without VLANs is valid:
// ComputeVLANs has yet to find them.
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

// checkParts checks all but the shape of the VLANs.
func (t *Topology) checkParts() error {
	if len(t.Switches) == 0 {
		return invalid("no switch (want one at least)")
	}
	if max(len(t.Switches), len(t.Hosts), len(t.Links)) > maxParts {
		return tooLarge("switches, hosts or links", maxParts)
	}
	if len(t.Switches)*len(t.VLANs) > maxReach {
		return tooLarge(reach, maxReach)
	}
	for _, check := range []func() error{t.checkNames, t.checkHosts, t.checkLinks, t.checkVLANs} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// printable reports whether a name can stand on a line among others.
func printable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r == ' ' || !unicode.IsPrint(r)
	})
}

func (t *Topology) checkNames() error {
	seen := make(map[string]bool, len(t.Switches)+len(t.Hosts))
	check := func(list, kind string, i int, name string) error {
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
		if err := check(switchList, "switch", i, name); err != nil {
			return err
		}
	}
	for i, h := range t.Hosts {
		if err := check(hostList, "host", i, h.Name); err != nil {
			return err
		}
	}
	return nil
}

func (t *Topology) hasSwitch(i int) bool { return i >= 0 && i < len(t.Switches) }

func (t *Topology) checkHosts() error {
	for i, h := range t.Hosts {
		if !t.hasSwitch(h.Switch) {
			return flawed(hostList, i, "host %s: switch %d (want 0 to %d)", h.Name, h.Switch, len(t.Switches)-1)
		}
		if !h.Rate.Valid() {
			return flawed(hostList, i, "host %s: rate %v (want more than 0)", h.Name, float64(h.Rate))
		}
	}
	return nil
}

// checkLinks also makes sure that a link's name stands for that link alone: the names of a-b and c,
// and of a and b-c, are both a-b-c.
func (t *Topology) checkLinks() error {
	for i, l := range t.Links {
		switch {
		case !t.hasSwitch(l.A) || !t.hasSwitch(l.B):
			return flawed(linkList, i, "link %d: switches %d and %d (want 0 to %d)", i, l.A, l.B, len(t.Switches)-1)
		case l.A == l.B:
			return flawed(linkList, i, "link %d: both ends are %s", i, t.Switches[l.A])
		}
	}
	seen := make(map[string]bool, len(t.Links))
	names := t.LinkNames()
	for i, name := range names {
		if rate := t.Links[i].Rate; !rate.Valid() {
			return flawed(linkList, i, "link %s: rate %v (want more than 0)", name, float64(rate))
		}
	}
	for i, name := range names {
		if seen[name] {
			return flawed(linkList, i, "link %s: the name is taken already (call a switch otherwise)", name)
		}
		seen[name] = true
	}
	return nil
}

func (t *Topology) checkVLANs() error {
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
				return flawed(vlanList, n, "VLAN %d: link %d comes after link %d (want each once, sorted)",
					v.VID, l, v.Links[i-1])
			}
		}
	}
	return nil
}

// checkConnected makes sure that VLAN number i is one tree, with all switches that have hosts.
func (t *Topology) checkConnected(i int, tr *tree) error {
	vid, root := t.VLANs[i].VID, int32(-1)
	apart := func(s int) bool {
		if root < 0 {
			root = tr.root[s]
		}
		return tr.root[s] != root
	}
	for _, h := range t.Hosts {
		if apart(h.Switch) {
			return flawed(vlanList, i, "VLAN %d: %s, where host %s is, is cut off from %s",
				vid, t.Switches[h.Switch], h.Name, t.Switches[t.Hosts[0].Switch])
		}
	}
	for _, l := range t.VLANs[i].Links {
		if apart(t.Links[l].A) {
			return flawed(vlanList, i, "VLAN %d: link %s is cut off from %s", vid, t.LinkName(l), t.Switches[root])
		}
	}
	return nil
}
