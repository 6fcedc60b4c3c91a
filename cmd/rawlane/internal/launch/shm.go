package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm"
)

// OverSHM is the kind of link that needs no network: between the nodes of one host.
const OverSHM = "shm"

// EnvSegmentDir is where the segments of links over shared memory have their folders.
const EnvSegmentDir = "RAWLANE_SHM_DIR"

// defaultSegment is where links over shared memory meet that are given no segment.
const defaultSegment = "rawlane"

// segmentFlag defines where links over shared memory meet.
func (c *ClusterFlags) segmentFlag(f *pflag.FlagSet) {
	f.StringVar(&c.segment, "segment", "",
		"nodes of this host that give the same name reach each other through shared memory, and others by --link")
	cli.Default(f, "segment", defaultSegment+" with --link shm, else none")
}

// ThroughMemory reports whether nodes of this host reach each other through shared memory.
func (c *ClusterFlags) ThroughMemory() bool { return c.Kind == OverSHM || c.segment != "" }

// CheckSegment checks what --segment names, "" for none, in each of several networks.
func CheckSegment(name string, nics int) error {
	if name == "" {
		return nil
	}
	if err := shm.CheckName(networkSegment(name, max(nics, 1)-1)); err != nil {
		return cli.Misuse("--segment %q: %w", name, err)
	}
	return nil
}

// validateSegment checks the flags of links over shared memory.
func (c *ClusterFlags) validateSegment() error {
	if err := CheckSegment(c.segment, c.NICs); err != nil {
		return err
	}
	switch {
	case c.Kind == inMemory && c.segment != "":
		return cli.Misuse("--segment: a fabric is in memory already (give --link shm, or a link to the kernel)")
	case c.Kind != OverSHM:
		return nil
	case c.ifname != "":
		return cli.Misuse("--interface %s: --link shm has none (for both, give the interface's link and --segment)",
			c.ifname)
	case c.Hostfile != "":
		return cli.Misuse("--hostfile: nodes on --link shm are on one host, and find each other (give --node, --nodes)")
	}
	return nil
}

// networkSegment names the segment of one of several networks.
func networkSegment(name string, nic int) string {
	if nic == 0 {
		return name
	}
	return name + "." + strconv.Itoa(nic)
}

// openSegments opens a node's links over shared memory; dir is "" for the user's. The links that it
// returns with an error are open, too. Each has its address by the node's number, so that a node
// that begins anew is met, and one that runs already is not run twice.
func (c *ClusterFlags) openSegments(node int, dir string) (links []transport.Link, err error) {
	cfg := shm.Config{Dir: dir}
	if c.Given("mtu") {
		cfg.MTU = c.MTU
	}
	for nic := range c.NICs {
		segment := networkSegment(cmp.Or(c.segment, defaultSegment), nic)
		l, err := shm.OpenNode(segment, c.cluster, node, cfg)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w (by flags: another --node, --cluster or --segment)", err)
		}
		if err != nil {
			return links, err
		}
		links = append(links, l)
	}
	return links, nil
}

// throughMemory puts links over shared memory around a node's links to the kernel, if there is a
// segment.
func (c *ClusterFlags) throughMemory(links []transport.Link, dir string) error {
	if c.segment == "" || c.Kind == OverSHM {
		return nil
	}
	for nic, wire := range links {
		l, err := shm.Open(networkSegment(c.segment, nic), shm.Config{Wire: wire, Dir: dir})
		if err != nil {
			return err
		}
		links[nic] = l
	}
	return nil
}

// inSegments opens the links of all nodes over shared memory, or puts it around those that there
// are, for nodes in this process.
func (c *ClusterFlags) inSegments(links [][]transport.Link) (closeNet func() error, err error) {
	dir, err := SegmentDir()
	if err != nil {
		return nil, err
	}
	closeNet = func() error { return os.RemoveAll(dir) }
	for k := range links {
		if c.Kind == OverSHM {
			links[k], err = c.openSegments(k, dir)
		} else {
			err = c.throughMemory(links[k], dir)
		}
		if err != nil {
			return nil, errors.Join(err, closeLinks(links), closeNet())
		}
	}
	return closeNet, nil
}

// SegmentDir makes a folder for the segments of nodes that are started here, who then meet nobody
// else: in the user's own, if that is set, or in the folder for temporary files. The caller removes
// it.
func SegmentDir() (string, error) {
	variable := EnvSegmentDir
	if os.Getenv(variable) == "" {
		variable = ""
	}
	dir, err := os.MkdirTemp(os.Getenv(EnvSegmentDir), "rawlane-shm-")
	if err != nil {
		return "", fmt.Errorf("make a folder for shared memory's sockets: %w", cli.FolderError(variable, err))
	}
	return dir, nil
}

// segmentNet is links over shared memory in this process.
func segmentNet(nodes int) (*DemoNet, error) {
	c := ClusterFlags{Kind: OverSHM, Nodes: nodes, NICs: 1}
	links := make([][]transport.Link, nodes)
	closeNet, err := c.inSegments(links)
	if err != nil {
		return nil, err
	}
	return &DemoNet{
		Name:  "links over shared memory, as between processes of one host",
		Links: slices.Concat(links...),
		Close: func() { _ = closeNet() },
	}, nil
}

// place is where the processes of a verb's nodes run.
type place struct {
	start Starter
	where func(node int) []string // flags
	env   []string
	close func()
}

// choosePlace makes what the nodes' processes need: a network, and where links meet in memory. The
// network comes first: for namespaces an ordinary user's command begins anew in one of its own.
func (c *ClusterFlags) choosePlace() (*place, error) {
	p, err := c.choosePlaceOnNetwork()
	if err != nil || !c.ThroughMemory() {
		return p, err
	}
	dir, err := SegmentDir()
	if err != nil {
		p.close()
		return nil, err
	}
	closeNetwork := p.close
	p.env = []string{EnvSegmentDir + "=" + dir}
	p.close = func() { closeNetwork(); _ = os.RemoveAll(dir) }
	return p, nil
}

// choosePlaceOnNetwork makes network namespaces, or what the kind of link needs instead.
func (c *ClusterFlags) choosePlaceOnNetwork() (*place, error) {
	p := &place{start: StartHere, close: func() {}}
	if c.Kind == OverSHM {
		p.where = func(int) []string { return nil }
		return p, nil
	}
	bed, err := testbed.Open(c.bed())
	switch {
	case err == nil:
		p.start, p.close = StartIn(bed), func() { _ = bed.Close() }
		p.where = func(int) []string { return []string{"--interface=" + Interfaces(c.NICs)} }
		return p, nil
	case c.Kind == overUDP && c.NICs == 1 && Refused(err):
		c.note(NoNamespaces, err)
		here, err := LoopbackAddrs(c.Nodes)
		if err == nil {
			p.where = func(k int) []string { return []string{"--listen=" + here[k], "--seeds=" + here[0]} }
			return p, nil
		}
	}
	return nil, err
}
