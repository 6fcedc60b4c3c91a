package launch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/cpuset"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/xdp"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
)

// Validate checks the flags as far as they can be checked without a network, and fills in defaults.
func (c *ClusterFlags) Validate() error {
	if c.Here() && !c.Given("link") {
		c.Kind = "ring"
	}
	if err := c.validateSegment(); err != nil {
		return err
	}
	if err := c.validateUDP(); err != nil {
		return err
	}
	if c.Kind != inMemory && c.Kind != OverSHM && kernelLinks[c.Kind] == nil {
		return noSuchKind(c.Kind)
	}
	if c.Here() && c.Kind == inMemory {
		return cli.Misuse("--link fabric is in memory, and --interface, --hostfile and --node are for real machines: " +
			"give one or the other")
	}
	if c.Given("trains") && c.Kind != "ring" && c.Kind != "packet" {
		return cli.Misuse("--trains: is for --link ring or packet (udp sends trains anyway; " +
			"fabric, shm and xdp need none)")
	}
	if _, err := xdp.ParseMode(c.xdpMode); err != nil && c.xdpMode != "" {
		return cli.NotOneOf("xdp-mode", c.xdpMode, xdpModes...)
	}
	if c.Kind != "xdp" && c.Given("xdp-mode") {
		return cli.Misuse("--xdp-mode: is for --link xdp")
	}
	for _, check := range []func() error{
		c.useKeyFile, c.validateNumbers, c.Faults.validate,
		c.validateMachine, c.validateTag, c.validateMode,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := cli.NotStandard("--capture", c.captureTo); err != nil {
		return err
	}
	_, err := c.Cores()
	return err
}

func noSuchKind(kind string) error {
	return cli.NotOneOf("link", kind, strings.Split(LinkKinds(), ", ")...)
}

func (c *ClusterFlags) validateNumbers() error {
	switch {
	case c.Nodes < 2 || c.Nodes > maxNodes:
		return cli.Misuse("--nodes %d: want 2 to %d", c.Nodes, maxNodes)
	case c.NICs < 1 || c.NICs > testbed.MaxNICs:
		return cli.Misuse("--nics %d: want 1 to %d", c.NICs, testbed.MaxNICs)
	case c.MTU < fabric.MinMTU || c.MTU > fabric.MaxMTU:
		return cli.Misuse("--mtu %d: want %d to %d", c.MTU, fabric.MinMTU, fabric.MaxMTU)
	case c.Spin < 0 || c.Spin > time.Minute:
		return cli.Misuse("--spin %v: want 0 to %v", c.Spin, time.Minute)
	case c.timeout <= 0:
		return cli.Misuse("--timeout %v: want more than 0", c.timeout)
	}
	return nil
}

// CheckSize refuses a message of that many bytes where it cannot fit: nodes that are started here
// have links with the MTU of the flags.
func (c *ClusterFlags) CheckSize(size int) error {
	if c.Here() || c.Kind == OverSHM || c.Kind == overUDP {
		return nil // the endpoint tells
	}
	header := mcd.HeaderLen
	if c.KeyFile != "" {
		header = mcd.AuthHeaderLen
	}
	if most := c.MTU - header; size > most {
		return cli.Misuse("--size %d: %w", size, &transport.SizeError{Size: size, Max: most})
	}
	return nil
}

// validateMachine checks the flags of one node among several machines.
func (c *ClusterFlags) validateMachine() error {
	switch {
	case c.ifname != "" && len(c.interfaces()) != c.NICs:
		return cli.Misuse("--interface %s: names %d (want %d, one for each network)",
			c.ifname, len(c.interfaces()), c.NICs)
	case c.Here() && c.Given("mtu") && c.Kind != OverSHM:
		return cli.Misuse("--mtu is for the fabric and for namespaces; set a real interface's with: "+
			"ip link set %s mtu %d", cmp.Or(c.ifname, "NAME"), c.MTU)
	case c.Node != NoNode && (c.Node < 0 || c.Node >= c.Nodes && c.Hostfile == ""):
		return cli.Misuse("--node %d: want 0 to %d, or more --nodes", c.Node, c.Nodes-1)
	case c.Manager != "" && !c.Here():
		return cli.Misuse("--manager: is of one node: give --node, and run the others elsewhere")
	}
	return nil
}

func (c *ClusterFlags) validateTag() error {
	if c.Manager != "" {
		if c.VID != NoVID {
			return cli.Misuse("--vid and --manager: want one of the two")
		}
		if c.PCP != 0 || c.dei {
			return cli.Misuse("--pcp and --dei are parts of a tag: the manager's routes have their own")
		}
		if _, err := manager.ParseAddr(c.Manager); err != nil {
			return cli.AsMisuse(err)
		}
		return nil
	}
	switch {
	case c.VID == NoVID && (c.PCP != 0 || c.dei):
		return cli.Misuse("--pcp and --dei are parts of a tag: give --vid, too (0 for a tag with priority alone)")
	case c.VID != NoVID && (c.VID < 0 || c.VID > int(transport.MaxVID)):
		return cli.Misuse("--vid %d: want 0 (priority only) to %d", c.VID, transport.MaxVID)
	case c.PCP < 0 || c.PCP > 7:
		return cli.Misuse("--pcp %d: want 0 to 7", c.PCP)
	}
	return nil
}

// router sends with the tag of the flags.
func (c *ClusterFlags) router() (vlan.Router, error) {
	if c.VID == NoVID {
		return vlan.Untagged, nil
	}
	return vlan.Fixed(transport.Tag{VID: transport.VID(c.VID), PCP: transport.PCP(c.PCP), DEI: c.dei})
}

// Cores returns the core of each node's process, in the order of the nodes; nil if the scheduler of
// the system places them.
func (c *ClusterFlags) Cores() ([]int, error) {
	processes := c.Nodes
	if c.Here() {
		processes = 1
	}
	together, allowed := c.Kind == inMemory || c.Mode == modeThreads, cpuset.Allowed()
	switch {
	case c.Pin == "none", together && c.Pin == "auto":
		return nil, nil
	case c.Kind == inMemory:
		return nil, cli.Misuse("--pin: the fabric's nodes share one process")
	case together:
		return nil, cli.Misuse("--pin: with --mode threads the nodes share one process")
	case c.Pin == "auto" && (c.Here() || c.Nodes > len(allowed)):
		return nil, nil
	case c.Pin == "auto":
		return allowed[:c.Nodes], nil
	}
	var chosen []int
	for _, field := range strings.Split(c.Pin, ",") {
		core, err := strconv.Atoi(field)
		if err != nil || !slices.Contains(allowed, core) {
			return nil, cli.Misuse("--pin %q: want auto, none, or cores of %v",
				c.Pin, slices.Sorted(slices.Values(allowed)))
		}
		chosen = append(chosen, core)
	}
	if len(chosen) != processes {
		return nil, cli.Misuse("--pin %q: want %d, one for each process here", c.Pin, processes)
	}
	return chosen, nil
}

// Modes: where the nodes of a verb run.
const (
	modeThreads   = "threads"   // goroutines of this process
	ModeProcesses = "processes" // a process for each
)

// validateMode checks --mode, and fills in the default.
func (c *ClusterFlags) validateMode() error {
	switch {
	case c.Mode == "" && c.Kind == inMemory:
		c.Mode = modeThreads
	case c.Mode == "":
		c.Mode = ModeProcesses
	case c.Mode != modeThreads && c.Mode != ModeProcesses:
		return cli.NotOneOf("mode", c.Mode, modeThreads, ModeProcesses)
	case c.Mode == ModeProcesses && c.Kind == inMemory:
		return cli.Misuse("--mode processes: the fabric is in memory of one process; " +
			"give --link packet, ring, shm, udp or xdp")
	case c.Mode == modeThreads && c.Here():
		return cli.Misuse("--mode threads: --interface, --hostfile and --node are for a node in each process")
	}
	return nil
}
