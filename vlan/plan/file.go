package plan

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
)

// Parse reads a plan from YAML:
//
//	topology: vbft:4x4x4       # optional: what network it is for
//	vids: [1, 2, 3, 4]         # that may be used
//	pcp: 0                     # optional: priority of all frames
//	nodes:                     # node 0, node 1 ...
//	  - {name: n0, mac: "02:00:00:00:00:01", vid: 1}
//	  - {name: n1, mac: "02:00:00:00:00:02", vid: 2, priority: 1}
//	pairs:                     # optional: pairs that do not use the default of the node with priority
//	  0-1: 3
//
// Names and priorities may be left out. Unknown keys, wrong types, what is given twice and all that Validate refuses are
// faults; the error holds them all, up to MaxFaults, each as a *SyntaxError, which is ErrInvalid. The name is for messages.
func Parse(name string, r io.Reader) (*Plan, error) {
	f := &planFile{File: strictyaml.File{Name: name, Kind: ErrInvalid}, lines: make(map[part]int), faulty: make(map[part]bool)}
	root, err := f.Root(r, MaxFile)
	if err != nil {
		return nil, err
	}
	if root != nil {
		f.readPlan(root)
		f.checkPlan()
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return &f.plan, nil
}

// planFile is a plan that is being read, and where its parts are.
type planFile struct {
	strictyaml.File
	plan   Plan
	lines  map[part]int
	faulty map[part]bool // said to be so already
}

func (f *planFile) readPlan(root *yaml.Node) {
	f.Mapping(root, "plan",
		strictyaml.Optional("topology", func(n *yaml.Node) {
			f.found(part{list: "topology"}, n)
			f.plan.Topology, _ = f.Text(n, "topology")
		}),
		strictyaml.Required("vids", f.readVIDs),
		strictyaml.Optional("pcp", func(n *yaml.Node) {
			pcp, _ := f.Number(n, "pcp", 0, 7)
			f.plan.PCP = transport.PCP(pcp)
		}),
		strictyaml.Required("nodes", f.readNodes),
		strictyaml.Optional("pairs", f.readPairs),
	)
}

func (f *planFile) found(at part, n *yaml.Node) { f.lines[at] = n.Line }

// readVID reads a VID into a part of the plan.
func (f *planFile) readVID(at part, n *yaml.Node, of string) transport.VID {
	f.found(at, n)
	vid, ok := f.Number(n, of+"vid", 1, int(transport.MaxVID))
	f.faulty[at] = !ok
	return transport.VID(vid)
}

func (f *planFile) readVIDs(n *yaml.Node) {
	f.found(part{list: "vids", entry: whole}, n)
	entries, ok := f.List(n, "vids", MaxVIDs)
	f.faulty[part{list: "vids", entry: whole}] = !ok
	for i, entry := range entries {
		f.plan.VIDs = append(f.plan.VIDs, f.readVID(part{list: "vids", entry: i}, entry, ""))
	}
}

func (f *planFile) readNodes(n *yaml.Node) {
	f.found(part{list: "nodes", entry: whole}, n)
	entries, ok := f.List(n, "nodes", MaxNodes)
	f.faulty[part{list: "nodes", entry: whole}] = !ok
	for i, entry := range entries {
		f.plan.Nodes = append(f.plan.Nodes, f.readNode(i, entry))
	}
}

func (f *planFile) readNode(i int, n *yaml.Node) (s Node) {
	at := func(field string) part { return part{list: "nodes", entry: i, field: field} }
	f.faulty[at("mac")], f.faulty[at("vid")] = true, true // if they are missing, the mapping says it
	of := fmt.Sprintf("node %d", i)
	f.Mapping(n, of,
		strictyaml.Optional("name", func(n *yaml.Node) {
			f.found(at("name"), n)
			s.Name, _ = f.Text(n, of+": name")
		}),
		strictyaml.Required("mac", func(n *yaml.Node) {
			f.found(at("mac"), n)
			s.MAC, f.faulty[at("mac")] = f.readMAC(n, of)
		}),
		strictyaml.Required("vid", func(n *yaml.Node) { s.VID = f.readVID(at("vid"), n, of+": ") }),
		strictyaml.Optional("priority", func(n *yaml.Node) { s.Priority, _ = f.Number(n, of+": priority", -MaxPriority, MaxPriority) }),
	)
	return s
}

func (f *planFile) readMAC(n *yaml.Node, of string) (mac transport.MAC, faulty bool) {
	text, ok := f.Text(n, of+": mac")
	if !ok {
		return mac, true
	}
	mac, err := transport.ParseMAC(text)
	if err != nil {
		f.Fault(n, "%s: mac %.80q: want six bytes such as 02:00:00:00:00:01", of, text)
	}
	return mac, err != nil
}

func (f *planFile) readPairs(n *yaml.Node) {
	f.found(part{list: "pairs", entry: whole}, n)
	f.plan.Pairs = make(map[Pair]transport.VID)
	f.EachKey(n, "pairs", func(key, value *yaml.Node) {
		pair, err := ParsePair(key.Value)
		if err != nil {
			f.Fault(key, "%v", err)
			return
		}
		at := part{list: "pairs", pair: pair}
		if line, twice := f.lines[at]; twice {
			f.Fault(key, "pair %v: is on line %d, too (want it once)", pair, line)
			return
		}
		f.plan.Pairs[pair] = f.readVID(at, value, fmt.Sprintf("pair %v: ", pair))
	})
}

// checkPlan notes the faults that only the plan as a whole shows, and not those that follow from others.
func (f *planFile) checkPlan() {
	for _, fault := range f.plan.faults() {
		line, ok := f.lines[fault.part]
		if ok && !f.faulty[fault.part] {
			f.FaultAt(line, "%s", fault.text)
		}
	}
}

// WriteTo writes the plan as YAML, from which Parse makes the same plan. Errors: ErrInvalid; the writer's.
func (p *Plan) WriteTo(w io.Writer) (n int64, err error) {
	if err := p.Validate(); err != nil {
		return 0, err
	}
	var b strings.Builder
	if p.Topology != "" {
		fmt.Fprintf(&b, "topology: %s\n", strictyaml.Quote(p.Topology))
	}
	fmt.Fprintf(&b, "vids: [%s]\n", joinVIDs(p.VIDs))
	if p.PCP != 0 {
		fmt.Fprintf(&b, "pcp: %d\n", p.PCP)
	}
	b.WriteString("nodes:\n")
	for i, s := range p.Nodes {
		b.WriteString("  - {")
		if s.Name != "" {
			fmt.Fprintf(&b, "name: %s, ", strictyaml.Quote(s.Name))
		}
		fmt.Fprintf(&b, `mac: "%v", vid: %d`, s.MAC, s.VID)
		if s.Priority != 0 {
			fmt.Fprintf(&b, ", priority: %d", s.Priority)
		}
		fmt.Fprintf(&b, "} # %d\n", i)
	}
	if len(p.Pairs) > 0 {
		b.WriteString("pairs:\n")
	}
	for _, pair := range sortedPairs(p.Pairs) {
		fmt.Fprintf(&b, "  %v: %d\n", pair, p.Pairs[pair])
	}
	written, err := io.WriteString(w, b.String())
	return int64(written), err
}

func joinVIDs(vids []transport.VID) string {
	var b strings.Builder
	for i, vid := range vids {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(int(vid)))
	}
	return b.String()
}
