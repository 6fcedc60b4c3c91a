// Package launch starts the nodes that a verb needs: in this process, in processes of their own, or
// one of them on this machine. It has the flags that say where, opens links and endpoints, and
// brings the results of the nodes back.
package launch

import (
	"io"
	"maps"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// ClusterFlags are the flags that say where the nodes of a verb run: in memory, in network
// namespaces, or on machines that each run this command.
type ClusterFlags struct {
	Kind      string // of the links
	xdpMode   string // of links of kind xdp
	Trains    bool   // frames handed down together go through the kernel as one packet
	Nodes     int
	NICs      int
	Node      int
	ifname    string // one for each NIC, separated by commas
	listen    string // of the udp link
	seeds     string // for it, separated by commas
	segment   string // in which nodes of one host meet, and reach each other through memory
	Hostfile  string
	hostfile  *cluster.Hostfile // what it says, once it is read
	KeyFile   string
	Checksum  mcd.Checksum // what the checksums of messages cover
	cluster   uint32
	MTU       int
	VID, PCP  int
	dei       bool
	Manager   string
	captureTo string
	Pin       string
	Spin      time.Duration // how long a wait polls before it sleeps
	timeout   time.Duration
	Mode      string
	allSpin   bool // all nodes wait at the same time, and not for node 0 alone
	Faults    Faults
	// Wrap wraps the first link of each node that this process opens; nil: nothing does.
	Wrap     func(transport.Link) (transport.Link, error)
	Grace    time.Duration // for the other processes to end by themselves after one has failed
	explicit func(flag string) bool
	notes    func() io.Writer // for what a user should know before there is a result
}

// xdpModes are the values of --xdp-mode.
var xdpModes = []string{"auto", "zero-copy", "native", "generic"}

// Values of flags that are not given. Nobody types them, so -1 is refused like other wrong numbers.
const (
	NoNode = math.MinInt
	NoVID  = math.MinInt
)

// maxNodes stops a typing error from exhausting the machine's memory.
const maxNodes = 250

// Register defines the flags of a verb that can start all nodes itself.
func (c *ClusterFlags) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.Kind, "link", "fabric", "kind of link: "+LinkKinds())
	LinkChoice(cmd)
	f.StringVar(&c.captureTo, "capture", "", "write node 0's frames to this file, as pcapng")
	f.StringVar(&c.Pin, "pin", "auto", "processor cores, node by node (0,1), of one process per node; auto, or none")
	cli.Choice(cmd, "pin", "auto", "none")
	f.DurationVar(&c.Spin, "spin", mcd.DefaultSpin, "how long a wait polls before it sleeps; 0: it sleeps at once")
	c.TagFlags(cmd)
	c.MachineFlags(cmd)
	f.Lookup("mtu").Hidden = false
}

// NICsFlag is for verbs that use several networks.
func (c *ClusterFlags) NICsFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&c.NICs, "nics", 1, "networks: each node has a NIC on each")
}

// ModeFlag is for verbs that can run all nodes in one process on kernel links, too, as all of them
// work at the same time.
func (c *ClusterFlags) ModeFlag(cmd *cobra.Command) {
	c.allSpin = true
	cmd.Flags().StringVar(&c.Mode, "mode", "",
		"threads (all nodes in this process) or processes (default: threads on the fabric, else processes)")
	cli.Choice(cmd, "mode", modeThreads, ModeProcesses)
}

// TagFlags define the tag of all messages.
func (c *ClusterFlags) TagFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&c.VID, "vid", NoVID, "send with this VLAN tag, 0 (priority only) to 4094")
	f.IntVar(&c.PCP, "pcp", 0, "priority in the tag, 0 to 7")
	f.BoolVar(&c.dei, "dei", false, "drop-eligible bit of the tag")
	f.Lookup("vid").DefValue = "untagged"
}

// MachineFlags are the flags by which each machine of a real cluster says which node it is, and of
// how many.
func (c *ClusterFlags) MachineFlags(cmd *cobra.Command) {
	c.NICs = 1
	f := cmd.Flags()
	f.IntVar(&c.Nodes, "nodes", 2, "number of nodes")
	f.IntVar(&c.MTU, "mtu", fabric.DefaultMTU, "MTU of the fabric or the namespaces' interfaces, in bytes")
	f.Lookup("mtu").Hidden = true // an error says what sets a real interface's
	f.StringVar(&c.ifname, "interface", "",
		"run one node here, on this network interface; the others run the same elsewhere")
	f.StringVar(&c.Hostfile, "hostfile", "", "file that lists the nodes: number, MAC or host name, interface; "+
		"or number and IP address, for --link udp")
	c.udpFlags(f)
	c.segmentFlag(f)
	f.IntVar(&c.Node, "node", NoNode, "this node's number")
	f.BoolVar(&c.Trains, "trains", true,
		"frames that go together for one node pass the kernel as one packet (ring, packet)")
	f.StringVar(&c.xdpMode, "xdp-mode", "auto", "how link xdp gets its frames: auto, zero-copy, native or generic")
	cli.Choice(cmd, "xdp-mode", xdpModes...)
	KeyFileFlag(cmd, &c.KeyFile)
	f.TextVar(&c.Checksum, "checksum", mcd.ChecksumAuto, "`COVERAGE` of messages by their checksums: payload, header "+
		"alone, or auto, which is payload but for --link shm")
	cli.Choice(cmd, "checksum", "auto", "payload", "header")
	f.Uint32Var(&c.cluster, "cluster", 1, "cluster id: tells this run from others on the segment")
	f.StringVar(&c.Manager, "manager", "", "send by the routes of this node's manager: unix:PATH or HOST:PORT")
	f.DurationVar(&c.timeout, "timeout", 30*time.Second, "how long to look for the other nodes")
	f.Lookup("node").DefValue = "by the hostfile"
	InterfaceChoice(cmd)
	c.explicit, c.notes = f.Changed, cmd.ErrOrStderr
}

// LinkChoice completes --link.
func LinkChoice(cmd *cobra.Command) {
	cli.Choice(cmd, "link", strings.Split(LinkKinds(), ", ")...)
}

// InterfaceChoice completes --interface with the names of this machine's.
func InterfaceChoice(cmd *cobra.Command) {
	var names []string
	all, _ := net.Interfaces() // none to offer, if it fails
	for _, i := range all {
		names = append(names, i.Name)
	}
	cli.Choice(cmd, "interface", names...)
}

// Here reports whether this process is one node and the others are elsewhere.
func (c *ClusterFlags) Here() bool {
	return c.ifname != "" || c.Hostfile != "" || c.Node != NoNode || c.listen != "" || c.seeds != ""
}

// Given reports whether the user has given a flag.
func (c *ClusterFlags) Given(flag string) bool { return c.explicit != nil && c.explicit(flag) }

// interfaces lists the names in --interface.
func (c *ClusterFlags) interfaces() []string { return strings.Split(c.ifname, ",") }

// LinkKinds lists the values of --link.
func LinkKinds() string {
	kinds := slices.AppendSeq([]string{OverSHM}, maps.Keys(kernelLinks))
	slices.Sort(kinds)
	return inMemory + ", " + strings.Join(kinds, ", ")
}
