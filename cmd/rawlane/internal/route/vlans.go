package route

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/topology"
)

// vlansVerb prints the VLANs of a network as the configuration of its switches.
type vlansVerb struct {
	topology string
	compute  bool
	format   string
	opt      topology.VLANOptions
	ports    topology.PortOptions

	network *topology.Topology
	report  *topology.VLANReport // of computed VLANs
}

// vlanFormats are the values of --format.
var vlanFormats = []string{"table", "cisco", "bridge", "yaml", "json"}

// computeFlags are the flags that need --compute.
var computeFlags = []string{"paths", "max-vlans", "first-vid", "tries", "seed"}

func newVLANsCommand() *cobra.Command {
	r := &vlansVerb{}
	cmd := &cobra.Command{
		Use:   "vlans --topology SPEC|FILE [flags]",
		Short: "Print which VLANs each port of each switch is in, as commands for the switches, too",
		Long: `Prints what to set up on the switches of a network, so that each VLAN is a tree and hosts can choose
among the VLANs. The VLANs are those of the topology, or are computed with --compute, for a network
of any shape: several short paths between any two switches that have hosts, in few VLANs.
docs/topologies.md describes topologies, how their VLANs are computed, and the formats:

  table   a line for each port            cisco   commands in the manner of Cisco's IOS
  yaml    the topology, with its VLANs    bridge  commands of iproute2, for Linux bridges
  json    all of it in one object

  rawlane route vlans --topology vbft:4x4x4
  rawlane route vlans --topology net.yaml --compute --max-vlans 64 --format yaml
  rawlane route vlans --topology net.yaml --format cisco --port-name Ethernet%d`,
		Args: cli.NoArguments,
		RunE: r.run,
	}
	f := cmd.Flags()
	f.StringVar(&r.topology, "topology", "", cli.TopologyHelp)
	f.BoolVar(&r.compute, "compute", false, "compute the VLANs; those of the topology do not matter")
	f.StringVar(&r.format, "format", "table", strings.Join(vlanFormats, ", "))
	f.Uint16Var((*uint16)(&r.ports.Untagged), "untagged", 0,
		"the VLAN of frames without a tag at the hosts' ports (0: these are dropped)")
	f.StringVar(&r.ports.Name, "port-name", "",
		"what ports are called in commands, with %d for the number (swp%d, or GigabitEthernet1/0/%d)")
	f.IntVar(&r.opt.Paths, "paths", 0,
		"paths between any two switches with hosts (0: as many as the one with fewer has links)")
	f.IntVar(&r.opt.MaxVLANs, "max-vlans", 0, "VLANs that there may be (0: as many as there are VIDs)")
	f.Uint16Var((*uint16)(&r.opt.FirstVID), "first-vid", 1, "the first VLAN; the others follow")
	f.IntVar(&r.opt.Tries, "tries", 0, "random orders of the paths to try (0: 30)")
	f.Uint64Var(&r.opt.Seed, "seed", 0, "what the random orders depend on")
	return cmd
}

func (r *vlansVerb) validate(cmd *cobra.Command) error {
	if r.topology == "" {
		return cli.Misuse("--topology: which network?")
	}
	if !slices.Contains(vlanFormats, r.format) {
		return cli.Misuse("--format %q: want one of %s", r.format, strings.Join(vlanFormats, ", "))
	}
	for _, name := range computeFlags {
		if cmd.Flags().Changed(name) && !r.compute {
			return cli.Misuse("--%s is for --compute", name)
		}
	}
	if cmd.Flags().Changed("port-name") && r.format != "cisco" && r.format != "bridge" {
		return cli.Misuse("--port-name is for commands: --format cisco or bridge")
	}
	if err := r.ports.CheckName(); err != nil {
		return cli.Misuse("--port-name: %v", err)
	}
	if cmd.Flags().Changed("untagged") && r.format == "yaml" {
		return cli.Misuse("--untagged is of ports, which --format yaml does not list")
	}
	first := r.opt.FirstVID
	if first < 1 || first > transport.MaxVID {
		return cli.Misuse("--first-vid %d: want 1 to %d", first, transport.MaxVID)
	}
	if left := int(transport.MaxVID-first) + 1; r.opt.MaxVLANs < 0 || r.opt.MaxVLANs > left {
		return cli.Misuse("--max-vlans %d: want 1 to %d, from VID %d on", r.opt.MaxVLANs, left, first)
	}
	if r.opt.Paths < 0 {
		return cli.Misuse("--paths %d: want 1 or more", r.opt.Paths)
	}
	if r.opt.Tries < 0 || r.opt.Tries > topology.MaxTries {
		return cli.Misuse("--tries %d: want 1 to %d", r.opt.Tries, topology.MaxTries)
	}
	return nil
}

func (r *vlansVerb) run(cmd *cobra.Command, _ []string) error {
	if err := r.validate(cmd); err != nil {
		return err
	}
	if err := cli.Compute(cmd.Context(), r.load); err != nil {
		return err
	}
	table, err := r.network.Ports(r.ports)
	if err != nil {
		return fmt.Errorf("topology %s: %w", r.topology, err)
	}
	return r.write(cmd.OutOrStdout(), table)
}

// load makes the network, with its VLANs: of a large one they take minutes.
func (r *vlansVerb) load() (err error) {
	if r.network, err = cli.LoadTopology(r.topology); err != nil {
		return err
	}
	if !r.compute {
		if len(r.network.VLANs) == 0 {
			return fmt.Errorf("topology %s: no VLANs (--compute finds some)", r.topology)
		}
		return nil
	}
	vlans, report, err := topology.ComputeVLANs(r.network, r.opt)
	if err != nil {
		return fmt.Errorf("topology %s: %w", r.topology, err)
	}
	r.network.VLANs, r.report = vlans, &report
	return nil
}

func (r *vlansVerb) write(out io.Writer, table *topology.PortTable) error {
	if r.format == "json" {
		return cli.WriteJSON(out, r.result(table))
	}
	comment := "#"
	summary := r.summary()
	if r.format == "cisco" {
		comment = "!"
		summary = strings.ReplaceAll(summary, "?", "_") // which asks for help, in comments, too
	}
	summary = strings.ReplaceAll(summary, "\n", "\n"+comment+" ")
	if _, err := fmt.Fprintf(out, "%s %s\n", comment, summary); err != nil {
		return err
	}
	switch r.format {
	case "cisco":
		return table.WriteCisco(out)
	case "bridge":
		return table.WriteBridge(out)
	case "yaml":
		_, err := r.network.WriteTo(out)
		return err
	}
	return table.WriteTable(out)
}

// summary describes the network in a line or two.
func (r *vlansVerb) summary() string {
	t := r.network
	s := fmt.Sprintf("%s: switches %d, hosts %d, links %d, VLANs %d",
		r.topology, len(t.Switches), len(t.Hosts), len(t.Links), len(t.VLANs))
	if r.report == nil {
		return s
	}
	s += fmt.Sprintf("\ncomputed: %s between switches with hosts, which take %s at least; links in no VLAN: %d",
		cli.Count(len(r.report.Paths), "path"), cli.Count(r.report.AtLeast, "VLAN"), len(r.report.UnusedLinks))
	if r.report.Dropped > 0 {
		s += fmt.Sprintf("\n%d of the paths are in no VLAN: allow more by --max-vlans, "+
			"or want fewer paths by --paths", r.report.Dropped)
	}
	return s
}

// vlansSchema is the version of vlansResult as JSON. docs/topologies.md describes it.
const vlansSchema = 1

// vlansResult is a network's VLANs and ports as JSON.
type vlansResult struct {
	Schema   int            `json:"schema"`
	Topology string         `json:"topology"`
	Switches int            `json:"switches"`
	Hosts    int            `json:"hosts"`
	Links    int            `json:"links"`
	VLANs    []vlansVLAN    `json:"vlans"`
	Ports    []vlansPort    `json:"ports"`
	Computed *vlansComputed `json:"computed,omitempty"`
}

type vlansVLAN struct {
	VID   transport.VID `json:"vid"`
	Links []string      `json:"links"`
}

type vlansPort struct {
	Switch   string          `json:"switch"`
	Port     int             `json:"port"`
	Host     string          `json:"host,omitempty"`
	Link     string          `json:"link,omitempty"`
	Peer     string          `json:"peer,omitempty"`
	PeerPort int             `json:"peer_port,omitempty"`
	Tagged   []transport.VID `json:"tagged"`
	Untagged transport.VID   `json:"untagged,omitempty"`
}

type vlansComputed struct {
	Paths       []vlansPath `json:"paths"`
	Dropped     int         `json:"dropped"`
	AtLeast     int         `json:"at_least"`
	UnusedLinks []string    `json:"unused_links"`
}

type vlansPath struct {
	From  string        `json:"from"`
	To    string        `json:"to"`
	Links []string      `json:"links"`
	VID   transport.VID `json:"vid,omitempty"`
}

// result makes the JSON.
func (r *vlansVerb) result(table *topology.PortTable) *vlansResult {
	t := r.network
	names := t.LinkNames()
	result := &vlansResult{
		Schema: vlansSchema, Topology: r.topology,
		Switches: len(t.Switches), Hosts: len(t.Hosts), Links: len(t.Links),
		VLANs: []vlansVLAN{}, Ports: []vlansPort{},
	}
	for _, v := range t.VLANs {
		result.VLANs = append(result.VLANs, vlansVLAN{v.VID, namesOf(names, v.Links)})
	}
	for _, p := range table.Ports {
		port := vlansPort{
			Switch: t.Switches[p.Switch], Port: p.Number, PeerPort: p.PeerPort, Tagged: p.Tagged, Untagged: p.Untagged,
		}
		if port.Tagged == nil {
			port.Tagged = []transport.VID{}
		}
		if p.Host >= 0 {
			port.Host = t.Hosts[p.Host].Name
		} else {
			port.Link, port.Peer = names[p.Link], t.Switches[p.Peer]
		}
		result.Ports = append(result.Ports, port)
	}
	if r.report != nil {
		result.Computed = computedJSON(t, r.report, names)
	}
	return result
}

// namesOf returns the names of links by number.
func namesOf(names []string, links []int) []string {
	some := make([]string, len(links))
	for i, l := range links {
		some[i] = names[l]
	}
	return some
}

func computedJSON(t *topology.Topology, report *topology.VLANReport, names []string) *vlansComputed {
	c := &vlansComputed{
		Paths: []vlansPath{}, Dropped: report.Dropped, AtLeast: report.AtLeast,
		UnusedLinks: namesOf(names, report.UnusedLinks),
	}
	for _, p := range report.Paths {
		path := vlansPath{From: t.Switches[p.From], To: t.Switches[p.To], VID: p.VID}
		for _, h := range p.Hops {
			path.Links = append(path.Links, names[h.Link])
		}
		c.Paths = append(c.Paths, path)
	}
	return c
}
