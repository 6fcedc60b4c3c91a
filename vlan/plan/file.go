package plan

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
)

// MaxFile bounds a plan's file, in bytes: what WriteTo writes of the largest plan has less. Reading
// takes some hundred times that memory at worst.
const MaxFile = 11 << 20

// SyntaxError is one fault in a file, with its line.
type SyntaxError = strictyaml.SyntaxError

// Parse reads a plan from YAML:
//
//	topology: vbft:4x4x4       # optional: the network that the plan is for
//	vids: [1, 2, 3, 4]         # that may be used
//	pcp: 0                     # optional: priority of all frames
//	nodes:                     # node 0, node 1 ...
//	  - {name: n0, mac: "02:00:00:00:00:01", vid: 1}
//	  - {name: n1, mac: "02:00:00:00:00:02", vid: 2, priority: 1}
//	pairs:                     # optional: exceptions from the default of the node with priority
//	  0-1: 3
//
// Names and priorities are optional. Unknown keys, wrong types, values given twice and all that
// Validate refuses are faults. The error joins the first of them, each a *SyntaxError that is
// ErrInvalid. The name is for messages.
func Parse(name string, r io.Reader) (*Plan, error) {
	f := &planFile{File: strictyaml.File{Name: name, Kind: ErrInvalid}, lines: make(map[part]int)}
	if err := f.Read(r, MaxFile, f.readPlan); err != nil {
		return nil, err
	}
	return &f.plan, nil
}

// planFile is a plan that is being read, and the lines of its parts that were read without a fault.
type planFile struct {
	strictyaml.File
	plan  Plan
	lines map[part]int
}

func (f *planFile) readPlan(root *yaml.Node) {
	f.Mapping(root, "plan",
		strictyaml.Optional("topology", func(n *yaml.Node) {
			f.plan.Topology = f.readText(part{list: "topology"}, n, "topology")
		}),
		strictyaml.Required("vids", func(n *yaml.Node) {
			for i, entry := range f.readList("vids", n, MaxVIDs) {
				f.plan.VIDs = append(f.plan.VIDs, f.readVID(part{list: "vids", entry: i}, entry))
			}
		}),
		strictyaml.Optional("pcp", func(n *yaml.Node) {
			pcp, _ := f.Number(n, "pcp", 0, 7)
			f.plan.PCP = transport.PCP(pcp)
		}),
		strictyaml.Required("nodes", func(n *yaml.Node) {
			for i, entry := range f.readList("nodes", n, MaxNodes) {
				f.plan.Nodes = append(f.plan.Nodes, f.readNode(i, entry))
			}
		}),
		strictyaml.Optional("pairs", f.readPairs),
	)
	f.checkPlan()
}

// found notes the line of a part, if it was read without a fault.
func (f *planFile) found(at part, n *yaml.Node, ok bool) {
	if ok {
		f.lines[at] = n.Line
	}
}

func (f *planFile) readList(list string, n *yaml.Node, limit int) []*yaml.Node {
	entries, ok := f.List(n, list, limit)
	f.found(part{list: list, entry: whole}, n, ok)
	return entries
}

func (f *planFile) readText(at part, n *yaml.Node, what string) string {
	text, ok := f.Text(n, what)
	f.found(at, n, ok)
	return text
}

func (f *planFile) readVID(at part, n *yaml.Node) transport.VID {
	vid, ok := f.Number(n, at.prefix()+"vid", 1, int(transport.MaxVID))
	f.found(at, n, ok)
	return transport.VID(vid)
}

func (f *planFile) readNode(i int, n *yaml.Node) (node Node) {
	at := func(field string) part { return part{list: "nodes", entry: i, field: field} }
	of := fmt.Sprintf("node %d", i)
	f.Mapping(n, of,
		strictyaml.Optional("name", func(n *yaml.Node) { node.Name = f.readText(at("name"), n, of+": name") }),
		strictyaml.Required("mac", func(n *yaml.Node) { node.MAC = f.readMAC(at("mac"), n, of) }),
		strictyaml.Required("vid", func(n *yaml.Node) { node.VID = f.readVID(at("vid"), n) }),
		strictyaml.Optional("priority", func(n *yaml.Node) {
			node.Priority, _ = f.Number(n, of+": priority", -maxPriority, maxPriority)
		}),
	)
	return node
}

func (f *planFile) readMAC(at part, n *yaml.Node, of string) (mac transport.MAC) {
	text, ok := f.Text(n, of+": mac")
	if !ok {
		return mac
	}
	mac, err := transport.ParseMAC(text)
	if err != nil {
		f.Fault(n, "%s: mac %.80q: want six bytes such as 02:00:00:00:00:01", of, text)
	}
	f.found(at, n, err == nil)
	return mac
}

func (f *planFile) readPairs(n *yaml.Node) {
	f.found(part{list: "pairs", entry: whole}, n, true)
	f.plan.Pairs = make(map[Pair]transport.VID)
	lines := make(map[Pair]int)
	f.EachKey(n, "pairs", func(key, value *yaml.Node) {
		pair, err := ParsePair(key.Value)
		if err != nil {
			f.Fault(key, "%v", err)
			return
		}
		if line, twice := lines[pair]; twice {
			f.Fault(key, "pair %v: is on line %d, too (want it once)", pair, line)
			return
		}
		lines[pair] = key.Line
		f.plan.Pairs[pair] = f.readVID(part{list: "pairs", pair: pair}, value)
	})
}

// checkPlan notes the faults that only the plan as a whole shows, and not those that follow from
// others.
func (f *planFile) checkPlan() {
	for _, fault := range f.plan.faults() {
		if line, ok := f.lines[fault.part]; ok {
			f.FaultAt(line, "%s", fault.text)
		}
	}
}

// WriteTo writes the plan as YAML, from which Parse makes the same plan. Errors: ErrInvalid; the
// writer's.
func (p *Plan) WriteTo(w io.Writer) (n int64, err error) {
	if err := p.Validate(); err != nil {
		return 0, err
	}
	var b strings.Builder
	if p.Topology != "" {
		fmt.Fprintf(&b, "topology: %s\n", strictyaml.Quote(p.Topology))
	}
	fmt.Fprintf(&b, "vids: [%s]\n", strings.Trim(strings.ReplaceAll(fmt.Sprint(p.VIDs), " ", ", "), "[]"))
	if p.PCP != 0 {
		fmt.Fprintf(&b, "pcp: %d\n", p.PCP)
	}
	b.WriteString("nodes:\n")
	for i, node := range p.Nodes {
		b.WriteString("  - {")
		if node.Name != "" {
			fmt.Fprintf(&b, "name: %s, ", strictyaml.Quote(node.Name))
		}
		fmt.Fprintf(&b, `mac: "%v", vid: %d`, node.MAC, node.VID)
		if node.Priority != 0 {
			fmt.Fprintf(&b, ", priority: %d", node.Priority)
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
