package diagnose

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cluster/pathtest"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// pingVerb probes the paths to one node.
type pingVerb struct {
	pathFlags
	vid     int
	allVIDs bool
	node    mcd.NodeID
}

// maxSwept bounds the paths that are measured after a sweep, unless all are wanted as JSON.
const maxSwept = 32

// NewPingCommand returns the verb ping.
func NewPingCommand() *cobra.Command {
	p := new(pingVerb)
	cmd := &cobra.Command{
		Use:   "ping NODE [flags]",
		Short: "Say whether the paths to a node are alive, and how long they are",
		Long: `Sends probes to a node, which its endpoint answers by the same tag, whatever its program is doing;
and prints how long they took there and back: all, or as many as there are when it is interrupted.
Exits with 1 if none is answered.

Without --interface it starts nodes of its own and asks from node 0. On real machines, give
--interface, --node and --nodes: it is that node, whose own program must not run meanwhile, and it
waits until all are there. Any program of the cluster answers on the others, such as: rawlane node
--stay 1h.

  rawlane ping 1 --vids untagged,1,2
  rawlane ping 3 --all-vids --nodes 4              by which VIDs is it reached?
  rawlane ping 1 --interface eth0 --node 0 --vid 5 --pcp 3 --size 1480`,
		Args: cli.Arguments(1, 1, "which node? (want its number)"),
		RunE: p.run,
	}
	p.flags(cmd, pathtest.DefaultCount)
	f := cmd.Flags()
	f.IntVar(&p.vid, "vid", launch.NoVID, "probe by this VLAN tag: --vids with one of them")
	f.Lookup("vid").DefValue = untaggedWord
	f.BoolVar(&p.allVIDs, "all-vids", false, fmt.Sprintf("try all VIDs, 1 to %d, and no tag", transport.MaxVID))
	return cmd
}

func (p *pingVerb) check(node string) error {
	n, err := strconv.ParseUint(node, 10, 16)
	if err != nil || mcd.NodeID(n) > mcd.MaxNodeID {
		return cli.Misuse("node %q: want a number, 0 to %d", node, mcd.MaxNodeID)
	}
	p.node = mcd.NodeID(n)
	given := 0
	for _, g := range []bool{p.vid != launch.NoVID, p.allVIDs, len(p.tags) > 0} {
		if g {
			given++
		}
	}
	if given > 1 {
		return cli.Misuse("--vid, --vids and --all-vids: want one of them")
	}
	if p.vid != launch.NoVID {
		if err := p.tags.Set(strconv.Itoa(p.vid)); err != nil {
			return cli.Misuse("--vid %d: want 0 (priority only) to %d", p.vid, transport.MaxVID)
		}
	}
	if p.allVIDs {
		if err := p.tags.Set(fmt.Sprintf("%s,1-%d", untaggedWord, transport.MaxVID)); err != nil {
			return err
		}
	}
	if err := p.validate(); err != nil {
		return err
	}
	size, err := p.cluster.Size()
	if err != nil {
		return err
	}
	if int(p.node) >= size {
		return p.cluster.NoSuchNode(fmt.Sprintf("node %d", p.node), size)
	}
	if !p.cluster.Here() && p.node == 0 || p.cluster.Here() && int(p.node) == p.cluster.Node {
		return p.itself()
	}
	return nil
}

func (p *pingVerb) itself() error {
	return cli.Misuse("node %d: is the one that asks (want another one)", p.node)
}

func (p *pingVerb) run(cmd *cobra.Command, args []string) error {
	if err := p.check(args[0]); err != nil {
		return err
	}
	nodes, closeAll, err := p.open(cmd)
	if err != nil {
		return err
	}
	return errors.Join(p.ask(cmd.Context(), cmd, nodes[0]), closeAll())
}

// ask probes all paths and prints the results.
func (p *pingVerb) ask(ctx context.Context, cmd *cobra.Command, ep *mcd.Endpoint) error {
	if ep.Node() == p.node { // as a host file says
		return p.itself()
	}
	if err := p.fits(ep); err != nil {
		return err
	}
	tags := p.tags
	if p.allVIDs {
		found, err := pathtest.Sweep(ctx, ep, p.node, 0, tags, p.options())
		if err != nil {
			return err
		}
		tags = tagList(found)
		if len(tags) == 0 {
			return fmt.Errorf("node %d by any VID, or without: %w (is its program running, and its cable in?)",
				p.node, errSilence)
		}
		if !p.json {
			cmd.Printf("# node %d answers by %s\n", p.node, tags.words())
			tags = tags[:min(len(tags), maxSwept)]
		}
	}
	head := fmt.Sprintf("# rawlane ping: node %d to node %d, %s, %d bytes, %d probes each\n"+
		"# %-12s %9s  round trip p50 (us) %10s %10s %10s\n",
		ep.Node(), p.node, p.cluster.Kind, p.size, p.count,
		"By", "Answered", "p99", "min", "max")
	lines := cli.Lines{Out: cmd.OutOrStdout(), JSON: p.json}
	answered := 0
	for _, tag := range tags {
		r, err := p.measure(ctx, ep, mcd.Path{Node: p.node, OptionalTag: tag})
		if r.Sent > 0 { // also where it was interrupted
			err = errors.Join(err, lines.Write(&r, head, r.line()))
		}
		if err != nil {
			return err
		}
		answered += r.Answered
	}
	if answered == 0 {
		return fmt.Errorf("node %d by %s: %w (rawlane ping %d --all-vids shows by which VIDs it answers)",
			p.node, tags.words(), errSilence, p.node)
	}
	return nil
}

// line is the measurement as a line of text.
func (r *pathRecord) line() string {
	if r.Answered == 0 {
		return fmt.Sprintf("%-14v %9s  no answer\n", r.by(), fmt.Sprintf("0/%d", r.Sent))
	}
	changed := ""
	if r.PeerReceivedTag != "" {
		changed += "  arrives there with " + r.PeerReceivedTag
	}
	if r.ReceivedTag != "" {
		changed += "  answered with " + r.ReceivedTag
	}
	return fmt.Sprintf("%-14v %9s %20.2f %10.2f %10.2f %10.2f%s\n", r.by(), fmt.Sprintf("%d/%d", r.Answered, r.Sent),
		r.P50US, r.P99US, r.MinUS, r.MaxUS, changed)
}
