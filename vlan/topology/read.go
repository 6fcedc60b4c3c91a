package topology

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
)

// MaxFile bounds a topology's file, in bytes: enough for 100,000 hosts on 1,000 switches. Reading
// takes some hundred times that memory at worst.
const MaxFile = 8 << 20

// SyntaxError is one fault in a file, with its line.
type SyntaxError = strictyaml.SyntaxError

// Read reads a topology from YAML:
//
//	rate: 1G                   # of cables without a rate; optional
//	switches: [leaf0, leaf1, top0, top1]
//	hosts:                     # node 0, node 1 ...
//	  - {name: node0, switch: leaf0}
//	  - {name: node1, switch: leaf1, rate: 100M}
//	links:
//	  - {between: [leaf0, top0], rate: 10G}
//	  - {between: [leaf1, top0]}
//	  - {between: [leaf0, top1]}
//	  - {between: [leaf1, top1]}
//	vlans:                     # optional: ComputeVLANs finds some
//	  - {vid: 1, links: [leaf0-top0, leaf1-top0]}
//	  - {vid: 2, links: [leaf0-top1, leaf1-top1]}
//
// A link's name is that of its switches, in either order. If several are between the same two, the
// second one is leaf0-top0#2. Unknown keys, wrong types, values given twice and all that Validate
// refuses are faults. The error joins the first of them, each a *SyntaxError that is ErrInvalid.
// The name is for messages.
func Read(name string, r io.Reader) (*Topology, error) {
	f := &reader{File: strictyaml.File{Name: name, Kind: ErrInvalid}, lines: make(map[string][]int)}
	if err := f.Read(r, MaxFile, f.read); err != nil {
		return nil, err
	}
	return &f.t, nil
}

// Load makes a topology of a spec, as Parse takes it, or else reads it from the file of that name,
// which open opens.
func Load(spec string, open func(name string) (io.ReadCloser, error)) (*Topology, error) {
	if IsSpec(spec) {
		return Parse(spec)
	}
	file, err := open(spec)
	if err != nil {
		return nil, fmt.Errorf("topology %q: no spec (there are: %s), and no file that can be read: %w",
			spec, Specs, err)
	}
	t, err := Read(spec, file)
	return t, errors.Join(err, file.Close())
}

// reader is a topology that is being read.
type reader struct {
	strictyaml.File
	t        Topology
	rate     Rate             // of cables without one; or 0
	switches map[string]int   // by name
	links    map[string]int   // by name, either way round; nil if a link is faulty
	wantLink string           // which links there are, for faults: a file may have thousands of them
	lines    map[string][]int // of the entries of each list
}

// read reads the lists in the order in which they need each other, which need not be the file's.
func (f *reader) read(root *yaml.Node) {
	lists := make(map[string]*yaml.Node)
	later := func(list string) (string, func(*yaml.Node)) { return list, func(n *yaml.Node) { lists[list] = n } }
	f.Mapping(root, "topology",
		strictyaml.Optional("rate", func(n *yaml.Node) { f.rate = f.readRate(n, "topology") }),
		strictyaml.Required(later(switchList)), strictyaml.Required(later(hostList)),
		strictyaml.Optional(later(linkList)), strictyaml.Optional(later(vlanList)),
	)
	each := func(list string, limit int, read func(n *yaml.Node)) {
		if lists[list] == nil {
			return
		}
		entries, _ := f.List(lists[list], list, limit)
		for _, n := range entries {
			f.lines[list] = append(f.lines[list], n.Line)
			read(n)
		}
	}
	f.switches = make(map[string]int)
	each(switchList, maxParts, f.readSwitch)
	each(hostList, maxParts, f.readHost)
	each(linkList, maxParts, f.readLink)
	if len(f.Faults) == 0 {
		f.nameLinks()
	}
	each(vlanList, int(transport.MaxVID), f.readVLAN)
	if len(f.Faults) == 0 {
		f.validate()
	}
}

func (f *reader) readSwitch(n *yaml.Node) {
	name, _ := f.Text(n, "switch")
	f.switches[name] = len(f.t.Switches)
	f.t.Switches = append(f.t.Switches, name)
}

func (f *reader) readHost(n *yaml.Node) {
	h := Host{Rate: f.rate}
	what := fmt.Sprintf("host %d", len(f.t.Hosts))
	f.Mapping(n, what,
		strictyaml.Required("name", func(n *yaml.Node) { h.Name, _ = f.Text(n, what+": name") }),
		strictyaml.Required("switch", func(n *yaml.Node) { h.Switch = f.readEnd(n, what) }),
		strictyaml.Optional("rate", func(n *yaml.Node) { h.Rate = f.readRate(n, what) }),
	)
	f.needRate(n, what, h.Rate)
	f.t.Hosts = append(f.t.Hosts, h)
}

func (f *reader) readLink(n *yaml.Node) {
	l := Link{Rate: f.rate}
	what := fmt.Sprintf("link %d", len(f.t.Links))
	f.Mapping(n, what,
		strictyaml.Required("between", func(n *yaml.Node) { l.A, l.B, what = f.readEnds(n, what) }),
		strictyaml.Optional("rate", func(n *yaml.Node) { l.Rate = f.readRate(n, what) }),
	)
	f.needRate(n, what, l.Rate)
	f.t.Links = append(f.t.Links, l)
}

// readEnds reads the two switches of a link, and returns them and the link's name for messages.
func (f *reader) readEnds(n *yaml.Node, what string) (a, b int, name string) {
	ends, ok := f.List(n, what+": between", 2)
	if ok && len(ends) != 2 {
		f.Fault(n, "%s: between: %d switches (want 2)", what, len(ends))
	}
	if len(ends) != 2 {
		return 0, 0, what
	}
	if ends[0].Kind == yaml.ScalarNode && ends[1].Kind == yaml.ScalarNode {
		what = fmt.Sprintf("link %.80s-%.80s", ends[0].Value, ends[1].Value)
	}
	faults := len(f.Faults)
	a, b = f.readEnd(ends[0], what), f.readEnd(ends[1], what)
	if a == b && len(f.Faults) == faults {
		f.Fault(n, "%s: both ends are one switch (want two)", what)
	}
	return a, b, what
}

// readEnd returns the number of a switch, or 0 after a fault.
func (f *reader) readEnd(n *yaml.Node, what string) int {
	name, ok := f.Text(n, what+": switch")
	if !ok {
		return 0
	}
	i, ok := f.switches[name]
	if !ok {
		f.Fault(n, "%s: no such switch: %.80s (want %s)", what, name, someOf(f.t.Switches))
	}
	return i
}

// readRate returns a rate. After a fault it is not 0, since it is not missing.
func (f *reader) readRate(n *yaml.Node, what string) Rate {
	text, ok := f.Text(n, what+": rate")
	if !ok {
		return Gbps
	}
	rate, err := ParseRate(text)
	if err != nil {
		f.Fault(n, "%s: %v", what, err)
		return Gbps
	}
	return rate
}

func (f *reader) needRate(n *yaml.Node, what string, rate Rate) {
	if rate == 0 {
		f.Fault(n, "%s: no rate (give it one, as 1G, or the topology one for all)", what)
	}
}

// nameLinks names the links, both ways round. A link's own name goes before that of another one
// turned round.
func (f *reader) nameLinks() {
	f.links = make(map[string]int)
	turned := Topology{Switches: f.t.Switches, Links: slices.Clone(f.t.Links)}
	for i, l := range turned.Links {
		turned.Links[i].A, turned.Links[i].B = l.B, l.A
	}
	own := f.t.LinkNames()
	for _, names := range [][]string{turned.LinkNames(), own} {
		for i, name := range names {
			f.links[name] = i
		}
	}
	f.wantLink = someOf(own)
}

func (f *reader) readVLAN(n *yaml.Node) {
	v := VLAN{}
	what := fmt.Sprintf("vlan %d", len(f.t.VLANs))
	f.Mapping(n, what,
		strictyaml.Required("vid", func(n *yaml.Node) {
			vid, ok := f.Number(n, what+": vid", 1, int(transport.MaxVID))
			v.VID = transport.VID(vid)
			if i := slices.Index(f.t.VIDs(), v.VID); ok && i >= 0 {
				f.Fault(n, "%s: vid %d: is on line %d, too (want it once)", what, vid, f.lines[vlanList][i])
			}
		}),
		strictyaml.Required("links", func(n *yaml.Node) { v.Links = f.readMembers(n, what) }),
	)
	f.t.VLANs = append(f.t.VLANs, v)
}

// readMembers reads the links of a VLAN, ascending.
func (f *reader) readMembers(n *yaml.Node, what string) []int {
	entries, _ := f.List(n, what+": links", len(f.t.Links))
	var links []int
	for _, n := range entries {
		name, ok := f.Text(n, what+": link")
		if !ok || f.links == nil {
			continue
		}
		l, ok := f.links[name]
		if !ok {
			f.Fault(n, "%s: no such link: %.80s (want %s)", what, name, f.wantLink)
			continue
		}
		links = append(links, l)
	}
	slices.Sort(links)
	if distinct := slices.Compact(slices.Clone(links)); len(distinct) < len(links) {
		f.Fault(n, "%s: a link is listed twice (want each once)", what)
	}
	return links
}

// validate notes what is wrong with the topology as a whole, and where. It sorts the VLANs.
func (f *reader) validate() {
	lines := make(map[transport.VID]int)
	for i, v := range f.t.VLANs {
		lines[v.VID] = f.lines[vlanList][i]
	}
	slices.SortFunc(f.t.VLANs, func(a, b VLAN) int { return cmp.Compare(a.VID, b.VID) })
	for i, v := range f.t.VLANs {
		f.lines[vlanList][i] = lines[v.VID]
	}
	err := f.t.Validate()
	if err == nil {
		return
	}
	line := 1
	var where *flaw
	if errors.As(err, &where) {
		line = f.lines[where.list][where.entry]
	}
	f.FaultAt(line, "%s", strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": "))
}

// maxSome is the number of names that a message lists.
const maxSome = 8

// someOf says which names there are, or the first of them.
func someOf(names []string) string {
	switch {
	case len(names) == 0:
		return "one, and there is none"
	case len(names) > maxSome:
		return fmt.Sprintf("one of %s ...", strings.Join(names[:maxSome], ", "))
	}
	return "one of " + strings.Join(names, ", ")
}
